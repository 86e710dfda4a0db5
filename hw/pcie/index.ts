export { ErrorReporting, type ErrorRole } from './aer.ts';
export { CorrectableError, UncorrectableError } from './aer-capability.ts';
export { Bars } from './bars.ts';
export { CapabilityId, ExtendedCapabilityId } from './capabilities.ts';
export type { ResetKind } from './config-image.ts';
export { configMask } from './config-register.ts';
export { ConfigSpace, type LinkIdentity } from './config-space.ts';
export * from './credits.ts';
export * from './dllp.ts';
export {
  type Activation,
  type AssignedBar,
  type ConfigAccess,
  type EnumeratedFunction,
  type EnumerationConfig,
  enumerateBus,
  enumerateFunction,
  enumerationParameters,
  type FoundCapability,
} from './enumerate.ts';
export { codeOfSize, expressCapability } from './express-capability.ts';
export { type FunctionNeighbours, type FunctionOptions, PcieFunction } from './function.ts';
export { checkFunctionConfig, type FunctionConfig, functionParameters } from './function-parameters.ts';
export type { BarTarget, FunctionPort } from './function-port.ts';
export * from './link-copy.ts';
export type { CompletionTaker, LinkPortOptions, TlpReceiver } from './link-engine.ts';
export * from './link-ordering.ts';
export * from './link-parameters.ts';
export { PcieLinkPort } from './link-port.ts';
export { type LinkRate, linkRateOf } from './link-rate.ts';
export type { LinkReceiver } from './link-receiver.ts';
export { STALL_REASONS } from './link-stall.ts';
export type { LinkTransmitter } from './link-transmitter.ts';
export { type MessageSender, Msix, MsixCounters } from './msix.ts';
export { PayloadLoans } from './payload-loans.ts';
export { FunctionCounters } from './request-decoder.ts';
export { RootComplex, type RootComplexOptions } from './root-complex.ts';
export type { CorePort } from './root-complex-core-port.ts';
export * from './root-complex-interfaces.ts';
export { DeviceFaultLog, type LoggedFault } from './root-complex-log.ts';
export * from './root-complex-parameters.ts';
export { attachTap, type LinkTap } from './root-complex-tap.ts';
export * from './tlp.ts';
export type { TlpCount, TrafficCount } from './tlp-count.ts';
export { type TlpHeader, tlpHeaderOf } from './tlp-header.ts';
export { type DecodedTlp, decodeTlpHeader, encodeTlpHeader, formatTlpHeader } from './tlp-layout.ts';
export { BAR_REGISTER_COUNT, BAR_REGISTER_OFFSET, type0Header } from './type0-header.ts';
