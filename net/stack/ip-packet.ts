/** A packet that has come, as the two versions of IP leave it to what is behind their headers. */
import type { IpAddress } from './address.ts';

/** One object, reused. */
export interface IpPacket {
  source: IpAddress;
  destination: IpAddress;
  protocol: number;
  /** Where in memory what is behind the headers begins, and its bytes. */
  at: number;
  payloadBytes: number;
  /** Of both addresses, as pseudo headers have it. */
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

/** What a packet is. `foreign`: to another address, or to all; `option`: with one that asks who does not know it to drop the packet. */
export type IpReading = 'ours' | 'bad' | 'foreign' | 'fragment' | 'option';
