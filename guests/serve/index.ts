/** Serving HCAs to real guests: see README.md. */

export type { AccessCount } from './access-counters.ts';
export type { Defect, DefectCause } from './defect.ts';
export { Emulation } from './emulation.ts';
export type { Awaited, EmulationTime } from './emulation-time.ts';
export { servingParameters } from './parameters.ts';
export type { PeerProgram, PeerState } from './peer-host.ts';
export { adapterArguments, wireNetworkLine } from './qemu-options.ts';
export { renderDevicesReport, renderServeReport } from './render-serve-report.ts';
export { type ServedMachine, type ServeListeners, serve } from './serve.ts';
export type { ServeStart } from './serve-messages.ts';
export {
  type DevicesOptions,
  type DevicesOrder,
  devicesOrderOf,
  type PeerOptions,
  type PeerOrder,
  type ServeOptions,
  type ServeOrder,
  servedProfile,
} from './serve-options.ts';
export {
  buildDevicesReport,
  type DevicesReport,
  type ServedNodeReport,
  type ServeReport,
} from './serve-report.ts';
export { type Cabling, servedHcasMax } from './served-plan.ts';
export { ServedTime } from './served-time.ts';
export type { Slot } from './slot.ts';
export type { NotModelled, SlotAccesses } from './slot-ledger.ts';
