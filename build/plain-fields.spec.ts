import { describe, expect, it } from 'vitest';
import { withPlainFields } from './plain-fields.ts';

/** Evaluates a module's text and returns its default export. */
async function run(source: string): Promise<unknown> {
  const module = (await import(`data:text/javascript,${encodeURIComponent(source)}`)) as { default: unknown };
  return module.default;
}

describe('plain fields', () => {
  it('leaves out a field without value that the constructor always assigns', () => {
    expect(withPlainFields('class A { x; constructor() { this.x = 1; } }')).toBe(
      'class A {  constructor() { this.x = 1; } }',
    );
  });

  it('keeps a field that the constructor assigns in some cases only, so that all instances have one shape', async () => {
    const source = 'class A { x; #y; constructor(c) { if (c) { this.x = 1; this.#y = 2; } } }';
    const built = withPlainFields(`${source}\nexport default Object.keys(new A(false));`);
    expect(await run(built)).toEqual(['x', 'y$A']);
  });

  it('keeps a field that the constructor does not assign itself, but adds to', async () => {
    const built = withPlainFields(
      'class A { x; constructor() { this.x ??= 4; } }\nexport default Object.keys(new A());',
    );
    expect(await run(built)).toEqual(['x']);
  });

  it('separates equal private names of a class and its subclass', async () => {
    const source = `
      class A { #x = 1; one() { return this.#x; } }
      class B extends A { #x = 2; two() { return this.#x; } }
      export default [new B().one(), new B().two()];`;
    expect(await run(source)).toEqual([1, 2]);
    expect(await run(withPlainFields(source))).toEqual([1, 2]);
  });

  it('keeps private methods, accessors, static members, nested classes and private name checks', async () => {
    const source = `
      class A {
        static #count = 0;
        #x;
        constructor(x) { this.#x = x; A.#count++; }
        get #twice() { return 2 * this.#x; }
        set #twice(y) { this.#x = y / 2; }
        #add(y) { return this.#x + y; }
        static has(o) { return #x in o; }
        inner() { const outer = this; return new (class { #z = 5; sum() { return this.#z + outer.#add(1); } })().sum(); }
        go() { this.#twice = 8; return [this.#twice, this.#add(3), A.#count, A.has(this), A.has({}), this.inner(), this?.#x]; }
      }
      export default new A(1).go();`;
    const expected = [8, 7, 1, true, false, 10, 4];
    expect(await run(source)).toEqual(expected);
    const built = withPlainFields(source);
    expect(built).not.toContain('#');
    expect(await run(built)).toEqual(expected);
  });

  it('names fields of a class that is a variable by the variable', () => {
    expect(withPlainFields('const A = class { #x = 1; };')).toBe('const A = class { x$A = 1; };');
  });

  it('does not change text that only looks like a private name', () => {
    const source = "const a = '#x'; const b = `#y #z`; // #w\nconst r = /#v/;";
    expect(withPlainFields(source)).toBe(source);
  });

  it('counts characters as the source does, after characters of any width', () => {
    expect(withPlainFields("class A { s = 'µ𝄞'; #x = 1; }")).toBe("class A { s = 'µ𝄞'; x$A = 1; }");
  });

  it('rejects text that is not a module', () => {
    expect(() => withPlainFields('class {')).toThrow();
  });
});
