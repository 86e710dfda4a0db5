// Made by `npm run docs` from docs/reference/fidelity.json and the files of reference/measurements.md.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {
  'ethernet atomic latency': { rows: 4, sources: 1, low: -0.013, high: 0.023 },
  'ethernet atomic message rate': { rows: 1, sources: 1, low: 0.007, high: 0.007 },
  'ethernet read bandwidth': { rows: 4, sources: 3, low: -0.016, high: 0.007 },
  'ethernet read latency': { rows: 14, sources: 2, low: -0.112, high: 0.11 },
  'ethernet read message rate': { rows: 25, sources: 2, low: -0.95, high: 0.073 },
  'ethernet send bandwidth': { rows: 3, sources: 3, low: -0.014, high: 0.015 },
  'ethernet send latency': { rows: 4, sources: 1, low: -0.027, high: 0.052 },
  'ethernet write bandwidth': { rows: 4, sources: 3, low: -0.007, high: 0.023 },
  'ethernet write latency': { rows: 5, sources: 2, low: -0.045, high: 0.498 },
  'infiniband atomic message rate': { rows: 2, sources: 2, low: -0.035, high: 0.421 },
  'infiniband read bandwidth': { rows: 22, sources: 5, low: 0.009, high: 0.114 },
  'infiniband read latency': { rows: 31, sources: 5, low: -0.017, high: 0.098 },
  'infiniband read message rate': { rows: 32, sources: 5, low: -0.001, high: 0.31 },
  'infiniband send bandwidth': { rows: 26, sources: 3, low: -0.024, high: 0.059 },
  'infiniband send latency': { rows: 41, sources: 3, low: -0.223, high: 0.056 },
  'infiniband send message rate': { rows: 16, sources: 2, low: -0.04, high: 0.304 },
  'infiniband write bandwidth': { rows: 34, sources: 7, low: -0.036, high: 0.239 },
  'infiniband write latency': { rows: 28, sources: 5, low: -0.062, high: 0.088 },
  'infiniband write message rate': { rows: 28, sources: 4, low: -0.088, high: 0.177 },
};
