/**
 * How much of a core this thread gets: independent integer operations, of which a core at rest does several in a cycle. The hold
 * model waits for mispredicted branches most of the time and hardly notices a neighbour on the other half of the core; the
 * simulator, like this loop, then runs at half its speed.
 */

const OPERATIONS_PER_ROUND = 8;
/** What the operations came to: nothing is computed that nobody keeps. */
export let outcome = 0;

/** Runs eight chains of operations side by side; returns operations per second of wall time, those of the loop itself not counted. */
export function wideLoop(rounds: number): number {
  const start = performance.now();
  let [a, b, c, d, e, f, g, h] = [1, 2, 3, 4, 5, 6, 7, 8];
  for (let round = 0; round < rounds; round++) {
    a = (a + round) | 0;
    b ^= round;
    c = (c + 3) | 0;
    d ^= a;
    e = (e + round) | 0;
    f ^= 7;
    g = (g + 9) | 0;
    h ^= round;
  }
  const seconds = (performance.now() - start) / 1000;
  outcome = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
  return (rounds * OPERATIONS_PER_ROUND) / seconds;
}
