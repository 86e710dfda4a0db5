/** 1, 2, 4 … below `size`: the distances of the steps of a tree over so many programs. */
export function doublings(size: number): number[] {
  const steps: number[] = [];
  for (let step = 1; step < size; step *= 2) steps.push(step);
  return steps;
}
