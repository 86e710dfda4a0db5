/** Interface of this room: see README.md. */
export { DiagnosticCounters, type DiagnosticName } from './diagnostic-counters.ts';
export { FlowCounters } from './flow-counters.ts';
export {
  type FarTimes,
  OperationLedger,
  type OperationStage,
  type OperationTap,
  operationNames,
  operationStages,
  rateStages,
  streamStages,
} from './operations.ts';
export { ProtocolViolations, violation } from './protocol-violations.ts';
export {
  type DataPathViolation,
  type RefusalKind,
  refusalKindOf,
  ViolationCounters,
} from './violation-counters.ts';
