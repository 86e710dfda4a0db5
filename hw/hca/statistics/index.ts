/** What other rooms use of this one: see README.md. */
export {
  type FarTimes,
  OperationLedger,
  type OperationStage,
  type OperationTap,
  operationNames,
  operationStages,
} from './operations.ts';
export { ProtocolViolations, type ViolationName, violation } from './protocol-violations.ts';
export { type DataPathViolation, dataPathViolations, ViolationCounters } from './violation-counters.ts';
