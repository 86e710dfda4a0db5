/** Stops of the lab's programs: every expected line and order of runs is written by hand, and the engine itself runs them. */
import { describe, expect, it } from 'vitest';
import { labPrograms } from './page/programs.ts';
import { stopLineOf, stopPlaces, withStops } from './stop-places.ts';
import { compiled } from './worker/program-text.ts';

/** Runs a text's function `f` and returns the lines that it reached. */
function linesOf(text: string): readonly number[] {
  const lines: number[] = [];
  const run = new Function('reached', `${withStops(text, 'reached')}\nreturn f();`);
  run((line: number) => lines.push(line));
  return lines;
}

describe('the lines that a program reaches', () => {
  it.each([
    ['statements in their order', 'function f() {\n  let a = 1;\n  a++;\n  return a;\n}', [2, 3, 4]],
    [
      'each round of while',
      'function f() {\n  let a = 0;\n  while (a < 2) {\n    a++;\n  }\n}',
      [2, 3, 4, 3, 4, 3],
    ],
    [
      'a do loop and its condition',
      'function f() {\n  let a = 0;\n  do a++;\n  while (a < 2);\n}',
      [2, 3, 4, 4],
    ],
    [
      'a body without braces on a line of its own',
      'function f() {\n  if (true)\n    f.a = 1;\n  else f.a = 2;\n}',
      [2, 3],
    ],
    [
      'the branch of else that runs',
      'function f() {\n  if (false) f.a = 1;\n  else if (true)\n    f.a = 2;\n  else\n    f.a = 3;\n}',
      [2, 3, 4],
    ],
    ['a line with several statements once', 'function f() {\n  f.a = 1; f.b = 2; if (f.a) f.c = 3;\n}', [2]],
    [
      'what an arrow function returns, at each call',
      'function f() {\n  const twice = (a) =>\n    a * 2;\n  return [1, 2].map((a) => twice(a));\n}',
      [2, 4, 4, 3, 4, 3],
    ],
    [
      'what an arrow function returns after a remark',
      'function f() {\n  const one = () => // a remark\n    /* and another */ 1;\n  return one();\n}',
      [2, 4, 3],
    ],
    [
      'cases, labels and catches',
      'function f() {\n  outer: for (;;) {\n    switch (1) {\n      case 1:\n        break outer;\n    }\n  }\n  try {\n    throw 1;\n  } catch {\n    return 2;\n  }\n}',
      [2, 3, 5, 8, 9, 11],
    ],
    ['nothing outside of functions', 'const a = 1;\nfunction f() {}\n', []],
    ['no semicolons', 'function f() {\n  let a = 1\n  a += 1\n  return a\n}', [2, 3, 4]],
  ])('%s', (_what, text, lines) => {
    expect(linesOf(text)).toEqual(lines);
  });

  it.each(labPrograms.map(({ name, text }) => [name, text] as const))(
    '%s keeps its lines, and can stop at every line that awaits, returns or throws',
    (_name, text) => {
      const stopped = withStops(text, 'reached');
      expect(stopped.split('\n')).toHaveLength(text.split('\n').length);
      const bare = (each: string): string => each.replaceAll(/reached\(\d+\)[;,]|[(){}]/g, '');
      expect(bare(stopped)).toBe(bare(text));
      expect(() => compiled(stopped)).not.toThrow();
      const lines = new Set(stopPlaces(text).map(({ line }) => line));
      for (const [at, line] of text.split('\n').entries())
        if (/^ {2,}(?:await |const .* = await (?!main)|return |throw )/.test(line))
          expect(lines, line).toContain(at + 1);
    },
  );

  it('finds no place in a text that cannot be parsed', () => {
    expect(stopPlaces('function f() {\n  const = 3;\n}')).toEqual([]);
  });
});

describe('the line of a breakpoint', () => {
  const text = `/** A remark. */
const many = 3;
async function f() {
  // Another remark.
  const found = await many(
    1,
    { two: 2 },
  );

  return found;
}
`;
  it.each([
    ['a statement: its line', 5, 5],
    ['within a longer statement: where that begins', 7, 5],
    ['its last line: where it begins', 8, 5],
    ['a remark: the next line that can', 4, 5],
    ['an empty line: the next line that can', 9, 10],
    ['outside of functions: the next line that can', 2, 5],
    ['after the last one: none', 11, undefined],
    ['a line that does not exist: none', 40, undefined],
  ])('%s', (_what, line, stops) => {
    expect(stopLineOf(text, line)).toBe(stops);
  });
});
