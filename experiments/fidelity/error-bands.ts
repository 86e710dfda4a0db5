// Made by `npm run docs` from docs/reference/fidelity.json and reference/measurements-second.csv.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {};
