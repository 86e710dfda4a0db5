import { describe, expect, it } from 'vitest';
import { withLocalNames } from './local-names.ts';

/** Evaluates a module's text and returns its exports. */
async function run(source: string): Promise<Record<string, unknown>> {
  return (await import(`data:text/javascript,${encodeURIComponent(source)}`)) as Record<string, unknown>;
}

describe('local names', () => {
  it('make constants of the module’s imports from its package', () => {
    expect(
      withLocalNames("import { a, b as c } from './x.js';\nimport { d } from 'node:fs';\nuse(a, c, d);"),
    ).toBe(
      "import { a as a$import, b as c$import } from './x.js';\nimport { d } from 'node:fs';\n" +
        'const a = a$import, c = c$import;\nuse(a, c, d);',
    );
  });

  it('leave exports unchanged: functions used before their declaration, classes, constants, other names', async () => {
    const source = `
      export const four = twice(two());
      export const { x, y: z } = { x: 1, y: 2 };
      export function twice(a) { return 2 * a; }
      function two() { return 2; }
      export class Base { static made = 0; static make() { Base.made++; return new Base(); } }
      export class Derived extends Base { name() { return Derived.name; } }
      class Hidden { #w = 7; w() { return this.#w; } }
      const w = new Hidden().w();
      export { w as seven, two as default };`;
    const [plain, local] = [await run(source), await run(withLocalNames(source))];
    expect(Object.keys(local)).toEqual(Object.keys(plain));
    for (const { four, x, z, seven, twice, default: two, Base, Derived } of [plain, local] as never[]) {
      expect([four, x, z, seven, (twice as (a: number) => number)(4), (two as () => number)()]).toEqual([
        4, 1, 2, 7, 8, 2,
      ]);
      const made = (Base as { make(): object; made: number }).make();
      expect([made.constructor.name, (Base as { made: number }).made]).toEqual(['Base', 1]);
      expect(new (Derived as new () => { name(): string })().name()).toBe('Derived');
    }
  });

  it('make constants of classes that a bundler made variables', () => {
    expect(withLocalNames('var A = class { };\nvar b = 1;')).toBe('const A = class { };\nvar b = 1;');
  });

  it('ignore re-exports from another module', () => {
    const source = "export * from './a.js';\nexport { b } from './b.js';\n";
    expect(withLocalNames(source)).toBe(source);
  });
});
