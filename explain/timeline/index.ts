export {
  categoriesOfOperations,
  type ExplainedLosses,
  type Explanation,
  explained,
  operationOf,
  timeOf,
} from './explain.ts';
export { type OperationFlow, operationFlows } from './flows.ts';
export { argumentsOf, labelOf } from './labels.ts';
export { perfettoChunks } from './perfetto/export.ts';
export { edgesMax, type VcdClock, vcdOf } from './vcd.ts';
export {
  type Failure,
  failuresOf,
  type Losses,
  lossesOf,
  statusOf,
  type Unfinished,
  unfinishedOf,
} from './why.ts';
