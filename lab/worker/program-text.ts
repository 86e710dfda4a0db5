/**
 * A program's text as something that can be run: types go, the library is what its imports get, and each call of the library leaves the
 * line that it was made from.
 *
 * Lines stay as they were, so a line of a stack is one of the text. The text is evaluated once for each host: two hosts share no variables.
 */
import { transform } from 'sucrase';
import type { ProgramFunction } from '../../browser.ts';
import { typescript, withStops } from '../stop-places.ts';

/** What a text exports. */
export interface ProgramExports {
  readonly host0?: ProgramFunction;
  readonly host1?: ProgramFunction;
  readonly main?: () => Promise<unknown>;
}

/** A text that cannot be read as a program. */
export class ProgramTextError extends Error {
  override readonly name = 'ProgramTextError';
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined) {
    super(message);
    this.line = line;
  }
}

/** Modules that a text may import: the package, by its names, and by the paths that the examples of the repository use. */
const libraryNames = new Set(['hca-emulator', 'hca-emulator/browser', '../index.ts', '../../browser.ts']);

const fileName = 'program.ts';

/** Name by which a text calls the function that is notified of the lines that it reaches. */
const reachedName = 'reachedLineOfProgram';

/** Types away, imports and exports as calls, and a call before each line that can stop. @throws ProgramTextError with the line of what cannot be read */
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
 * Exports of variables by a statement of their own at the end: sucrase takes of `export const a = x, b = y` and of patterns the first
 * name alone. Every other letter stays at its line and column.
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
      // What is declared within a value belongs to that value.
      return !/Expression$|^ArrowFunction$/.test(name);
    });
  }
  return names.length === 0 ? text : `${apart}\nexport { ${names.join(', ')} };`;
}

/**
 * Evaluates what {@link compiled} gave.
 * @param library what its imports get
 * @param reached is called before each line that can stop
 * @throws ProgramTextError when it imports something else, or throws before anything is run
 */
export function evaluated(code: string, library: object, reached: (line: number) => void): ProgramExports {
  const exports: Record<string, unknown> = {};
  const required = (name: string): object => {
    if (libraryNames.has(name)) return library;
    throw new ProgramTextError(`imports ${name}: a program of the lab has only 'hca-emulator'`, undefined);
  };
  // The examples of the repository run themselves when they are started by their name: here they are not. What would run then may
  // await, which the body of a plain function may not.
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

/** The innermost place in the text: `program.ts:12:5` in the stacks of Chromium and Firefox alike. */
function lineOfStack(error: unknown): number {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const place = new RegExp(`${fileName.replace('.', '\\.')}:(\\d+)(?::\\d+)?\\)?$`, 'm').exec(stack);
  return place === null ? 0 : Number(place[1]);
}
