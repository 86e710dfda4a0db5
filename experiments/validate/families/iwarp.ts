/**
 * Measurements of iWARP cards (group W). None of them is simulated: reference/iwarp-cards.md lists the model parameters
 * that they would determine.
 */
import type { Family } from '../family.ts';

export const iwarpFamilies: readonly Family[] = [
  {
    name: 'iWARP cards',
    of: { group: 'W' },
    workload: 'bandwidth, latency and storage by iWARP',
    notRun: { kind: 'card', why: 'no profile is of an iWARP card, and the sources state no message size' },
  },
];
