/** Packets on the cable with named headers, for a picture of one operation. */
import { packetsIn, readCapture } from '../../../analyser/capture/index.ts';
import type { DecodedSection } from '../../protocol.ts';

export interface CablePacket {
  /** Instant at host 0's end when the packet has arrived or left completely, since power-on. */
  readonly atPs: number;
  readonly destinationQp: number;
  readonly psn: number;
  readonly opcode: number;
  readonly sections: readonly DecodedSection[];
}

/** @param file a capture of host 0's end of the cable */
export const cablePackets = (file: Uint8Array): CablePacket[] =>
  packetsIn(readCapture(file)).packets.map(({ timePs, packet }) => {
    const { lrh, ethernet, vlan, grh, ipv4, ipv6, udp, bth, headers, payload } = packet;
    const below = { LRH: lrh, Ethernet: ethernet, VLAN: vlan, GRH: grh, IPv4: ipv4, IPv6: ipv6, UDP: udp };
    const tables: Record<string, object | undefined> = { ...below, BTH: bth, ...headers };
    const sections = Object.entries(tables).flatMap(([title, values]) =>
      values === undefined ? [] : [{ title, fields: Object.entries(values).map(fieldText) }],
    );
    return {
      atPs: Number(timePs),
      destinationQp: bth.destinationQp,
      psn: bth.psn,
      opcode: bth.opcode,
      sections: payload.length === 0 ? sections : [...sections, payloadSection(payload)],
    };
  });

/** Decimal below 10, else hexadecimal, like the bus analyser. */
function fieldText([name, value]: [string, unknown]): string {
  if (value instanceof Uint8Array) return `${name}=0x${hexOf(value)}`;
  const number = value as number | bigint;
  return `${name}=${number < 10 ? number : `0x${number.toString(16)}`}`;
}

const shownBytes = 16;

function payloadSection(payload: Uint8Array): DecodedSection {
  const rest = payload.length > shownBytes ? '…' : '';
  return {
    title: 'payload',
    fields: [`${payload.length} bytes:`, `${hexOf(payload.subarray(0, shownBytes))}${rest}`],
  };
}

const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
