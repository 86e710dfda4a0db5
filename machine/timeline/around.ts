/**
 * How the timeline looks at a block: it puts a listener around a method of that one object, from outside. The block's code holds no
 * hook, so a machine without a timeline does exactly what it did, at the same speed; one with a timeline does the same, and the
 * listener notes it. A listener changes neither arguments nor results.
 */

export type MethodsOf<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];

type Method = (...args: never[]) => unknown;

/** Refuses, at compile time, a listener that takes fewer arguments than the method: it would drop the others, optional ones too. */
type TakesAll<F, L> = F extends Method
  ? L extends Method
    ? Required<Parameters<F>>['length'] extends Required<Parameters<L>>['length']
      ? unknown
      : never
    : never
  : never;

/** Replaces a method of `block` by what `listen` makes of the plain one, which takes all of its arguments. */
export function around<T extends object, K extends MethodsOf<T>, L extends T[K]>(
  block: T,
  method: K,
  listen: (plain: T[K]) => L & TakesAll<T[K], L>,
): void {
  const plain = (block[method] as Method).bind(block) as T[K];
  block[method] = listen(plain);
}

/** Has `note` called after each call of a method, whatever its arguments. */
export function after<T extends object>(block: T, method: MethodsOf<T>, note: () => void): void {
  const plain = (block[method] as (...args: readonly unknown[]) => unknown).bind(block);
  const listener = (...args: readonly unknown[]): unknown => {
    const result = plain(...args);
    note();
    return result;
  };
  block[method] = listener as T[typeof method];
}
