export { isRun } from './family.ts';
export { fidelityPage, type SimulatedFigures } from './fidelity-page.ts';
export { measure } from './measure.ts';
export { circumstance, parsedMeasurements } from './measurements.ts';
export { type Figures, type PerfPoint, type Point, pointKey } from './points.ts';
export { circumstancesText, errorText, figureText, shareText } from './shown.ts';
export {
  type Case,
  casesOf,
  chosen,
  type GroupResult,
  groupsOf,
  groupTitles,
  type PointOutcome,
  pointsOf,
  type RowChoice,
  type RowResult,
  resultOf,
} from './validation.ts';
export { tolerances } from './verdict.ts';
