export type { Core } from './core.ts';
export type { CoreThread } from './core-thread.ts';
export { copyCyclesOf, hostConfigOf } from './costs.ts';
export { type CpuCause, type CpuReport, cpuCauses } from './cpu-account.ts';
export type { BusMap } from './device-port.ts';
export {
  Host,
  type Program,
  type ProgramContext,
} from './host.ts';
export {
  ProcessKilledError,
  ProgramFailedError,
} from './host-error.ts';
export * from './host-parameters.ts';
export { InterruptController, type InterruptStatistics } from './interrupt-controller.ts';
export { configAccessOf, driverPlatformOf } from './kernel.ts';
export { MarkedOperation, type ProcessorCost } from './marked-operation.ts';
export * from './mm/index.ts';
export { PhysicalMemory } from './physical-memory.ts';
export { Process, ProcessMemory } from './process.ts';
export { Signal } from './signal.ts';
