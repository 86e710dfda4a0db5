export { AdjoiningCopies } from './adjoining-copies.ts';
export * from './flow-control.ts';
export * from './link-copy.ts';
export type { LinkSender } from './link-flow.ts';
export { framingOf } from './link-framings.ts';
export * from './link-ordering.ts';
export * from './link-parameters.ts';
export {
  type CompletionRunReceiver,
  type ConfigRequest,
  PcieLinkPort,
  type TlpReceiver,
} from './link-port.ts';
export { linkRateOf } from './link-rate.ts';
export { STALL_REASONS } from './link-stall.ts';
export { PayloadReferences } from './payload-references.ts';
export { CarriedPayload, type WritePayload, ZeroCopyPayload } from './write-payload.ts';
export { ZeroCopyWriter } from './zero-copy-writer.ts';
