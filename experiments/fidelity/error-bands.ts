// Made by `npm run docs` from docs/reference/fidelity.json and reference/measurements-second.csv.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {
  'ethernet message rate': { rows: 16, low: -0.964, high: -0.367 },
  'ethernet read message rate': { rows: 16, low: -0.964, high: -0.367 },
  'infiniband atomic message rate': { rows: 2, low: -0.077, high: 0.421 },
  'infiniband bandwidth': { rows: 42, low: -0.187, high: 0.241 },
  'infiniband latency': { rows: 99, low: -0.122, high: 0.416 },
  'infiniband message rate': { rows: 110, low: -0.273, high: 0.771 },
  'infiniband read bandwidth': { rows: 6, low: -0.224, high: 0.113 },
  'infiniband read latency': { rows: 34, low: -0.143, high: 0.254 },
  'infiniband read message rate': { rows: 48, low: 0.001, high: 0.963 },
  'infiniband send bandwidth': { rows: 14, low: 0.037, high: 0.11 },
  'infiniband send latency': { rows: 31, low: -0.09, high: 0.44 },
  'infiniband send message rate': { rows: 13, low: -0.345, high: 0.459 },
  'infiniband write bandwidth': { rows: 22, low: -0.193, high: 0.353 },
  'infiniband write latency': { rows: 34, low: -0.015, high: 0.429 },
  'infiniband write message rate': { rows: 47, low: -0.341, high: 1.466 },
};
