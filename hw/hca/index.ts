/** The HCA: the device, the tables of its parameters, and what a report or a test of a part of it needs by name. */
export { type ControlConfig, controlParameters } from './command-parameters.ts';
export { DataPath, type DataPathSetup, type DataPathTables, makeTables } from './data-path.ts';
export type { DataPathControl } from './data-path-control.ts';
export { type CapabilityConfig, capabilityParameters } from './device-capabilities.ts';
export type { DmaReads, DmaWrites, InterruptPort, SramAllocator } from './dma-ports.ts';
export { Hca, type HcaSetup } from './hca.ts';
export {
  OperationLedger,
  type OperationStage,
  type OperationTap,
  operationNames,
  operationStages,
} from './operations.ts';
export type { PacketPort } from './packet-port.ts';
export { type HcaConfig, hcaParameters } from './parameters.ts';
export { ProtocolViolations, type ViolationName, violation } from './protocol-violations.ts';
export { type DataPathViolation, dataPathViolations, ViolationCounters } from './violation-counters.ts';
