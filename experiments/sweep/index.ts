export type { RunManner } from './assignment.ts';
export type { AxisValue } from './axis.ts';
export { axisValuesOf, gridsOver } from './axis-grid.ts';
export { headerOf, pointsOf, type SweepPoint } from './expansion.ts';
export { figureKindOf, figureText } from './figure-kinds.ts';
export { outcomeOfFabric, outcomeOfRun } from './figures.ts';
export { kneeOf } from './knee.ts';
export { mergedResults, missingOf } from './merge.ts';
export { isMoreBetter, paretoFront } from './pareto.ts';
export { type Results, ResultsFile, readResults, writeJoinedResults } from './results-file.ts';
export type { Outcome, SweepHeader, SweepRow } from './row.ts';
export {
  laneEngine,
  type PointOrder,
  type PointRunner,
  runWork,
  type Shard,
  type SweepEngine,
  workOf,
} from './runner.ts';
export { checkedSpec, readSpec, type SweepSpec } from './spec.ts';
export { specSchema } from './spec-schema.ts';
export { figureNamesOf, isSqlite, readSqlite, writeSqlite } from './sqlite.ts';
export { type FigureSummary, idleAxesOf, type KneeSummary, summaryOf } from './summary.ts';
export { isFabric } from './workload-field.ts';
