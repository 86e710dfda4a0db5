// Made by `npm run docs` from docs/reference/fidelity.json and the files of reference/measurements.md.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {
  'ethernet atomic latency': { rows: 4, sources: 1, low: 0.072, high: 0.231 },
  'ethernet atomic message rate': { rows: 2, sources: 1, low: -0.038, high: -0.012 },
  'ethernet read bandwidth': { rows: 5, sources: 3, low: 0.003, high: 0.054 },
  'ethernet read latency': { rows: 15, sources: 2, low: -0.681, high: -0.076 },
  'ethernet read message rate': { rows: 25, sources: 2, low: -0.961, high: -0.055 },
  'ethernet send bandwidth': { rows: 3, sources: 3, low: -0.014, high: 0.02 },
  'ethernet send latency': { rows: 4, sources: 1, low: -0.218, high: 0.018 },
  'ethernet write bandwidth': { rows: 4, sources: 3, low: -0.008, high: 0.025 },
  'ethernet write latency': { rows: 6, sources: 2, low: -0.238, high: 0.498 },
  'infiniband atomic message rate': { rows: 2, sources: 2, low: -0.077, high: 0.421 },
  'infiniband read bandwidth': { rows: 22, sources: 5, low: 0.01, high: 0.181 },
  'infiniband read latency': { rows: 32, sources: 5, low: -0.154, high: 0.21 },
  'infiniband read message rate': { rows: 32, sources: 5, low: 0.001, high: 1.27 },
  'infiniband send bandwidth': { rows: 27, sources: 3, low: 0.027, high: 0.077 },
  'infiniband send latency': { rows: 43, sources: 3, low: -0.233, high: 0.271 },
  'infiniband send message rate': { rows: 16, sources: 2, low: -0.345, high: 0.11 },
  'infiniband write bandwidth': { rows: 35, sources: 7, low: -0.187, high: 0.212 },
  'infiniband write latency': { rows: 34, sources: 5, low: -0.032, high: 0.429 },
  'infiniband write message rate': { rows: 33, sources: 5, low: -0.335, high: 2.497 },
};
