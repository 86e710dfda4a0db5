/**
 * Ports of Ethernet in place of InfiniBand's, with RoCE of either version: rates, frame sizes and lengths of the cable, receive fifos from
 * one frame on, thresholds of flow control next to each other and far apart, and paths by any of the ports' GIDs. In calm and flawed
 * stories ports pause each other in time, so that nothing is lost; others may lose frames: with flow control off, with PAUSE frames that get
 * lost, over cables that are too long for it, or by chance. Added to a finished story from random numbers of its own.
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import {
  configurationOf,
  type ParameterValue,
  type ParameterValues,
  parametersByPath,
} from '../machine/profile/index.ts';
import type { Random } from '../sim/index.ts';
import { acceptable } from './draw-hardware.ts';
import { gidCountOf, hasHeadroom, roceHeaderBytesMax } from './ethernet-cable.ts';
import { type Link, lengthOf, mtuBytes, type ProgramPlan, type Story, sendsOf } from './story.ts';

/** Of the stories of players, and of the scenes that any cable does for. */
const share = { players: 0.3, scenes: 0.12 };

/** Of IEEE 802.3, and such as QUERY_PORT has no code for. */
const gigabits = [1, 10, 10, 10, 20, 25, 40, 40, 40, 50, 56, 100, 200, 400];
const longestMtuBytes = 9000;
/** Payload of a datagram in stories at most. */
const datagramBytesMax = 2048;

/** Parameters that stories on Ethernet draw, by path. */
export const ethernetPaths: readonly string[] = [
  'hca.capability.linkLayer',
  'hca.capability.roce',
  'driver.usesPause',
  ...[...parametersByPath.keys()].filter(
    (path) => path.startsWith('ethernet.') && path !== 'ethernet.trainingUs',
  ),
];

type Settings = Record<string, ParameterValue>;

/** @returns the story, in some cases on Ethernet */
export function withEthernet(random: Random, story: Story): Story {
  if (!random.chance(share.players)) return story;
  const isLossless = mustBeLossless(random, story);
  const capability = drawCapability(random);
  const mtu = drawMtuBytes(random, story);
  const cable = isLossless ? drawCable(random) : drawLosingCable(random, story);
  const needed = { ...capability, ...cable.set, 'ethernet.mtuBytes': mtu };
  const set = isLossless ? withBearableRate(random, story.set, needed) : withRate(random, story.set, needed);
  if (set === undefined) return story;
  return {
    ...story,
    set,
    climate: story.climate === 'calm' && !isLossless ? 'lossy' : story.climate,
    faults: [...onEthernet(story.faults), ...cable.faults],
    programs: story.programs.map((plan) => withinMtu(plan, mtu)),
    links: drawPaths(random, story.links, gidCountOf(set)),
  };
}

/**
 * A scene on Ethernet, in some cases: on a cable that loses nothing by itself, in frames that hold every packet.
 * @param needed parameters of the scene
 */
export function ethernetForScene(
  random: Random,
  hardware: ParameterValues,
  needed: ParameterValues,
): ParameterValues | undefined {
  if (!random.chance(share.scenes)) return undefined;
  const { set } = drawCable(random);
  const mtu = longestPacketBytes + random.below(longestMtuBytes - longestPacketBytes + 1);
  const more = { ...needed, ...drawCapability(random), ...set, 'ethernet.mtuBytes': mtu };
  return withBearableRate(random, hardware, more);
}

/**
 * Faults as they are on Ethernet: no packet of a story says that it takes marks of congestion, and drivers have a queue pair of their own for frames, which is ready before those
 * of programs.
 */
const onEthernet = (faults: readonly FaultEntry[]): FaultEntry[] =>
  faults
    .filter(({ packet }) => packet !== 'congested')
    .map((fault) =>
      fault['after'] === 'RTR2RTS_QP' ? { ...fault, nth: Number(fault['nth'] ?? 1) + 1 } : fault,
    );

const longestPacketBytes = 4096 + roceHeaderBytesMax;

const drawCapability = (random: Random): Settings => ({
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
});

/** Requests with a flaw end as the flaw says where nothing else goes wrong; interrupts that come late are no reason for losses. */
function mustBeLossless(random: Random, { climate, faults }: Story): boolean {
  if (climate === 'flawed' || (climate === 'calm' && faults.length > 0)) return true;
  return random.chance(climate === 'calm' ? 0.6 : 0.4);
}

/** Frames that hold the packets of all QPs, or of such a path MTU as the port then has. */
function drawMtuBytes(random: Random, { programs }: Story): number {
  const payloads = programs.flatMap(({ qps }) =>
    qps.map(({ transport, mtu }) => (transport === 'UD' ? datagramBytesMax : mtuBytes(mtu))),
  );
  const hasDatagrams = programs.some(({ qps }) => qps.some(({ transport }) => transport === 'UD'));
  const least = (hasDatagrams ? datagramBytesMax : mtuBytes(1)) + roceHeaderBytesMax;
  const wanted = Math.max(least, ...payloads.map((bytes) => bytes + roceHeaderBytesMax));
  const from = random.chance(0.6) ? wanted : least;
  const usual = [from, 1500, 4200, longestMtuBytes].filter((bytes) => bytes >= from);
  return random.chance(0.7)
    ? usual[random.below(usual.length)]!
    : from + random.below(longestMtuBytes - from + 1);
}

/** The QPs that ask for longer packets than the port sends ask for the longest that it sends. */
function withinMtu(plan: ProgramPlan, frameBytes: number): ProgramPlan {
  const fits = (code: number): boolean => mtuBytes(code) + roceHeaderBytesMax <= frameBytes;
  const longest = [5, 4, 3, 2].find(fits) ?? 1;
  return { ...plan, qps: plan.qps.map((qp) => ({ ...qp, mtu: Math.min(qp.mtu, longest) })) };
}

/** Links that follow each other have the same path, or each its own. */
function drawPaths(random: Random, links: readonly Link[], gidCount: number): Link[] {
  const isOne = random.chance(0.5);
  const first = random.below(gidCount);
  return links.map((link) => ({ ...link, gidIndex: isOne ? first : random.below(gidCount) }));
}

const logUniform = (random: Random, min: number, max: number): number =>
  Math.round(min * (max / min) ** random.unit());

/** A cable with flow control that has room for what comes after a PAUSE frame. */
function drawCable(random: Random): { readonly set: Settings; readonly faults: readonly FaultEntry[] } {
  const metres = random.chance(0.6) ? 7 : random.chance(0.3) ? 0 : random.below(1001);
  return {
    set: {
      ...drawTimes(random),
      ...drawThresholds(random),
      'ethernet.pauseCableMetres': metres,
      'ethernet.cableMetres': random.chance(0.6) ? metres : random.below(metres + 1),
      ...(random.chance(0.7) ? { 'ethernet.receiveFifoFrames': logUniform(random, 1, 1024) } : {}),
    },
    faults: [],
  };
}

/** A cable on which frames may be missing. */
function drawLosingCable(random: Random, story: Story): ReturnType<typeof drawCable> {
  const { set } = drawCable(random);
  const fifo = { 'ethernet.receiveFifoFrames': logUniform(random, leastFifoFrames(story), 1024) };
  const more = { ...set, ...(random.chance(0.8) ? fifo : {}) };
  switch (random.below(6)) {
    case 0: {
      const chance = `${1 + random.below(100)}%`;
      const lost = [0, 1].map(
        (node): FaultEntry => ({ packet: 'lost', only: 'pauses', chance, node, seed: random.uint32() }),
      );
      return { set: more, faults: lost };
    }
    case 1:
      return { set: { ...more, 'ethernet.cableMetres': logUniform(random, 10, 20_000) }, faults: [] };
    case 2: {
      const lossPerMillion = random.chance(0.7) ? logUniform(random, 10, 50_000) : 0;
      const corruptionPerMillion = random.chance(0.6) ? logUniform(random, 10, 50_000) : 0;
      return {
        set: {
          ...more,
          'ethernet.lossPerMillion': lossPerMillion,
          'ethernet.corruptionPerMillion': corruptionPerMillion,
        },
        faults: [],
      };
    }
    default:
      return { set: { ...more, 'driver.usesPause': false }, faults: [] };
  }
}

/**
 * The fewest frames of a receive fifo with which a story ends: where all packets but the first few of each try are dropped, the tries grow
 * with the square of the packets.
 */
function leastFifoFrames(story: Story): number {
  let packets = 0;
  for (const { program, qp, plan } of sendsOf(story))
    packets += 1 + Math.ceil(lengthOf(plan.sges) / mtuBytes(story.programs[program]!.qps[qp]!.mtu));
  return Math.min(512, Math.max(1, Math.ceil(packets ** 2 / triedPacketsMax)));
}

const triedPacketsMax = 80_000;

function drawTimes(random: Random): Settings {
  return {
    ...(random.chance(0.4) ? { 'ethernet.portLatencyNs': logUniform(random, 1, 6000) } : {}),
    ...(random.chance(0.2) ? { 'ethernet.cablePsPerMetre': 3336 + random.below(6665) } : {}),
    ...(random.chance(0.15) ? { 'ethernet.preambleBytes': random.below(65) } : {}),
    ...(random.chance(0.15)
      ? { 'ethernet.interFrameGapBytes': random.below(random.chance(0.5) ? 13 : 1025) }
      : {}),
    ...(random.chance(0.2)
      ? { 'ethernet.transmitAheadBytes': random.chance(0.3) ? 0 : logUniform(random, 1, 65_536) }
      : {}),
  };
}

function drawThresholds(random: Random): Settings {
  const xon = [0, 99, random.below(100)][random.below(3)]!;
  return {
    ...(random.chance(0.6)
      ? { 'ethernet.pauseXoffPercent': 1 + random.below(100), 'ethernet.pauseXonPercent': xon }
      : {}),
    ...(random.chance(0.5) ? { 'ethernet.pauseQuanta': logUniform(random, 512, 65_535) } : {}),
  };
}

function withRate(random: Random, hardware: ParameterValues, needed: ParameterValues): ParameterValues {
  const rate = gigabits[random.below(gigabits.length)]!;
  return acceptable(hardware, { ...needed, 'ethernet.gigabitsPerSecond': rate });
}

/** At a rate that the HCA keeps up with, so that a PAUSE is in time; undefined where there is none. */
function withBearableRate(
  random: Random,
  hardware: ParameterValues,
  needed: ParameterValues,
): ParameterValues | undefined {
  const sets = gigabits.map((rate) => ({ ...needed, 'ethernet.gigabitsPerSecond': rate }));
  const accepted = acceptable(hardware, sets[0]);
  const bearable = sets.filter((more) => hasHeadroom(configurationOf({ set: { ...accepted, ...more } })));
  return bearable.length === 0 ? undefined : { ...accepted, ...bearable[random.below(bearable.length)] };
}
