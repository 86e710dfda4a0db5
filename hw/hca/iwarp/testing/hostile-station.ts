/**
 * A station of its own on the cable of two cards, at the end of card a: builds frames of TCP by the standards alone and
 * reads those that card b sends to it. It shares no code with the engine. Sources: RFC 791, 9293, 1071.
 */
import { macBytesOf } from '../../../../base/index.ts';
import type { EthernetPort } from '../../../../wire/index.ts';
import { macs } from './card-bench.ts';
import { type ReadFrame, readFrame } from './segment-reader.ts';

const MAC = Uint8Array.of(2, 0, 0, 0, 0, 0x66);
const MAC_TEXT = '02:00:00:00:00:66';
const ETHERNET_BYTES = 14;
const IP_BYTES = 20;
const TCP_BYTES = 20;
export const flag = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16 } as const;

/** Addresses of a segment; a spoofed one has those of another station. */
export interface Ends {
  readonly mac: Uint8Array;
  readonly from: readonly number[];
  readonly fromPort: number;
  readonly toPort: number;
}

/** Damage of a frame: the fault that a receiver must find. */
export type Damage =
  | 'none'
  | 'TCP checksum'
  | 'IP checksum'
  | 'short offset'
  | 'long offset'
  | 'fragment'
  | 'long IP'
  | 'UDP';

export interface Segment {
  readonly sequence: number;
  readonly acknowledgement?: number;
  readonly flags?: number;
  readonly window?: number;
  /** Options, of which up to 40 bytes are sent, padded to dwords. */
  readonly options?: readonly number[];
  readonly payload?: Uint8Array;
  readonly damage?: Damage;
}

const noBytes = new Uint8Array(0);

/** Sum of 16-bit words with end-around carry (RFC 1071). */
function sumOf(bytes: Uint8Array, from: number, end: number, start: number): number {
  let sum = start;
  for (let at = from; at < end; at += 2) sum += (bytes[at]! << 8) | (at + 1 < end ? bytes[at + 1]! : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return sum;
}

/** The bytes of a frame to card b, at address 10.0.0.2. */
function frameOf({ mac, from, fromPort, toPort }: Ends, segment: Segment): Uint8Array {
  const { damage = 'none' } = segment;
  // An offset beyond the segment needs a short one.
  const { payload = noBytes, options = [] } = damage === 'long offset' ? {} : segment;
  const optionBytes = Math.min(40, Math.ceil(options.length / 4) * 4);
  const tcpBytes = TCP_BYTES + optionBytes + payload.length;
  const bytes = new Uint8Array(ETHERNET_BYTES + IP_BYTES + tcpBytes);
  const view = new DataView(bytes.buffer);
  const ip = ETHERNET_BYTES;
  const tcp = ip + IP_BYTES;
  bytes.set(macBytesOf(macs.b));
  bytes.set(mac, 6);
  view.setUint16(12, 0x0800);
  view.setUint16(ip, 0x4500);
  view.setUint16(ip + 2, IP_BYTES + tcpBytes + (damage === 'long IP' ? 4000 : 0));
  view.setUint16(ip + 6, damage === 'fragment' ? 0x2000 : 0x4000);
  view.setUint16(ip + 8, 0x4000 | (damage === 'UDP' ? 17 : 6));
  bytes.set([...from, 10, 0, 0, 2], ip + 12);
  view.setUint16(ip + 10, ~sumOf(bytes, ip, tcp, damage === 'IP checksum' ? 1 : 0) & 0xffff);
  view.setUint16(tcp, fromPort);
  view.setUint16(tcp + 2, toPort);
  view.setUint32(tcp + 4, segment.sequence >>> 0);
  view.setUint32(tcp + 8, (segment.acknowledgement ?? 0) >>> 0);
  const offsets: Partial<Record<Damage, number>> = { 'short offset': 4, 'long offset': 15 };
  bytes[tcp + 12] = (offsets[damage] ?? 5 + optionBytes / 4) << 4;
  bytes[tcp + 13] = segment.flags ?? flag.ACK;
  view.setUint16(tcp + 14, segment.window ?? 0xffff);
  bytes.set(options.slice(0, optionBytes), tcp + TCP_BYTES);
  bytes.set(payload, tcp + TCP_BYTES + optionBytes);
  const pseudo = sumOf(bytes, ip + 12, ip + 20, 6 + tcpBytes);
  view.setUint16(
    tcp + 16,
    ~sumOf(bytes, tcp, bytes.length, pseudo + (damage === 'TCP checksum' ? 1 : 0)) & 0xffff,
  );
  return bytes;
}

/** The outcome of frames with this damage at a card that has the TCP of its port. */
export const outcomeOf: Readonly<Record<Damage, 'engine' | 'damaged' | 'rings'>> = {
  none: 'engine',
  'TCP checksum': 'damaged',
  'IP checksum': 'damaged',
  'short offset': 'damaged',
  'long offset': 'damaged',
  fragment: 'rings',
  'long IP': 'rings',
  UDP: 'rings',
};

export class HostileStation {
  /** Frames of the card to this station that were not taken yet. */
  readonly received: ReadFrame[] = [];
  /** Frames sent, by their outcome. */
  readonly sent = { engine: 0, damaged: 0, rings: 0 };
  readonly #out: EthernetPort;

  /** @param out port of card a, to whose cable it is joined @param card port of card b */
  constructor(out: EthernetPort, card: EthernetPort) {
    this.#out = out;
    const send = card.send.bind(card);
    card.send = (source, at, lengthBytes, fromPs, isSentAgain) => {
      send(source, at, lengthBytes, fromPs, isSentAgain);
      const frame = readFrame(source.slice(at, at + lengthBytes));
      if (frame.destination === MAC_TEXT) this.received.push(frame);
    };
  }

  /** The station's own address, 10.0.0.3, from one of its ports. */
  endsOf(fromPort: number, toPort: number): Ends {
    return { mac: MAC, from: [10, 0, 0, 3], fromPort, toPort };
  }

  send(ends: Ends, segment: Segment): void {
    const bytes = frameOf(ends, segment);
    this.sent[outcomeOf[segment.damage ?? 'none']]++;
    this.#out.send(bytes, 0, bytes.length);
  }
}
