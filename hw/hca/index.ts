/** The HCA: the device, the tables of its parameters, and what a report or a test of a part of it needs by name. */
export {
  type CapabilityConfig,
  type CommandFaults,
  type ControlConfig,
  capabilityParameters,
  controlParameters,
  type DataPathControl,
  GO_ON,
  NEVER_END,
} from './commands/index.ts';
export { DataPath, type DataPathSetup, type DataPathTables, makeTables } from './data-path.ts';
export { Hca, type HcaSetup } from './hca.ts';
export {
  type ContextCache,
  type DmaReads,
  type DmaWrites,
  type InterruptPort,
  pageRequestSides,
  portNames,
  type SramAllocator,
} from './memory/index.ts';
export type { PacketPort } from './packets/index.ts';
export { type HcaConfig, hcaParameters } from './parameters.ts';
export {
  type DataPathViolation,
  dataPathViolations,
  type FarTimes,
  OperationLedger,
  type OperationStage,
  type OperationTap,
  operationNames,
  operationStages,
  ProtocolViolations,
  ViolationCounters,
  type ViolationName,
  violation,
} from './statistics/index.ts';
