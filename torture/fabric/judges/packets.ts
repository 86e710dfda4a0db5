/**
 * Packets at the cables of hosts, by a capture: each that arrives left another host before, with these bytes, for this host, and packets
 * from one host to one queue pair keep their order. As many arrive as the report counts.
 */

import { cableEndsOf, isIntact, packetIn, type SeenFrame, transportPacketIn } from '../../judges/index.ts';
import { hasPacketFault, isOnEthernet, type PlayedFabric } from '../played.ts';
import { dueOn } from './balance.ts';
import { ageMaxPs } from './limits.ts';
import { isCarried } from './partitions.ts';

const findingsMax = 3;
const frameBytesMin = 60;
/** Header of a captured packet of InfiniBand (extensible record format). */
const recordHeaderBytes = 16;
const typeOffset = 12;
const networkOffset = 14;
const controlType = 0x8808;
const ipv4Type = 0x0800;
const rocev1Type = 0x8915;

const typeOf = ({ bytes }: SeenFrame): number => bytes[typeOffset]! * 256 + bytes[typeOffset + 1]!;

export function judgePackets(played: PlayedFabric): string[] {
  const { capture, error, report, hostCount, outcomes } = played;
  if (capture === undefined || error !== undefined || outcomes.length < hostCount) return [];
  const ends = cableEndsOf(capture);
  const cut = ends.filter(({ isWhole }) => !isWhole).map(({ node }) => node);
  if (cut.length > 0) return [`the packets of host ${cut.join(', ')} were not judged: the capture is cut`];
  if (ends.length !== hostCount)
    return [`the packets were not judged: the capture has ${ends.length} ends, and ${hostCount} hosts`];
  const isEthernet = isOnEthernet(played);
  const isPacket = (frame: SeenFrame): boolean => !isEthernet || typeOf(frame) !== controlType;
  const sent = ends.map((end) => end.sent.filter(isPacket));
  const received = ends.map((end) => end.received.filter(isPacket));
  const sources = new Sources(sent, isEthernet);
  const found = received.flatMap((frames, host) => {
    const [least, most] = dueOn(report.wire.find(({ to }) => to === host)!, isEthernet);
    const { dropped } = report.wire.find(({ to }) => to === host)!;
    // A port of Ethernet shows frames that it drops.
    const shown = isEthernet ? dropped : 0;
    return frames.length >= least + shown && frames.length <= most + shown
      ? []
      : [`host ${host}: ${frames.length} packets arrived, ${least + shown} to ${most + shown} by the report`];
  });
  for (const [host, frames] of received.entries())
    found.push(...judgeHost(played, host, frames, sources).slice(0, findingsMax));
  return found.slice(0, findingsMax);
}

/** A packet that a host sent: its number there, and when it passed the cable. */
interface Place {
  readonly host: number;
  readonly at: number;
  readonly atPs: bigint;
}

/** The packets of all hosts by their bytes. */
class Sources {
  readonly #places = new Map<string, Place[]>();
  readonly #isEthernet: boolean;

  constructor(sent: readonly (readonly SeenFrame[])[], isEthernet: boolean) {
    this.#isEthernet = isEthernet;
    for (const [host, frames] of sent.entries())
      for (const [at, frame] of frames.entries()) {
        const key = this.#keyOf(frame);
        const places = this.#places.get(key) ?? [];
        places.push({ host, at, atPs: frame.atPs });
        this.#places.set(key, places);
      }
  }

  placesOf(frame: SeenFrame): readonly Place[] {
    return this.#places.get(this.#keyOf(frame)) ?? [];
  }

  /** All bytes but the marks of congestion, with the checksum over them; a frame with its padding. */
  #keyOf(frame: SeenFrame): string {
    const bytes = this.#isEthernet
      ? Buffer.concat([frame.bytes, Buffer.alloc(Math.max(0, frameBytesMin - frame.bytes.length))])
      : Buffer.from(frame.bytes.subarray(recordHeaderBytes));
    if (this.#isEthernet && typeOf(frame) === ipv4Type) bytes.fill(0, networkOffset + 10, networkOffset + 12);
    if (this.#isEthernet && typeOf(frame) === ipv4Type) bytes[networkOffset + 1]! &= 0xfc;
    if (this.#isEthernet && typeOf(frame) === rocev1Type) bytes[networkOffset + 1]! &= 0xcf;
    return bytes.toString('latin1');
  }
}

function judgeHost(
  played: PlayedFabric,
  host: number,
  frames: readonly SeenFrame[],
  sources: Sources,
): string[] {
  const isEthernet = isOnEthernet(played);
  const mayPass = hasPacketFault(played, 'reordered', 'duplicated');
  const mayStray = played.story.faults.some((fault) => 'forwarding' in fault);
  const agePs = ageMaxPs(played);
  // A capture of Ethernet does not name damage that a switch on the way did not find.
  const mayBeSpoilt = isEthernet && played.story.faults.some(({ crc }) => crc === 'icrc');
  const { lid } = played.outcomes[host]!;
  /** Place of the last packet from a host to a queue pair. */
  const last = new Map<string, number>();
  const found: string[] = [];
  for (const frame of frames) {
    if (!isIntact(frame.note) || (mayBeSpoilt && packetIn(frame.bytes)?.isIcrcRight !== true)) continue;
    const what = `host ${host} at ${frame.atPs} ps`;
    const places = sources.placesOf(frame);
    if (places.length === 0) {
      found.push(`${what}: a packet that no host has sent`);
      continue;
    }
    const { host: from } = places[0]!;
    if (from === host && places.every((place) => place.host === host)) {
      found.push(`${what}: a packet of its own came back`);
      continue;
    }
    if (places.every(({ atPs }) => Number(frame.atPs - atPs) > agePs))
      found.push(`${what}: a packet that has been in switches for longer than their limits allow`);
    if (places.every((place) => !isCarried(played, place.host, host)))
      found.push(`${what}: a packet from host ${from}, of a partition that switches do not accept`);
    if (!isEthernet && !mayStray && !isForLid(frame.bytes, lid))
      found.push(`${what}: a packet for another host`);
    const packet = transportPacketIn(frame.bytes, isEthernet);
    if (packet === undefined) continue;
    const key = `${from} ${packet.destinationQpn}`;
    const before = last.get(key) ?? -1;
    const next = places.find((place) => place.host === from && place.at > before);
    if (next !== undefined) last.set(key, next.at);
    else if (!mayPass) found.push(`${what}: a packet from host ${from} came out of order, or once too often`);
  }
  return found;
}

/** Destination LID of an LRH: this one, or that of a group. */
function isForLid(bytes: Uint8Array, lid: number): boolean {
  const destination = bytes[recordHeaderBytes + 2]! * 256 + bytes[recordHeaderBytes + 3]!;
  return destination === lid || destination >= 0xc000;
}
