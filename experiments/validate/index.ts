export { bandsOf } from './band-of-rows.ts';
export { cardValues } from './card-values.ts';
export { isRun } from './family.ts';
export { fidelityPage, type SimulatedFigures } from './fidelity-page.ts';
export { measure } from './measure.ts';
export {
  circumstance,
  groupOf,
  isGiven,
  type Measurement,
  parsedMeasurements,
  statedCircumstance,
} from './measurements.ts';
export { medianOf } from './median.ts';
export { type Figures, type PerfPoint, type Point, pointKey } from './points.ts';
export { circumstancesText, errorText, figureText, shareText, tallyText } from './shown.ts';
export {
  type Case,
  casesOf,
  chosen,
  type GroupResult,
  groupsOf,
  groupTitle,
  judged,
  ownCasesOf,
  type PointOutcome,
  pointsOf,
  type RowChoice,
  type RowResult,
  resultOf,
  type Tally,
  tallyOf,
} from './validation.ts';
export { tolerances } from './verdict.ts';
