export type { LinkIdentity } from './config-space.ts';
export * from './dllp.ts';
export {
  type EnumeratedFunction,
  enumerateFunction,
  enumerationParameters,
} from './enumerate.ts';
export * from './flow-control.ts';
export { PcieFunction } from './function.ts';
export { functionWires } from './function-blocks.ts';
export { checkFunctionConfig, type FunctionConfig, functionParameters } from './function-parameters.ts';
export type { AccessObserver, BarTarget } from './function-port.ts';
export * from './link-copy.ts';
export type { LinkSender } from './link-flow.ts';
export * from './link-ordering.ts';
export * from './link-parameters.ts';
export { type CompletionRunReceiver, PcieLinkPort } from './link-port.ts';
export { linkRateOf } from './link-rate.ts';
export { STALL_REASONS } from './link-stall.ts';
export { MemoryReadFields, MemoryWriteFields } from './memory-request.ts';
export { PayloadReferences } from './payload-references.ts';
export { RootComplex } from './root-complex.ts';
export { rootComplexWires } from './root-complex-blocks.ts';
export type { CorePort } from './root-complex-core-port.ts';
export type { StoreSender } from './root-complex-core-queue.ts';
export * from './root-complex-interfaces.ts';
export * from './root-complex-parameters.ts';
export {
  attachTap,
  type LinkTap,
  type TappedCompletion,
  type TappedData,
  type TappedRequest,
} from './root-complex-tap.ts';
export * from './tlp.ts';
export { ZeroCopyWriter } from './zero-copy-writer.ts';
