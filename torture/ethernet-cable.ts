/**
 * Effects of an Ethernet cable on frames, by a story's parameters and faults alone: whether a frame may be missing without a fault
 * that took it (docs/how-to/ethernet.md, flow control; IEEE 802.3-2018, annex 31B), and how long frames are (IBTA vol 1, annexes A16,
 * A17).
 */

import type { Report } from '../machine/index.ts';
import { configurationOf, type MachineConfig, type ParameterValues } from '../machine/profile/index.ts';
import type { Story } from './story.ts';

/** The most that stands around the payload of a packet in a frame's payload: GRH, UDP, BTH, XRCETH, AtomicETH, ICRC. */
export const roceHeaderBytesMax = 40 + 8 + 12 + 4 + 28 + 4;
/** Header, tag and FCS. */
const frameOverheadBytes = 14 + 4 + 4;
const picosecondsOfMegahertz = 1e6;
/** Picoseconds of a byte at 1 Gb/s. */
const bytePsOfGigabit = 8000;
const longestPayloadBytes = 4096;

export const isOnEthernet = ({ set }: Pick<Story, 'set'>): boolean =>
  set['hca.capability.linkLayer'] === 'ethernet';

/** Whether cards carry RDMA over TCP: all of it is frames. */
export const isOverIwarp = ({ set }: Pick<Story, 'set'>): boolean =>
  set['hca.capability.transport'] === 'iwarp';

/** Frames of a node that are no packets, by which drivers find each other; none on InfiniBand. */
export function framesOf(
  { nodes, wire }: Report,
  node: number,
): { readonly sent: number; readonly received: number } {
  const sent = wire.find(({ from }) => from === node)?.opcodes['FRAME']?.packets ?? 0;
  return { sent, received: nodes[node]!.hca.ethernet?.completed ?? 0 };
}

/** Frames that a node's port lost on the cable, received damaged or dropped, by the name of their counter. */
export function missingFrames({ hca }: Report['nodes'][number]): Record<string, number> {
  const { transmitted = {}, received = {}, dropped = {} } = hca.ethernet ?? {};
  const { lostFrames = 0 } = transmitted;
  const { corruptedFrames = 0, fifoDrops = 0, linkDownDrops = 0 } = received;
  return { lostFrames, corruptedFrames, fifoDrops, linkDownDrops, ...dropped };
}

/** Faults after which the link or what is on it is not as it was. */
const disturbances = ['packet', 'port', 'cable', 'device', 'reset', 'catastrophic', 'read', 'command'];

/** Whether a frame may find no room, or vanish by chance: else each one that left arrives, and is taken. */
export function mayDropFrames({ set, faults }: Pick<Story, 'set' | 'faults'>): boolean {
  if (!isOnEthernet({ set })) return false;
  const config = configurationOf({ set });
  const { lossPerMillion, corruptionPerMillion } = config.ethernet;
  const isDisturbed = faults.some((fault) => disturbances.some((field) => field in fault));
  return isDisturbed || lossPerMillion + corruptionPerMillion > 0 || !hasHeadroom(config);
}

/**
 * Whether ports pause each other early enough: on no longer a cable than they reckon with, and where no packet is longer in forming than
 * the longest frame is on the link.
 */
export function hasHeadroom({
  ethernet,
  hca,
  driver,
}: Pick<MachineConfig, 'ethernet' | 'hca' | 'driver'>): boolean {
  const { cableMetres, pauseCableMetres, mtuBytes, gigabitsPerSecond } = ethernet;
  const { preambleBytes, interFrameGapBytes } = ethernet;
  const longestBytes = preambleBytes + mtuBytes + frameOverheadBytes + interFrameGapBytes;
  const payloadBytes = Math.min(longestPayloadBytes, mtuBytes);
  const formingPs =
    Math.ceil(payloadBytes / hca.transmitBytesPerCycle) * (picosecondsOfMegahertz / hca.coreClockMHz);
  return (
    driver.usesPause &&
    cableMetres <= pauseCableMetres &&
    formingPs <= (longestBytes * bytePsOfGigabit) / gigabitsPerSecond
  );
}

/** Bytes of a frame's network header, by the place of its GID: of version 1 a GRH, of version 2 IPv6 or IPv4, and UDP. */
export function networkHeaderBytes({ set }: Pick<Story, 'set'>, gidIndex: number): number {
  const [grhBytes, ipv4Bytes, ipv6Bytes, udpBytes] = [40, 20, 40, 8];
  if (set['hca.capability.roce'] === 'v1' || gidIndex % 2 === 0) return grhBytes;
  return (gidIndex < 2 ? ipv6Bytes : ipv4Bytes) + udpBytes;
}

/** A port with version 1 only has the GIDs of its link-local and IPv4 addresses; a port with both versions has each once per version. */
export const gidCountOf = (set: ParameterValues): number => (set['hca.capability.roce'] === 'v1' ? 2 : 4);
