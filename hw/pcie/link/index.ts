export { AdjoiningCopies } from './adjoining-copies.ts';
export * from './flow-control.ts';
export { framingOf } from './link-framings.ts';
export * from './link-ordering.ts';
export * from './link-parameters.ts';
export { linkRateOf } from './link-rate.ts';
export { STALL_REASONS } from './link-stall.ts';
export * from './payload-copier.ts';
export { PayloadReferences } from './payload-references.ts';
export {
  type CompletionRunReceiver,
  type ConfigRequest,
  PcieLinkPort,
  type TlpReceiver,
} from './pcie-link-port.ts';
export type { LinkSender } from './transmit-flow.ts';
export { CarriedPayload, type WritePayload, ZeroCopyPayload } from './write-payload.ts';
export { ZeroCopyWriter } from './zero-copy-writer.ts';
