/** Packets and frames on the cable with named headers, for a picture of one operation. */
import { tcpHeader } from '../../../abi/index.ts';
import { CaptureReading, packetsIn, readCapture, readFrame } from '../../../analyser/capture/index.ts';
import type { DecodedSection } from '../../protocol.ts';

export interface CablePacket {
  /** Instant at host 0's end when the packet has arrived or left completely, since power-on. */
  readonly atPs: number;
  readonly destinationQp: number;
  readonly psn: number;
  readonly opcode: number;
  readonly sections: readonly DecodedSection[];
}

/** A frame of TCP, whose messages of iWARP are named. */
export interface CableFrame {
  /** As of {@link CablePacket}. */
  readonly atPs: number;
  /** Bytes without padding and FCS. */
  readonly frameBytes: number;
  /** The messages that it completes; empty: an acknowledgement or a part of a message. */
  readonly words: string;
  readonly sections: readonly DecodedSection[];
}

/** @param file a capture of host 0's end of the cable */
export function cableFrames(file: Uint8Array): CableFrame[] {
  const words = messagesIn(file);
  const { frames, interfaces } = readCapture(file);
  return frames.flatMap(({ bytes, timePs, interface: from }, index) => {
    const read = readFrame(interfaces[from]!.linkType, bytes);
    if (read.kind !== 'other' || read.protocol !== 'TCP' || read.payload.length < tcpHeader.sizeBytes)
      return [];
    const { ethernet, vlan, ipv4, ipv6, payload } = read;
    const tcp = tcpHeader.decode(payload);
    const content = payload.subarray(4 * tcp.dataOffset);
    const said = words.get(index + 1) ?? [];
    const sections = sectionsOf({ Ethernet: ethernet, VLAN: vlan, IPv4: ipv4, IPv6: ipv6, TCP: tcp });
    if (said.length > 0) sections.push({ title: 'iWARP', fields: said });
    if (content.length > 0) sections.push(payloadSection(content));
    return [{ atPs: Number(timePs), frameBytes: bytes.length, words: said.join('; '), sections }];
  });
}

/** Messages of iWARP, by the number of the frame that completes them. */
function messagesIn(file: Uint8Array): Map<number, string[]> {
  const reading = new CaptureReading({ lines: linesMax, isTroubleOnly: false });
  reading.push(file);
  reading.end();
  const words = new Map<number, string[]>();
  for (const { service, utterances } of reading.conversations())
    if (service === 'iWARP')
      for (const { number, words: said } of utterances)
        words.set(number, [...(words.get(number) ?? []), said]);
  return words;
}

const linesMax = 10_000;

const sectionsOf = (tables: Readonly<Record<string, object | undefined>>): DecodedSection[] =>
  Object.entries(tables).flatMap(([title, values]) =>
    values === undefined ? [] : [{ title, fields: Object.entries(values).map(fieldText) }],
  );

/** @param file a capture of host 0's end of the cable */
export const cablePackets = (file: Uint8Array): CablePacket[] =>
  packetsIn(readCapture(file)).packets.map(({ timePs, packet }) => {
    const { lrh, ethernet, vlan, grh, ipv4, ipv6, udp, bth, headers, payload } = packet;
    const below = { LRH: lrh, Ethernet: ethernet, VLAN: vlan, GRH: grh, IPv4: ipv4, IPv6: ipv6, UDP: udp };
    const sections = sectionsOf({ ...below, BTH: bth, ...headers });
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
