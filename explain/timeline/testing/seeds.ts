/** Seeds of a spec with randomly drawn runs: its own, or those that a variable names as from..to. */
export function seedsOf(variable: string, own: readonly number[]): readonly number[] {
  const [first, last] = (process.env[variable] ?? '').split('..').map(Number);
  if (first === undefined || last === undefined) return own;
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}
