// Made by `npm run docs` from docs/reference/fidelity.json and reference/measurements-second.csv.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {
  'ethernet read message rate': { rows: 16, sources: 1, low: -0.964, high: -0.367 },
  'infiniband atomic message rate': { rows: 2, sources: 2, low: -0.077, high: 0.421 },
  'infiniband read bandwidth': { rows: 20, sources: 3, low: 0.009, high: 0.181 },
  'infiniband read latency': { rows: 30, sources: 4, low: -0.143, high: 0.254 },
  'infiniband read message rate': { rows: 32, sources: 5, low: 0.001, high: 1.27 },
  'infiniband send bandwidth': { rows: 13, sources: 1, low: 0.037, high: 0.077 },
  'infiniband send latency': { rows: 15, sources: 2, low: -0.031, high: 0.52 },
  'infiniband send message rate': { rows: 6, sources: 1, low: -0.349, high: 0.153 },
  'infiniband write bandwidth': { rows: 32, sources: 4, low: -0.187, high: 0.195 },
  'infiniband write latency': { rows: 30, sources: 3, low: -0.026, high: 0.456 },
  'infiniband write message rate': { rows: 33, sources: 5, low: -0.335, high: 2.497 },
};
