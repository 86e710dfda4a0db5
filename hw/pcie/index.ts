export * from './credits.ts';
export * from './dllp.ts';
export * from './link-copy.ts';
export * from './link-ordering.ts';
export * from './link-parameters.ts';
export {
  type CompletionFaults,
  type LinkPortOptions,
  PcieLinkPort,
  type TlpListener,
} from './link-port.ts';
export { type LinkRate, linkRateOf } from './link-rate.ts';
export type { LinkReceiver, TrafficCount } from './link-receiver.ts';
export { type LinkTransmitter, STALL_REASONS } from './link-transmitter.ts';
export * from './tlp.ts';
