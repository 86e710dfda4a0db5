/**
 * Selects the parameters whose change has an effect on a test: some options belong to other tests, and some are set
 * already. Also lists the changes that must accompany it: more threads have more memory, and more QPs more contexts,
 * which may not fit on chip.
 */

import { type MachineConfig, type ParameterValue, parametersByPath } from '../../machine/profile/index.ts';
import { cableOf } from '../model/index.ts';
import { inlineMaxOf, kindOf, lengthsOf, type PerfArgs } from '../workloads/index.ts';
import {
  type Along,
  gathers,
  isIwarp,
  less,
  type Measured,
  messagesOf,
  more,
  mtuBytesOf,
  type Turn,
} from './measured.ts';

/** Options that affect only some tests, or that some tests already use. */
const doesSomething: Readonly<
  Record<string, (args: PerfArgs, towards: Turn['towards'], config: MachineConfig) => boolean>
> = {
  '--inline': (args) => gathers(args) && lengthsOf(args).some(({ bytes }) => isInlinable(args, bytes)),
  '--mtu': (args, towards, config) =>
    !isIwarp(config) &&
    (towards === 'more'
      ? args.mtuBytes > 0 && args.mtuBytes < mtuMax && longestOf(args) > args.mtuBytes
      : mtuBytesOf(args) > mtuMin),
  // Frames give the path the largest MTU that fits into them, and iWARP segments of any length.
  'ethernet.mtuBytes': (args, _towards, config) => {
    const { mtuBytes } = cableOf(config);
    return (isIwarp(config) || mtuBytes < mtuMax) && longestOf(args) > mtuBytes;
  },
  '--region': ({ region }) => region !== undefined,
  '--page-size': ({ region, pageBytes = 0 }) => region !== undefined && pageBytes < largePageBytes,
  '--keys': ({ region }) => (region?.keys ?? 1) > 1,
  // A list is posted whole, and the send queue holds a whole number of lists. An answer is sent when its message has
  // arrived.
  '--post-list': ({ postList = 1, txDepth, isEchoed }) => isEchoed !== true && txDepth % (2 * postList) === 0,
  // A queue that holds all messages of a QP limits no message.
  '--tx-depth': ({ txDepth, iterations }) => txDepth < iterations,
  '--rx-depth': ({ rxDepth, iterations, connection, usesSrq, qpCount }) =>
    rxDepth < iterations * (connection === 'XRC' || usesSrq === true ? qpCount : 1),
  '--cq-mod': ({ cqModeration }) => cqModeration > 1,
};
const longestOf = (args: PerfArgs): number => Math.max(...lengthsOf(args).map(({ bytes }) => bytes));
const mtuMin = 256;
const mtuMax = 4096;
const largePageBytes = 2 * 1024 ** 2;
const isInlinable = ({ inlineBytes, connection, verb }: PerfArgs, bytes: number): boolean =>
  bytes > inlineBytes && bytes <= inlineMaxOf(connection, verb);

export const advised = <R extends { readonly turn: readonly Turn[] }>(
  config: MachineConfig,
  args: PerfArgs,
  resource: R,
): R => ({
  ...resource,
  turn: resource.turn.filter(
    (turn) =>
      hasRoom(config, turn) &&
      (doesSomething[turn.what]?.(args, turn.towards, config) ?? true) &&
      !kindOf(args).trafficOf(args).idleOptions.includes(turn.what),
  ),
});

/** Whether a parameter is not yet at the end of its range. */
function hasRoom(config: MachineConfig, { what, towards }: Turn): boolean {
  const parameter = parametersByPath.get(what);
  if (parameter === undefined || parameter.kind === 'flag') return true;
  const value = settingOf(config, what);
  if (parameter.kind === 'choice') return value !== parameter.choices.at(towards === 'more' ? -1 : 0);
  // A read of memory observes earlier writes (PCIe 2.4.1): no configuration returns it sooner.
  const { readLatencyPs, writeLatencyPs } = config.pcie.rootComplex;
  if (what === 'pcie.rootComplex.readLatencyPs') return readLatencyPs > writeLatencyPs;
  return towards === 'more' ? Number(value) < parameter.max : Number(value) > parameter.min;
}

function settingOf(config: MachineConfig, path: string): ParameterValue {
  return path
    .split('.')
    .reduce<unknown>((group, name) => Reflect.get(group as object, name), config) as ParameterValue;
}

/**
 * Each thread has its own region, and each page a translation, so doubling the threads doubles the translations; fewer
 * suffice if frames are contiguous and the driver translates larger blocks.
 */
function alongThreads(measured: Measured): Along[] {
  const { args, config } = measured;
  const { region, threads = 1, pageBytes = 4096 } = args;
  const { hca } = config;
  if (region === undefined) return [];
  const { bytes, keys = 1, pattern, strideBytes = 4096 } = region;
  const along: Along[] = [];
  const isFar = pattern === 'random' || pattern === 'zipf' || (pattern === 'stride' && strideBytes > 4096);
  const pages = 2 * threads * Math.ceil(bytes / pageBytes);
  const onChip = hca.mttCacheLines * mttEntriesOfLine;
  if (isFar && pages > onChip && !hasRoomForTwice(measured)) {
    const turn = pageBytes < largePageBytes ? more('--page-size') : more('hca.mttCacheLines');
    const because = `Twice the threads have regions of ${pages} pages, and ${onChip} translations are on chip.`;
    along.push({ ...turn[0]!, because });
  }
  if (2 * threads * keys > hca.mptCacheEntries) {
    const because = `Twice the threads have ${2 * threads * keys} memory regions, and ${hca.mptCacheEntries} are on chip.`;
    along.push({ ...less('--keys')[0]!, because });
  }
  return along;
}
const mttEntriesOfLine = 8;

/** Whether half of the lines suffice, shown by a run that has visited all of its regions. */
function hasRoomForTwice(measured: Measured): boolean {
  const { mttLines, config } = measured;
  const messages = messagesOf(measured);
  return mttLines.every(
    ({ filled, evicted }) =>
      evicted === 0 && 2 * filled <= config.hca.mttCacheLines && messages > messagesPerLine * filled,
  );
}
/** Random draws per line after which 95 % of the lines were drawn. */
const messagesPerLine = 3;

/** Advises more on-chip contexts to accompany more QPs, if twice the QPs would exceed them. */
function alongQps(hca: MachineConfig['hca'], { qpCount }: PerfArgs): Along[] {
  const name = requesterContexts(hca);
  const onChip = hca[name];
  if (qpCount > onChip || 2 * qpCount <= onChip) return [];
  const because = `Of twice the QPs, ${2 * qpCount}, the contexts of ${onChip} are on chip.`;
  return [{ ...more(`hca.${name}`)[0]!, because }];
}

/** The parameter for the requester's context room: its own, or that of the cache that it shares with the receiver. */
export const requesterContexts = ({
  sendContextEntries,
}: MachineConfig['hca']): 'sendContextEntries' | 'qpcCacheEntries' =>
  sendContextEntries > 0 ? 'sendContextEntries' : 'qpcCacheEntries';

/** Each program has its own core. */
function alongPrograms(programs: number, { core }: MachineConfig['host']): Along[] {
  if (2 * programs <= core.count) return [];
  return [
    { ...more('host.core.count')[0]!, because: `A host has ${core.count} cores, one for each thread.` },
  ];
}

/** A faster sender may consume all receives of a queue that several QPs share before they are posted again; each RNR NAK costs a delay. */
function alongSenders({ args }: Measured): Along[] {
  const { verb, connection, usesSrq, rxDepth, txDepth, iterations, qpCount, threads = 1 } = args;
  const isShared = connection === 'XRC' || usesSrq === true;
  const underWay = (Math.min(txDepth, iterations) * qpCount) / threads;
  // A message is acknowledged, and the next one sent, before its receive is posted again.
  if (verb !== 'send' || !isShared || rxDepth >= 2 * underWay) return [];
  const because = `${underWay} messages may be under way to a queue of ${rxDepth} receives.`;
  return [{ ...more('--rx-depth')[0]!, because }];
}

/** The advised changes, each with the changes that must accompany it. */
export function withAlong(measured: Measured, turn: readonly Turn[]): Turn[] {
  const { args, config } = measured;
  const { hca, host } = config;
  const ofPrograms = Object.entries(kindOf(args).programCounts(args)).map(
    ([field, programs]) => [`--${field}`, () => alongPrograms(programs, host)] as const,
  );
  const alongOf: Readonly<Record<string, () => Along[]>> = {
    ...Object.fromEntries(ofPrograms),
    '--threads': () => [...alongThreads(measured), ...alongPrograms(args.threads ?? 1, host)],
    '--qps': () => alongQps(hca, args),
  };
  const ofSenders = alongSenders(measured);
  return turn.map((each) => {
    const own = each.towards === 'more' ? [...(each.along ?? []), ...(alongOf[each.what]?.() ?? [])] : [];
    const along = each.what === '--rx-depth' ? own : [...own, ...ofSenders];
    return along.length === 0 ? each : { ...each, along };
  });
}
