/**
 * Makes a program's text runnable: removes types, resolves imports to the library, and records the line of each library
 * call.
 *
 * Line numbers do not change, so a stack's line is a line of the text. The text is evaluated once for each host: the
 * hosts share no variables.
 */
import { transform } from 'sucrase';
import type { ProgramFunction } from '../../browser.ts';
import { typescript, withStops } from '../stop-places.ts';

/** Exports of a text. */
export interface ProgramExports {
  readonly host0?: ProgramFunction;
  readonly host1?: ProgramFunction;
  readonly main?: () => Promise<unknown>;
}

/** A text that cannot be parsed as a program. */
export class ProgramTextError extends Error {
  override readonly name = 'ProgramTextError';
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined) {
    super(message);
    this.line = line;
  }
}

/** Modules that a text may import: the package by its names, and by the paths in the repository's examples. */
const libraryNames = new Set(['hca-emulator', 'hca-emulator/browser', '../index.ts', '../../browser.ts']);

const fileName = 'program.ts';

/** Name of the function that a text calls with each line that it reaches. */
const reachedName = 'reachedLineOfProgram';

/**
 * Removes types, turns imports and exports into calls, and puts a call before each line that can stop.
 * @throws ProgramTextError with the line of the syntax error
 */
export function compiled(text: string): string {
  try {
    const { code } = transform(withExportsApart(withStops(text, reachedName)), {
      transforms: ['typescript', 'imports'],
      disableESTransforms: true,
      preserveDynamicImport: true,
      filePath: fileName,
    });
    return code;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const place = /\((\d+):\d+\)\s*$/.exec(message);
    throw new ProgramTextError(
      message.replace(/^Error transforming [^:]+: /, '').replace(/\s*\(\d+:\d+\)\s*$/, ''),
      place === null ? undefined : Number(place[1]),
    );
  }
}

/**
 * Moves exports of variables into a statement at the end: of `export const a = x, b = y` and of patterns, sucrase
 * exports only the first name. Every other character keeps its line and column.
 */
function withExportsApart(text: string): string {
  const names: string[] = [];
  let apart = text;
  for (const statement of typescript.parse(text).topNode.getChildren('ExportDeclaration')) {
    const declaration = statement.getChild('VariableDeclaration');
    if (declaration === null) continue;
    const { from } = statement;
    apart = `${apart.slice(0, from)}${' '.repeat('export'.length)}${apart.slice(from + 'export'.length)}`;
    declaration.cursor().iterate(({ name, from: begin, to }) => {
      if (name === 'VariableDefinition') names.push(text.slice(begin, to));
      // Declarations within a value belong to that value.
      return !/Expression$|^ArrowFunction$/.test(name);
    });
  }
  return names.length === 0 ? text : `${apart}\nexport { ${names.join(', ')} };`;
}

/**
 * Evaluates the result of {@link compiled}.
 * @param library values of its imports
 * @param reached called before each line that can stop
 * @throws ProgramTextError if it imports anything else, or throws before anything runs
 */
export function evaluated(code: string, library: object, reached: (line: number) => void): ProgramExports {
  const exports: Record<string, unknown> = {};
  const required = (name: string): object => {
    if (libraryNames.has(name)) return library;
    throw new ProgramTextError(`imports ${name}: a program of the lab has only 'hca-emulator'`, undefined);
  };
  // The repository's examples run themselves when started by name; here they are not. That code may contain await,
  // which the body of a plain function must not.
  const plain = code
    .replaceAll('if (import.meta.main) {', 'if (false) async () => {')
    .replaceAll('import.meta.main', '     false      ');
  try {
    new Function('require', 'exports', reachedName, `'use strict';${plain}\n//# sourceURL=${fileName}`)(
      required,
      exports,
      reached,
    );
  } catch (error) {
    if (error instanceof ProgramTextError) throw error;
    throw new ProgramTextError(String(error), lineIn(error));
  }
  return exports;
}

/** Lines that an engine puts before the text of a function. */
const linesBefore = lineOfStack(new Function(`return new Error('probe')\n//# sourceURL=${fileName}`)()) - 1;

/** The line of the text that an error came from, or undefined. */
export function lineIn(error: unknown): number | undefined {
  const line = lineOfStack(error);
  return line > linesBefore ? line - linesBefore : undefined;
}

/** The innermost position in the text: `program.ts:12:5` in the stacks of both Chromium and Firefox. */
function lineOfStack(error: unknown): number {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const place = new RegExp(`${fileName.replace('.', '\\.')}:(\\d+)(?::\\d+)?\\)?$`, 'm').exec(stack);
  return place === null ? 0 : Number(place[1]);
}
