/** Counters of a bandwidth test, and its duration. */

import type { ReportFigures } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type LinkCable, linkAt, type Topology } from '../../machine/topology/index.ts';
import { Opcode } from '../../wire/index.ts';
import { cableOf } from '../model/index.ts';
import { isReliable, kindOf, lengthsOf, type PerfArgs, type Traffic } from '../workloads/index.ts';

/** The core of one program during its measurement: cycles by cause, without idle ones. */
export interface ProgramCore {
  readonly node: number;
  readonly cycles: Readonly<Record<string, number>>;
}

export interface Measured {
  readonly config: MachineConfig;
  readonly args: PerfArgs;
  /** Time from the first post to the last completion. */
  readonly durationPs: number;
  readonly messagesPerSecond: number;
  /** Numbered by side, like the nodes of cores: 0 is the client, 1 the server. Switches have their own numbers, beyond those of the hosts. */
  readonly figures: ReportFigures;
  /** Host number of each entry of the figures. */
  readonly hosts: readonly number[];
  /** Switches that a packet passes from the client to the server. */
  readonly switchCount: number;
  /** Latencies of the cables on that way, together. */
  readonly cablesPs: number;
  /** Cables that may differ from the configuration's; left out: none does. */
  readonly topology?: Topology;
  readonly cores: readonly ProgramCore[];
  /** Lines of each HCA since its start, including a warm-up. */
  readonly mttLines: readonly MttLines[];
}

/** MTT cache lines that were filled, and those that were evicted. */
export interface MttLines {
  readonly filled: number;
  readonly evicted: number;
}

export const mttLinesOf = ({ nodes }: ReportFigures): readonly MttLines[] =>
  nodes.map(({ hca }) => {
    const { misses = 0, evictions = 0 } = hca.caches['mtt'] ?? {};
    return { filled: misses, evicted: evictions };
  });

/** A parameter to change, and the direction that makes a run faster; an option of perf begins with `--`. */
export interface Turn {
  readonly what: string;
  readonly towards: 'more' | 'less';
  /** Parameters that must change with it; left out for none. */
  readonly along?: readonly Along[];
  /** Necessary size of the change, as a sentence; left out if each step helps. */
  readonly because?: string;
}

/** Without this change, the other one has no effect or lowers the rate. */
export interface Along {
  readonly what: string;
  readonly towards: 'more' | 'less';
  /** A sentence. */
  readonly because: string;
}

/**
 * A possible bottleneck. A server processes one thing after another, and its share is its busy time; a window limits
 * the number of things in flight, and its share is the time it is full.
 */
export interface Resource {
  readonly name: string;
  readonly kind: 'server' | 'window';
  readonly share: number;
  readonly turn: readonly Turn[];
}

/** The host of a side, as resources name it. */
export const hostText = ({ hosts }: Measured, side: number): string => `host ${hosts[side]}`;

/** Whether an end of a cable is a switch's. */
export const isSwitch = ({ hosts }: Measured, node: number): boolean => node >= hosts.length;

/** A cable's end that sends, as the figures number it. */
export type CableRow = ReportFigures['wire'][number];

/** Parameters of cables that a link of a topology may have for itself. */
const parametersOfLink: Readonly<Record<string, keyof LinkCable>> = {
  'wire.speed': 'speed',
  'wire.lanes': 'lanes',
  'wire.cableMetres': 'metres',
  'ethernet.cableMetres': 'metres',
  'ethernet.gigabitsPerSecond': 'gigabitsPerSecond',
};

/** Changes of a cable: those that its link has for itself are made in the topology. */
export function turnsOfCable(
  measured: Measured,
  { from, fromPort = 1 }: CableRow,
  turns: readonly Turn[],
): Turn[] {
  const { topology, hosts } = measured;
  if (topology === undefined) return [...turns];
  const link = linkAt(topology, { node: isSwitch(measured, from) ? from : hosts[from]!, port: fromPort });
  return turns.map((turn) => {
    const field = parametersOfLink[turn.what];
    return link === undefined || field === undefined || link[field] === undefined
      ? turn
      : { ...turn, what: `${field} of links[${topology.links.indexOf(link)}] in the topology` };
  });
}

/** Latency of one switch of the machine's network. */
export const switchLatencyOf = (
  config: MachineConfig,
): { readonly parameter: string; readonly ns: number } =>
  isEthernet(config)
    ? { parameter: 'switch.ethernet.latencyNs', ns: config.switch.ethernet.latencyNs }
    : { parameter: 'switch.latencyNs', ns: config.switch.latencyNs };

export const more = (...names: readonly string[]): Turn[] => names.map((what) => ({ what, towards: 'more' }));
export const less = (...names: readonly string[]): Turn[] => names.map((what) => ({ what, towards: 'less' }));

/** Share of the measured time of this many HCA cycles. */
export const hcaShare = ({ config, durationPs }: Measured, cycles: number): number =>
  (cycles * 1e6) / config.hca.coreClockMHz / durationPs;

/** The messages of the test. */
export const trafficOf = ({ args }: Pick<Measured, 'args'>): Traffic => kindOf(args).trafficOf(args);

/** Path MTU: by default the largest possible. */
export const mtuBytesOf = ({ mtuBytes }: PerfArgs): number => (mtuBytes === 0 ? 4096 : mtuBytes);

export const isIwarp = ({ hca }: Measured['config']): boolean => hca.capability.transport === 'iwarp';

const middlePackets = {
  write: Opcode.RC_RDMA_WRITE_MIDDLE,
  send: Opcode.RC_SEND_MIDDLE,
  read: Opcode.RC_RDMA_READ_RESPONSE_MIDDLE,
  atomic: Opcode.RC_FETCH_ADD,
} as const;

/** Longest payload of a packet: the path MTU, or what a segment of iWARP carries. */
export function packetPayloadBytes({ config, args }: Pick<Measured, 'config' | 'args'>): number {
  if (!isIwarp(config)) return mtuBytesOf(args);
  const { payloadBytesMax, mtuBytes } = cableOf(config);
  return payloadBytesMax?.(middlePackets[args.verb]) ?? mtuBytes;
}

/** Sum over the packets of all lengths, weighted by their share: `of` is called with the payload of a packet. */
export function overPackets(measured: Measured, of: (payloadBytes: number) => number): number {
  const most = packetPayloadBytes(measured);
  return lengthsOf(measured.args).reduce((sum, { bytes, share }) => {
    const rest = bytes % most;
    const last = rest === 0 && bytes > 0 ? 0 : of(rest);
    return sum + share * (Math.floor(bytes / most) * of(most) + last);
  }, 0);
}

/** Whether payload arrives at a side. */
export const isTarget = ({ args }: Pick<Measured, 'args'>, node: number): boolean =>
  node === (isRequest(args) ? 1 : 0) || kindOf(args).trafficOf(args).isBothWays;

/** Whether a message is a request with payload, not a READ or an atomic. */
export const isRequest = ({ verb }: PerfArgs): boolean => verb === 'write' || verb === 'send';

/** The parameter for the interval between messages of a QP. */
export function intervalOf(
  args: PerfArgs,
): 'sameQpIntervalCycles' | 'readIntervalCycles' | 'unreliableIntervalCycles' {
  if (!isReliable(kindOf(args).trafficOf(args).service)) return 'unreliableIntervalCycles';
  return isRequest(args) ? 'sameQpIntervalCycles' : 'readIntervalCycles';
}

/** The parameter for a QP's pause after a message, by its name in the transmitter; atomics have none. */
export function gapOf({
  verb,
  connection,
}: PerfArgs): 'writeGapCycles' | 'sendGapCycles' | 'readGapCycles' | undefined {
  if (verb === 'atomic') return undefined;
  if (verb === 'read') return 'readGapCycles';
  return verb === 'send' && isReliable(connection) ? 'sendGapCycles' : 'writeGapCycles';
}

/** Whether request payload is read from memory; otherwise it is in the request, or arrives with the answer. */
export const gathers = (args: PerfArgs): boolean =>
  isRequest(args) && lengthsOf(args).some(({ bytes }) => bytes > args.inlineBytes);

/** Messages of all QPs together, in each direction that has any. */
export const messagesOf = ({ durationPs, messagesPerSecond }: Measured): number =>
  (messagesPerSecond * durationPs) / 1e12;

export const isEthernet = ({ hca }: Measured['config']): boolean => hca.capability.linkLayer === 'ethernet';
