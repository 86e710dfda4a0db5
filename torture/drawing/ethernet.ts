/**
 * Ports of Ethernet instead of InfiniBand's, with RoCE of either version, and paths by any of the ports' GIDs. In calm and flawed stories
 * ports pause each other in time, so that no frame is lost. Others may lose frames: with flow control off, with PAUSE frames that get
 * lost, over cables that are too long for it, or by chance.
 */
import type { FaultEntry } from '../../machine/faults/index.ts';
import { configurationOf, type ParameterValue, type ParameterValues } from '../../machine/profile/index.ts';
import type { Random } from '../../sim/index.ts';
import { gidCountOf, hasHeadroom, roceHeaderBytesMax } from '../ethernet-cable.ts';
import { type Link, lengthOf, mtuBytes, type ProgramPlan, type Story, sendsOf } from '../story.ts';
import { edge, logUniform, pick } from './choice.ts';
import { acceptable, drawGroups } from './draw-hardware.ts';
import { ethernetGroups, type Facts } from './knobs.ts';

/** Shares of Ethernet among the stories of players, and among the scenes that work on any cable. */
const share = { players: 0.3, scenes: 0.12 };

/** Rates of IEEE 802.3, and some for which QUERY_PORT has no code. */
const gigabits = [1, 10, 10, 10, 20, 25, 40, 40, 40, 50, 56, 100, 200, 400];
const longestMtuBytes = 9000;
const longestPacketBytes = 4096 + roceHeaderBytesMax;
/** Payload of a datagram in stories at most. */
const datagramBytesMax = 2048;

type Settings = Record<string, ParameterValue>;

interface Cable {
  readonly set: Settings;
  readonly faults: readonly FaultEntry[];
}

/** @returns the story, in some cases on Ethernet */
export function withEthernet(random: Random, story: Story, facts: Facts): Story {
  if (!random.chance(share.players)) return story;
  const isLossless = mustBeLossless(random, story);
  const mtu = drawMtuBytes(random, story);
  const cable = isLossless ? drawCable(random, facts) : drawLosingCable(random, story, facts);
  const needed = { ...cable.set, 'ethernet.mtuBytes': mtu };
  const set = atSomeRate(random, story.set, needed, isLossless);
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
 * Puts some scenes on Ethernet: on a cable that loses nothing by itself, in frames that hold every packet.
 * @param needed parameters of the scene
 */
export function ethernetForScene(
  random: Random,
  hardware: ParameterValues,
  needed: ParameterValues,
  facts: Facts,
): ParameterValues | undefined {
  if (!random.chance(share.scenes) || 'hca.capability.linkLayer' in needed) return undefined;
  const mtu = random.between(longestPacketBytes, longestMtuBytes);
  const more = { ...needed, ...drawCable(random, facts).set, 'ethernet.mtuBytes': mtu };
  return atSomeRate(random, hardware, more, true);
}

/**
 * Adapts faults to Ethernet: packets of stories do not announce that they accept congestion marks, and drivers have a
 * queue pair of their own for frames, which is ready before those of programs.
 */
const onEthernet = (faults: readonly FaultEntry[]): FaultEntry[] =>
  faults
    .filter(({ packet }) => packet !== 'congested')
    .map((fault) =>
      fault['after'] === 'RTR2RTS_QP' ? { ...fault, nth: Number(fault['nth'] ?? 1) + 1 } : fault,
    );

/**
 * True if no frame may be dropped: flawed requests end as their flaw demands only if nothing else fails, and late
 * interrupts must not cause losses.
 */
function mustBeLossless(random: Random, { climate, faults }: Story): boolean {
  if (climate === 'flawed' || (climate === 'calm' && faults.length > 0)) return true;
  return random.chance(climate === 'calm' ? 0.6 : 0.4);
}

/** Frames that hold the packets of all QPs, or of the path MTU that the port then has. */
function drawMtuBytes(random: Random, { programs }: Story): number {
  const qps = programs.flatMap((program) => program.qps);
  const hasDatagrams = qps.some(({ transport }) => transport === 'UD');
  const payloads = qps.map(({ transport, mtu }) => (transport === 'UD' ? datagramBytesMax : mtuBytes(mtu)));
  const least = (hasDatagrams ? datagramBytesMax : mtuBytes(1)) + roceHeaderBytesMax;
  const wanted = Math.max(least, ...payloads.map((bytes) => bytes + roceHeaderBytesMax));
  const from = random.chance(0.6) ? wanted : least;
  const usual = [from, 1500, 4200, longestMtuBytes].filter((bytes) => bytes >= from);
  return random.chance(0.7) ? pick(random, usual) : random.between(from, longestMtuBytes);
}

/** Limits the MTU of QPs to the longest packet that the port can send. */
function withinMtu(plan: ProgramPlan, frameBytes: number): ProgramPlan {
  const fits = (code: number): boolean => mtuBytes(code) + roceHeaderBytesMax <= frameBytes;
  const longest = [5, 4, 3, 2].find(fits) ?? 1;
  return { ...plan, qps: plan.qps.map((qp) => ({ ...qp, mtu: Math.min(qp.mtu, longest) })) };
}

/** All links have the same path, or each its own. */
function drawPaths(random: Random, links: readonly Link[], gidCount: number): Link[] {
  const isOne = random.chance(0.5);
  const first = random.below(gidCount);
  return links.map((link) => ({ ...link, gidIndex: isOne ? first : random.below(gidCount) }));
}

/** Draws a cable with flow control that has room for the frames that arrive after a PAUSE frame. */
function drawCable(random: Random, facts: Facts): Cable {
  const metres = random.chance(0.6) ? 7 : edge(random, 1000);
  return {
    set: {
      ...drawGroups(random, ethernetGroups, facts),
      'hca.capability.linkLayer': 'ethernet',
      'ethernet.pauseCableMetres': metres,
      'ethernet.cableMetres': random.chance(0.6) ? metres : random.below(metres + 1),
      ...(random.chance(0.7) ? { 'ethernet.receiveFifoFrames': logUniform(random, 1, 1024) } : {}),
    },
    faults: [],
  };
}

/** A cable on which frames may be missing. */
function drawLosingCable(random: Random, story: Story, facts: Facts): Cable {
  const fifo = { 'ethernet.receiveFifoFrames': logUniform(random, leastFifoFrames(story), 1024) };
  const set: Settings = { ...drawCable(random, facts).set, ...(random.chance(0.8) ? fifo : {}) };
  const perMillion = (chance: number): number => (random.chance(chance) ? logUniform(random, 10, 50_000) : 0);
  switch (random.below(6)) {
    case 0: {
      const chance = `${random.between(1, 100)}%`;
      const lost = { packet: 'lost', only: 'pauses', chance };
      return { set, faults: [0, 1].map((node) => ({ ...lost, node, seed: random.uint32() })) };
    }
    case 1:
      return { set: { ...set, 'ethernet.cableMetres': logUniform(random, 10, 20_000) }, faults: [] };
    case 2: {
      const losses = {
        'ethernet.lossPerMillion': perMillion(0.7),
        'ethernet.corruptionPerMillion': perMillion(0.6),
      };
      return { set: { ...set, ...losses }, faults: [] };
    }
    default:
      return { set: { ...set, 'driver.usesPause': false }, faults: [] };
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

/**
 * @param isBearable whether the HCA must sustain the rate, so that a PAUSE is in time; undefined if it sustains none
 */
function atSomeRate(
  random: Random,
  hardware: ParameterValues,
  needed: ParameterValues,
  isBearable: boolean,
): ParameterValues | undefined {
  const rated = gigabits.map((rate) => ({ ...needed, 'ethernet.gigabitsPerSecond': rate }));
  if (!isBearable) return acceptable(hardware, pick(random, rated));
  const accepted = acceptable(hardware, rated[0]);
  const bearable = rated.filter((more) => hasHeadroom(configurationOf({ set: { ...accepted, ...more } })));
  return bearable.length === 0 ? undefined : { ...accepted, ...pick(random, bearable) };
}
