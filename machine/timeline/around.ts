/**
 * Wraps a method of one object in a listener, from outside: so the timeline observes a block. The block's code has no
 * hook, so a machine without a timeline behaves as if timelines did not exist, at the same speed; with a timeline it
 * behaves the same, and the listener records it. A listener changes neither arguments nor results.
 */

export type MethodsOf<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];

type Method = (...args: never[]) => unknown;

/** Rejects, at compile time, a listener that accepts fewer arguments than the method: it would drop the others, including optional ones. */
type TakesAll<F, L> = F extends Method
  ? L extends Method
    ? Required<Parameters<F>>['length'] extends Required<Parameters<L>>['length']
      ? unknown
      : never
    : never
  : never;

/** Replaces a method of `block` by the result of `listen` for the original method; the result takes all of its arguments. */
export function around<T extends object, K extends MethodsOf<T>, L extends T[K]>(
  block: T,
  method: K,
  listen: (plain: T[K]) => L & TakesAll<T[K], L>,
): void {
  const plain = (block[method] as Method).bind(block) as T[K];
  block[method] = listen(plain);
}

/** Calls `note` after each call of a method, whatever its arguments. */
export function after<T extends object>(block: T, method: MethodsOf<T>, note: () => void): void {
  const plain = (block[method] as (...args: readonly unknown[]) => unknown).bind(block);
  const listener = (...args: readonly unknown[]): unknown => {
    const result = plain(...args);
    note();
    return result;
  };
  block[method] = listener as T[typeof method];
}
