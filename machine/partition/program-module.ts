/** Finds the function that a program's module exports. */
import { ConfigurationError, textOfThrown } from '../../base/index.ts';
import type { ProgramFunction } from '../program.ts';

/** @throws ConfigurationError if the module does not exist or does not export such a function */
export async function loadProgram(url: string, exportName: string): Promise<ProgramFunction> {
  let module: Record<string, unknown>;
  try {
    module = (await import(url)) as Record<string, unknown>;
  } catch (error) {
    const reason = textOfThrown(error);
    throw new ConfigurationError('program module', url, `a module that loads (${reason})`);
  }
  const found = module[exportName];
  if (typeof found === 'function') return found as ProgramFunction;
  const names = Object.keys(module).filter((name) => typeof module[name] === 'function');
  throw new ConfigurationError(
    `program of ${url}`,
    exportName,
    names.length === 0 ? 'an exported function' : `one of ${names.join(', ')}`,
  );
}
