/** The HCA: the device, the tables of its parameters, and what a report or a test of a part of it needs by name. */
export { type ControlConfig, controlParameters } from './commands/command-parameters.ts';
export type { DataPathControl } from './commands/data-path-control.ts';
export { type CapabilityConfig, capabilityParameters } from './commands/device-capabilities.ts';
export { DataPath, type DataPathSetup, type DataPathTables, makeTables } from './data-path.ts';
export { Hca, type HcaSetup } from './hca.ts';
export type { DmaReads, DmaWrites, InterruptPort, SramAllocator } from './memory/dma-ports.ts';
export type { PacketPort } from './packets/packet-port.ts';
export { type HcaConfig, hcaParameters } from './parameters.ts';
export {
  OperationLedger,
  type OperationStage,
  type OperationTap,
  operationNames,
  operationStages,
} from './statistics/operations.ts';
export { ProtocolViolations, type ViolationName, violation } from './statistics/protocol-violations.ts';
export {
  type DataPathViolation,
  dataPathViolations,
  ViolationCounters,
} from './statistics/violation-counters.ts';
