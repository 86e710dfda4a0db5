export type { Core } from './core.ts';
export type { CoreThread } from './core-thread.ts';
export { copyCyclesOf, driverCostsOf, hostConfigOf, verbsCostsOf } from './costs.ts';
export { type CpuCause, type CpuReport, cpuCauses, cpuReportOf } from './cpu-account.ts';
export type { AccessDone, BusMap, DevicePort } from './device-port.ts';
export {
  Host,
  type HostOptions,
  type HostReport,
  type Program,
  type ProgramBody,
  type ProgramContext,
} from './host.ts';
export {
  CoreBusyError,
  ProcessKilledError,
  ProgramFailedError,
  ThreadNotRunningError,
} from './host-error.ts';
export * from './host-parameters.ts';
export { InterruptController, type InterruptCounts } from './interrupt-controller.ts';
export { type IommuCosts, IommuDomain, type IommuPort } from './iommu-domain.ts';
export { type BarWindow, configAccessOf, driverPlatformOf } from './kernel.ts';
export * from './mm/index.ts';
export { PhysicalMemory } from './physical-memory.ts';
export { Process, ProcessMemory, SystemCallCounts, type SystemCallPath } from './process.ts';
export { Signal } from './signal.ts';
export { StoreSpaceError } from './store-buffer.ts';
