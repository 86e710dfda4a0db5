/** A latency as a sum of named terms, to show the parts of its time. */

export interface Term {
  readonly name: string;
  readonly ps: number;
}

export type Terms = readonly Term[];

export const totalPs = (terms: Terms): number => terms.reduce((sum, { ps }) => sum + ps, 0);

/** Terms of the same name added up, in the order of their first appearance. */
export function gathered(terms: Terms): Terms {
  const sums = new Map<string, number>();
  for (const { name, ps } of terms) sums.set(name, (sums.get(name) ?? 0) + ps);
  return [...sums].filter(([, ps]) => ps !== 0).map(([name, ps]) => ({ name, ps }));
}
