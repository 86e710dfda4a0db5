/** The packets of a capture file, each once, with the addresses in their headers. */

import { tcpHeader } from '../../abi/index.ts';
import type { Decoded } from '../../base/index.ts';
import type { OtherFrame, WirePacket } from '../../wire/index.ts';
import { ipv4Text, ipv6Text } from './address-text.ts';
import { LinkType } from './capture-layouts.ts';
import type { Capture } from './capture-reader.ts';
import type { CapturedFrame, CaptureInterface } from './capture-stream.ts';
import { readFrame, seenAt } from './frame-reader.ts';
import type { CapturedPacket, Said } from './packet-listener.ts';
import { type Place, type Sighting, Sightings } from './sightings.ts';
import { type SeenPacket, seemsTwoEnded } from './two-ended.ts';

/** A TCP segment of a capture. */
export interface CapturedSegment extends Omit<CapturedPacket, 'packet'> {
  readonly fromPort: number;
  readonly toPort: number;
  readonly sequence: number;
  readonly isSyn: boolean;
  /** Up to the end of the captured part. */
  readonly payload: Uint8Array;
  /** Payload bytes on the wire. */
  readonly payloadBytes: number;
}

/** Receives the contents of a capture. */
export interface PacketReceiver {
  packet(packet: CapturedPacket): Said;
  /** @returns undefined if the segment belongs to no iWARP connection */
  segment(segment: CapturedSegment): Said | undefined;
  /** Merges two networks after a packet was seen in both. */
  joinNetworks(from: number, into: number): void;
}

/** Unusable frames of one kind: their number, and the first of them. */
export interface FrameTally {
  readonly firstNumber: number;
  readonly reason: string;
  count: number;
}

/** Greatest number of distinguished kinds; frames of further kinds count as the last one. */
const TALLIES_MAX = 256;

class Tallies {
  readonly all = new Map<string, FrameTally>();

  add(reason: string, number: number): void {
    const isFull = this.all.size >= TALLIES_MAX && !this.all.has(reason);
    const key = isFull ? 'of more kinds' : reason;
    const tally = this.all.get(key);
    if (tally === undefined) this.all.set(key, { firstNumber: number, reason: key, count: 1 });
    else tally.count++;
  }

  list(): FrameTally[] {
    return [...this.all.values()];
  }
}

/** Number of frames after which the reader decides whether the capture was recorded at two places. */
const PLACES_AHEAD = 400;
/** Greatest number of bytes held for that decision, so that long frames need no more memory than short ones. */
const PLACES_AHEAD_BYTES = 32 * 2 ** 20;
/** Greatest number of malformed packets listed; further ones are only counted. */
const MALFORMED_MAX = 100;

/** Sorts the frames of a capture and delivers each packet once. */
export class PacketFeed {
  readonly malformed: { readonly number: number; readonly reason: string }[] = [];
  malformedCount = 0;
  /** Sightings of packets already seen at another place. */
  repeatedCount = 0;
  /** Frames that the capture cut; and the number of those too short to use, by the missing part. */
  cutCount = 0;
  readonly #cut = new Tallies();
  readonly #other = new Tallies();
  readonly #unread = new Tallies();
  readonly #sightings = new Sightings<Said>();
  readonly #receiver: PacketReceiver;
  #count = 0;
  /** The first frames, kept until the reader knows whether they come from two places. */
  #first: { readonly frame: CapturedFrame; readonly from: CaptureInterface }[] | undefined = [];
  #firstBytes = 0;
  /** Network of each interface. */
  readonly #networks: number[] = [];
  /** Names of the interfaces that have packets. */
  readonly #namesakes = new Map<string, number>();

  constructor(receiver: PacketReceiver) {
    this.#receiver = receiver;
  }

  /** Frames of other protocols. */
  get other(): FrameTally[] {
    return this.#other.list();
  }

  /** Frames that end before the field that names their content. */
  get cut(): FrameTally[] {
    return this.#cut.list();
  }

  /** Frames in a form that no reader supports. */
  get unread(): FrameTally[] {
    return this.#unread.list();
  }

  /** Whether the capture mixes two places without naming them. */
  get isTwoEnded(): boolean {
    return this.#sightings.isTwoEnded;
  }

  take(frame: CapturedFrame, from: CaptureInterface): void {
    if (this.#first === undefined) {
      this.#sort(frame, from);
      return;
    }
    this.#firstBytes += frame.bytes.length;
    const count = this.#first.push({ frame, from });
    if (count === PLACES_AHEAD || this.#firstBytes >= PLACES_AHEAD_BYTES) this.end();
  }

  /** Handles the end of the capture. */
  end(): void {
    const first = this.#first ?? [];
    this.#first = undefined;
    const places = new Set(
      first.map(({ frame, from }) => {
        const { device, direction } = placeOf(frame, from.linkType, from.name);
        return `${frame.interface} ${device} ${direction}`;
      }),
    );
    if (places.size === 1 && [...places][0]!.endsWith('unknown'))
      this.#sightings.isTwoEnded = seemsTwoEnded(
        first.flatMap(({ frame, from }) => seenPacketsIn(frame, from)),
      );
    for (const { frame, from } of first) this.#sort(frame, from);
  }

  #sort(frame: CapturedFrame, { linkType, name }: CaptureInterface): void {
    const number = ++this.#count;
    const read = readFrame(linkType, frame.bytes, frame.originalBytes);
    if (frame.bytes.length < frame.originalBytes) this.cutCount++;
    this.#introduce(frame.interface, linkType, name);
    if (read.kind === 'unread') this.#unread.add(read.reason, number);
    else if (read.kind === 'cut') this.#cut.add(read.reason, number);
    else if (read.kind === 'malformed') {
      this.malformedCount++;
      if (this.malformed.length < MALFORMED_MAX) this.malformed.push({ number, reason: read.reason });
    } else if (read.kind === 'packet') this.#packet(frame, number, read, placeOf(frame, linkType, name));
    else if (!this.#segment(frame, number, read, placeOf(frame, linkType, name)))
      this.#other.add(read.protocol, number);
  }

  #packet(frame: CapturedFrame, number: number, packet: WirePacket, place: Place): void {
    const { timePs, comment: note } = frame;
    const { from, to } = addressesOf(packet);
    const sighting = this.#sightings.see(keyOf(from, to, packet), place);
    if (sighting.kept === undefined) {
      const network = this.#networks[frame.interface]!;
      sighting.kept = this.#receiver.packet({ number, timePs, from, to, network, packet, note });
    } else this.#seenAgain(sighting, place, [isMarked(packet) ? 'marked for congestion' : '', note], number);
  }

  /** Returns false for a segment that belongs to no iWARP connection. */
  #segment(frame: CapturedFrame, number: number, other: OtherFrame, place: Place): boolean {
    if (other.protocol !== 'TCP' || other.payload.length < tcpHeader.sizeBytes) return false;
    const { timePs, comment: note } = frame;
    const { from, to } = addressesOf(other);
    const tcp = tcpHeader.decode(other.payload);
    const headerBytes = 4 * tcp.dataOffset;
    const payloadBytes = Math.max(0, other.payloadBytes - headerBytes);
    const key = segmentKeyOf(from, to, tcp, payloadBytes, other);
    const sighting = this.#sightings.see(key, place);
    if (sighting.kept !== undefined) {
      this.#seenAgain(sighting, place, [note], number);
      return true;
    }
    sighting.kept = this.#receiver.segment({
      ...{ number, timePs, from, to, note, payloadBytes },
      network: this.#networks[frame.interface]!,
      fromPort: tcp.sourcePort,
      toPort: tcp.destinationPort,
      sequence: tcp.sequence,
      isSyn: tcp.syn === 1,
      payload: other.payload.subarray(headerBytes),
    });
    return sighting.kept !== undefined;
  }

  /** Adds to a packet's line the facts that only another place shows. */
  #seenAgain(
    { kept, places }: Sighting<Said>,
    place: Place,
    remarks: readonly string[],
    number: number,
  ): void {
    const [first] = places;
    this.repeatedCount++;
    this.#join(first!.interface, place.interface);
    for (const remark of new Set(remarks)) if (remark !== '') kept!.remark(`${remark}, in frame ${number}`);
  }

  /** Keeps the network that was found first: it usually has more connections to move. */
  #join(one: number, other: number): void {
    const networks = [this.#networks[one]!, this.#networks[other]!] as const;
    const [into, from] = [Math.min(...networks), Math.max(...networks)];
    if (into === from) return;
    this.#networks.forEach((network, index) => {
      if (network === from) this.#networks[index] = into;
    });
    this.#receiver.joinNetworks(from, into);
  }

  /**
   * Assigns a network to an interface. A LID is valid only in its subnet; an IP address is valid on all interfaces
   * except those of another capture with the same name.
   */
  #introduce(number: number, linkType: number, name: string): void {
    if (this.#networks[number] !== undefined) return;
    const isInfiniband = linkType === LinkType.INFINIBAND || linkType === LinkType.ERF;
    const namesakes = this.#namesakes.get(name) ?? 0;
    // InfiniBand networks have odd numbers, IP networks even ones.
    this.#networks[number] = isInfiniband ? 2 * number + 1 : 2 * namesakes;
    this.#namesakes.set(name, namesakes + 1);
  }
}

const isMarked = ({ bth, ipv4, ipv6 }: WirePacket): boolean =>
  bth.fecn === 1 || ipv4?.ecn === CONGESTION_EXPERIENCED || ipv6?.ecn === CONGESTION_EXPERIENCED;
const CONGESTION_EXPERIENCED = 3;

function placeOf(
  { interface: number, bytes, direction }: CapturedFrame,
  linkType: number,
  name: string,
): Place {
  const seen = seenAt(linkType, bytes);
  return {
    ...{ interface: number, name },
    device: seen.device,
    direction: direction === 'unknown' ? seen.direction : direction,
  };
}

/** Identity of a packet at both ends; a damaged copy differs. */
function keyOf(from: string, to: string, packet: WirePacket): string {
  const { bth, payloadBytes, icrc, isIcrcRight, isVcrcRight } = packet;
  const crcs = isIcrcRight && isVcrcRight ? icrc : `${icrc} ${isIcrcRight} ${isVcrcRight}`;
  return `${from}>${to} ${bth.opcode} ${bth.destinationQp} ${bth.psn} ${payloadBytes} ${crcs}`;
}

/** Identity of a segment at both ends; a sender with offload leaves the checksum to its card. */
function segmentKeyOf(
  from: string,
  to: string,
  { sourcePort, destinationPort, sequence, acknowledgement }: Decoded<typeof tcpHeader>,
  payloadBytes: number,
  { ipv4 }: OtherFrame,
): string {
  return `${from}:${sourcePort}>${to}:${destinationPort} ${sequence} ${acknowledgement} ${payloadBytes} ${ipv4?.identification}`;
}

/** The packet or segment in a frame. */
function seenPacketsIn(
  { bytes, originalBytes, timePs }: CapturedFrame,
  { linkType }: CaptureInterface,
): SeenPacket[] {
  const read = readFrame(linkType, bytes, originalBytes);
  if (read.kind === 'packet') {
    const { from, to } = addressesOf(read);
    return [{ key: keyOf(from, to, read), from, to, number: read.bth.psn, timePs }];
  }
  if (read.kind !== 'other' || read.protocol !== 'TCP' || read.payload.length < tcpHeader.sizeBytes)
    return [];
  const { from, to } = addressesOf(read);
  const tcp = tcpHeader.decode(read.payload);
  const key = segmentKeyOf(from, to, tcp, read.payloadBytes, read);
  return [{ key, from, to, number: tcp.sequence, timePs }];
}

export interface CapturedPackets {
  readonly packets: readonly CapturedPacket[];
  readonly malformed: PacketFeed['malformed'];
}

/** Returns the packets of a whole capture; a packet seen at several places is returned once. */
export function packetsIn({ interfaces, frames }: Capture): CapturedPackets {
  const packets: CapturedPacket[] = [];
  const feed = new PacketFeed({
    packet: (packet) => {
      packets.push(packet);
      return { remark: () => undefined };
    },
    segment: () => undefined,
    joinNetworks: () => undefined,
  });
  for (const frame of frames) feed.take(frame, interfaces[frame.interface]!);
  feed.end();
  return { packets, malformed: feed.malformed };
}

function addressesOf({ lrh, grh, ipv4, ipv6 }: WirePacket | OtherFrame): {
  readonly from: string;
  readonly to: string;
} {
  if (lrh !== undefined) return { from: `LID ${lrh.sourceLid}`, to: `LID ${lrh.destinationLid}` };
  if (ipv4 !== undefined) return { from: ipv4Text(ipv4.source), to: ipv4Text(ipv4.destination) };
  if (ipv6 !== undefined) return { from: ipv6Text(ipv6.source), to: ipv6Text(ipv6.destination) };
  return { from: ipv6Text(grh!.sourceGid), to: ipv6Text(grh!.destinationGid) };
}
