/**
 * How the timeline looks at a block: it puts a listener around a method of that one object, from outside. The block's code holds no
 * hook, so a machine without a timeline does exactly what it did, at the same speed; one with a timeline does the same, and the
 * listener notes it. A listener changes neither arguments nor results.
 */

export type MethodsOf<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];

/** Replaces a method of `block` by what `listen` makes of the plain one. */
export function around<T extends object, K extends MethodsOf<T>>(
  block: T,
  method: K,
  listen: (plain: T[K]) => T[K],
): void {
  const plain = (block[method] as (...args: never[]) => unknown).bind(block) as T[K];
  block[method] = listen(plain);
}
