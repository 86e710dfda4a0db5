/**
 * The frames of a cable of Ethernet, as strangers at both ends see them, against IEEE 802.3, the annexes of RoCE, and what the report
 * counts:
 *
 *     capture of both ends ─┬─ times: no two frames at once, each at the far end after the cable's latency, byte for byte
 *                           ├─ PAUSE: a paused end sends nothing, its peer repeats the request and lifts it
 *                           ├─ packets: addresses, lengths, padding, ICRC; by opcode as many as the report has, of as many bytes
 *                           └─ what is missing was lost by a fault or dropped under its reason, and never where there is room for all
 */
import { gidCountOf, isOnEthernet, isOverIwarp, mayDropFrames, missingFrames } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import {
  type CableEnd,
  cableEndsOf,
  copyNote,
  hasNote,
  lostNote,
  type SeenFrame,
} from './ethernet/cable-end.ts';
import {
  destinationOf,
  fillsMtu,
  isControl,
  isOfNeighbours,
  isToGroupMac,
  packetIn,
  type RocePacket,
  sourceOf,
} from './ethernet/frame.ts';
import { LinkTimes } from './ethernet/link-times.ts';
import { judgePauses, type PauseRules } from './ethernet/pauses.ts';
import { traitsOf } from './scene-traits.ts';

const frameBytesMin = 60;
const fcsBytes = 4;
const hopLimit = 64;
const pathMtus = [256, 512, 1024, 2048, 4096];
/** Notes of the far end's capture, by counter. */
const noteOfCounter = {
  linkDownDrops: 'dropped: the link is down',
  corruptedFrames: 'dropped: its frame check sequence is wrong',
  fifoDrops: 'dropped: the receive fifo is full',
} as const;

export function judgeFrames(played: Played): string[] {
  const { story, capture } = played;
  if (!isOnEthernet(story)) return [];
  const losses = judgeLosses(played);
  const ends = capture === undefined ? [] : cableEndsOf(capture);
  if (ends.length !== 2 || ends.some(({ isWhole }) => !isWhole)) return losses;
  const times = new LinkTimes(played.config);
  return [
    ...losses,
    ...ends.flatMap((end) => {
      const far = ends[1 - end.node]!;
      return [
        ...judgeLink(end, times),
        ...judgeArrivals(played, end, far, times),
        ...judgePauses(end, rulesOf(played, end, times)),
        ...judgePackets(played, end, far),
      ];
    }),
  ];
}

/** Where ports pause each other in time, and nothing else happens to frames, none is missing. */
function judgeLosses({ story, report }: Played): string[] {
  if (mayDropFrames(story) || traitsOf(story).hasResets === true) return [];
  return report.nodes.flatMap((of, node) => {
    const discardedFrames = of.hca.ethernet?.transmitted['discardedFrames'] ?? 0;
    return Object.entries({ discardedFrames, ...missingFrames(of) }).flatMap(([name, count]) =>
      count === 0 ? [] : [`node ${node}: ${count} ${name}, though there was room for all and no fault`],
    );
  });
}

/** No two frames at once, and the gap between them. */
function judgeLink({ node, sent }: CableEnd, times: LinkTimes): string[] {
  let freePs: bigint | undefined;
  for (const { bytes, atPs } of sent) {
    const beginPs = atPs - times.onLinkPs(bytes.length);
    // Both ends of a frame are rounded down.
    if (freePs !== undefined && beginPs + 2n < freePs)
      return [`node ${node}: a frame begins at ${beginPs} ps, the link is free from ${freePs} ps on`];
    freePs = atPs + times.gapPs;
  }
  return [];
}

/** Each frame that left arrives once, unchanged, after the cable's latency; a port counts by reason those that it drops. */
function judgeArrivals(
  { report, lastPs, error }: Played,
  near: CableEnd,
  far: CableEnd,
  times: LinkTimes,
): string[] {
  const what = `cable ${near.node} to ${far.node}`;
  const left = near.sent.filter(({ note }) => !hasNote(note, lostNote));
  for (const [at, frame] of left.entries()) {
    const arrived = far.received[at];
    const duePs = frame.atPs + times.latencyPs;
    if (arrived === undefined) {
      if (error !== undefined || duePs > lastPs) continue;
      return [`${what}: a frame that left at ${frame.atPs} ps never arrived`];
    }
    if (arrived.atPs !== duePs)
      return [
        `${what}: a frame that left at ${frame.atPs} ps arrived at ${arrived.atPs} ps, due at ${duePs} ps`,
      ];
    if (!isSame(frame.bytes, arrived.bytes))
      return [`${what}: the frame that left at ${frame.atPs} ps arrived with other bytes`];
  }
  if (far.received.length > left.length)
    return [`${what}: ${far.received.length} frames arrived, ${left.length} had left`];
  const { received = {}, flowControl = {} } = report.nodes[far.node]!.hca.ethernet ?? {};
  const counted = (of: (frame: SeenFrame) => boolean): number => far.received.filter(of).length;
  const seen: [string, number, number][] = [
    ...Object.entries(noteOfCounter).map(([name, note]): [string, number, number] => [
      name,
      counted((frame) => frame.note === note),
      received[name] ?? 0,
    ]),
    [
      'receivedFrames of flow control',
      counted(
        ({ bytes, note }) => isControl(bytes) && !(Object.values(noteOfCounter) as string[]).includes(note),
      ),
      flowControl['receivedFrames'] ?? 0,
    ],
    [
      'deliveredFrames',
      counted(({ bytes, note }) => note === '' && !isControl(bytes)),
      received['deliveredFrames'] ?? 0,
    ],
  ];
  return seen.flatMap(([name, here, there]) =>
    here === there || error !== undefined
      ? []
      : [`${what}: ${here} ${name} in the capture, ${there} in the report`],
  );
}

/** Short frames arrive padded with zeros. */
const isSame = (left: Uint8Array, arrived: Uint8Array): boolean =>
  arrived.length === Math.max(left.length, frameBytesMin) &&
  left.every((byte, at) => byte === arrived[at]) &&
  arrived.subarray(left.length).every((byte) => byte === 0);

function rulesOf({ story, config, lastPs: endPs }: Played, end: CableEnd, times: LinkTimes): PauseRules {
  const { faults, climate } = story;
  const of = (kind: string, fault: (typeof faults)[number]): boolean => fault['packet'] === kind;
  const isBroken =
    climate === 'broken' || faults.some((fault) => 'port' in fault || 'cable' in fault || 'device' in fault);
  const firstData = end.sent.find(({ bytes }) => !isControl(bytes));
  return {
    times,
    quanta: config.ethernet.pauseQuanta,
    mac: firstData === undefined || isDamaging(faults) ? undefined : sourceOf(firstData.bytes),
    isHeeding: config.driver.usesPause && !isBroken,
    hasLateFrames: faults.some((fault) => of('late', fault)),
    isUndisturbed: !isBroken && !faults.some((fault) => 'packet' in fault),
    endPs,
  };
}

/** Whether faults damage frames under a right FCS. */
const isDamaging = (faults: Played['story']['faults']): boolean => faults.some(({ crc }) => crc === 'icrc');

interface Tally {
  packets: number;
  payloadBytes: number;
  bytes: number;
}

/** Each packet is what the annexes say; and the report has as many of each opcode, of as many bytes. */
function judgePackets(played: Played, near: CableEnd, far: CableEnd): string[] {
  const { story, report } = played;
  const hasDamage = isDamaging(story.faults);
  const found: string[] = [];
  const seen = new Map<string, Tally>();
  const macs = macsOf(near, far);
  for (const { bytes, atPs, note } of near.sent) {
    if (isControl(bytes)) continue;
    const packet = packetIn(bytes);
    if (hasDamage && packet?.isIcrcRight !== true && !isOfNeighbours(bytes)) continue;
    const wrong =
      packet === undefined
        ? isOfNeighbours(bytes)
          ? []
          : isOverIwarp(story)
            ? macFaults(bytes, near.node, macs)
            : ['it is neither a packet of RoCE nor one of ARP or Neighbor Discovery']
        : faultsOf(packet, bytes, played, near.node, macs);
    if (wrong.length > 0 && found.length === 0)
      found.push(`node ${near.node}, the frame of ${atPs} ps: ${wrong.join('; ')}`);
    if (packet?.opcode === undefined || hasNote(note, copyNote)) continue;
    const tally = seen.get(packet.opcode) ?? { packets: 0, payloadBytes: 0, bytes: 0 };
    tally.packets++;
    tally.payloadBytes += packet.payloadBytes;
    tally.bytes += Math.max(bytes.length, frameBytesMin) + fcsBytes;
    seen.set(packet.opcode, tally);
  }
  // The report counted packets that a link that went down did not send; it counts a damaged opcode as the original one.
  if (story.climate === 'broken' || hasDamage || played.error !== undefined) return found;
  const wire = report.wire.find(({ from }) => from === near.node);
  // A frame that a fault holds back counts as transmitted; it may never leave if the port is closed before it is due.
  const { heldBackFrames = 0 } = report.nodes[near.node]!.hca.ethernet?.transmitted ?? {};
  for (const name of new Set([
    ...seen.keys(),
    ...Object.keys(wire?.opcodes ?? {}),
    ...Object.keys(wire?.retransmitted ?? {}),
  ])) {
    if (name === 'FRAME') continue;
    const rows = [wire?.opcodes[name], wire?.retransmitted[name]];
    const notSeen = rows.reduce((sum, row) => sum + (row?.packets ?? 0), 0) - (seen.get(name)?.packets ?? 0);
    if (notSeen > 0 && notSeen <= heldBackFrames) continue;
    for (const figure of ['packets', 'payloadBytes', 'bytes'] as const) {
      const here = seen.get(name)?.[figure] ?? 0;
      const there = rows.reduce((sum, row) => sum + (row?.[figure] ?? 0), 0);
      if (here !== there)
        found.push(`node ${near.node}, ${name}: ${here} ${figure} left, the report has ${there}`);
    }
  }
  return found.slice(0, 3);
}

/** MACs of the ends by what they send themselves; undefined of one that sent nothing. */
const macsOf = (...ends: readonly CableEnd[]): (string | undefined)[] => {
  const macs: (string | undefined)[] = [];
  for (const { node, sent } of ends) {
    const first = sent.find(({ bytes }) => !isControl(bytes));
    macs[node] = first === undefined ? undefined : sourceOf(first.bytes);
  }
  return macs;
};

/** GIDs of a node with this MAC: link-local by its modified EUI-64 (RFC 4291, appendix A), and of 10.0.0.n+1. */
function gidsOf(node: number, mac: string | undefined): string[] {
  const ipv4 = `${'0'.repeat(20)}ffff0a0000${(node + 1).toString(16).padStart(2, '0')}`;
  if (mac === undefined) return [ipv4];
  const first = (Number.parseInt(mac.slice(0, 2), 16) ^ 2).toString(16).padStart(2, '0');
  return [`fe80${'0'.repeat(12)}${first}${mac.slice(2, 6)}fffe${mac.slice(6)}`, ipv4];
}

function macFaults(bytes: Uint8Array, node: number, macs: readonly (string | undefined)[]): string[] {
  const [from, to] = [macs[node], macs[1 - node]];
  const wrong: string[] = [];
  if (sourceOf(bytes) !== from) wrong.push(`it comes from ${sourceOf(bytes)}, others from ${from}`);
  // The reader of the frame compares the MAC of a group with the GID.
  if (to !== undefined && !isToGroupMac(bytes) && destinationOf(bytes) !== to)
    wrong.push(`it goes to ${destinationOf(bytes)}, not to ${to}`);
  return wrong;
}

function faultsOf(
  packet: RocePacket,
  bytes: Uint8Array,
  { story, config }: Played,
  node: number,
  macs: readonly (string | undefined)[],
): string[] {
  const wrong = [...packet.wrong];
  const { opcode = '', payloadBytes } = packet;
  const [from, to] = [macs[node], macs[1 - node]];
  wrong.push(...macFaults(bytes, node, macs));
  const isToGroup = isToGroupMac(bytes);
  const source = gidsOf(node, from).indexOf(packet.sourceGid);
  const destination = gidsOf(1 - node, to).indexOf(packet.destinationGid);
  if (source < 0) wrong.push(`its source GID is ${packet.sourceGid}, none of the port's`);
  if (destination < 0 && to !== undefined && !isToGroup)
    wrong.push(`its destination GID is ${packet.destinationGid}, none of the far port's`);
  if (packet.hopLimit !== hopLimit) wrong.push(`its hop limit is ${packet.hopLimit}`);
  if (packet.form !== 'roce1' && gidCountOf(story.set) < 4)
    wrong.push('it is of version 2, which the card has not');
  if (!packet.isIcrcRight) wrong.push('its ICRC is wrong');
  if (fillsMtu(opcode) && !pathMtus.includes(payloadBytes))
    wrong.push(`${payloadBytes} bytes of ${opcode} are no path MTU`);
  if (payloadBytes > 4096) wrong.push(`a payload of ${payloadBytes} bytes`);
  if (bytes.length > 14 + 4 + config.ethernet.mtuBytes)
    wrong.push(`${bytes.length} bytes are longer than a frame may be`);
  if (packet.endBytes !== bytes.length && bytes.length > frameBytesMin)
    wrong.push(`its packet ends at ${packet.endBytes} of ${bytes.length} bytes`);
  return wrong;
}
