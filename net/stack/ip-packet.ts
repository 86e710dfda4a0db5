/** A received packet, in the form in which both IP versions pass it to the next protocol. */
import type { IpAddress } from './address.ts';

/** One object, reused. */
export interface IpPacket {
  source: IpAddress;
  destination: IpAddress;
  protocol: number;
  /** Address and length in bytes of the data after the headers. */
  at: number;
  payloadBytes: number;
  /** Sum of both addresses, as in pseudo headers. */
  addressSum: number;
}

export const newPacket = (): IpPacket => ({
  source: 0,
  destination: 0,
  protocol: 0,
  at: 0,
  payloadBytes: 0,
  addressSum: 0,
});

/**
 * Kinds of packets. `foreign`: to another address, or to all; `option`: with an option that tells receivers to drop the packet
 * if they do not recognise it.
 */
export type IpReading = 'ours' | 'bad' | 'foreign' | 'fragment' | 'option';
