export { Driver } from './driver.ts';
export type * from './kernel-verbs.ts';
export type { NetworkCounts } from './network/index.ts';
export type { OnDemandStatistics } from './on-demand/index.ts';
export { driverParameters } from './parameters.ts';
export {
  disableBusMaster,
  disableMsix,
  enableBusMaster,
  enableMsix,
  findMsix,
  type MsixTable,
} from './pci-function.ts';
export type * from './platform.ts';
export * from './rdma-cm.ts';
export * from './uapi.ts';
