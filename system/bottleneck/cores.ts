/**
 * The cores of the programs. A core that polls an empty queue waits; one that posts while the bus does not take its stores waits,
 * too. What is left is work.
 */
import type { NodeReport } from '../machine/index.ts';
import type { PerfArgs } from '../workloads/index.ts';
import { less, type Measured, messagesOf, more, type ProgramCore, type Resource } from './measured.ts';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** CQEs that the device of a host has written. */
function completionsOf({ hca }: NodeReport): number {
  const used = hca.caches['cqc']?.users['completion'];
  return used === undefined ? 0 : used.hits + used.misses;
}

const isSender = ({ isBidirectional, isEchoed }: PerfArgs, node: number): boolean =>
  node === 0 || isBidirectional === true || isEchoed === true;

/** Messages of one side that sends. */
const sentBy = (measured: Measured): number =>
  measured.args.isBidirectional === true ? messagesOf(measured) / 2 : messagesOf(measured);

/** Cycles that posting takes when every store is taken at once, of one side that sends. */
function plainPostCycles(measured: Measured, node: number): number {
  const { config, args, figures } = measured;
  const { cost } = config.host;
  const { sizeBytes, inlineBytes, verb } = args;
  const sends = isSender(args, node) ? sentBy(measured) : 0;
  const inline = sizeBytes <= inlineBytes ? Math.ceil(sizeBytes / 64) * cost.postSendPerInlineByte64 : 0;
  const receives = verb === 'send' && isSender(args, 1 - node) ? sentBy(measured) : 0;
  const { send = 0, blueFlame = 0 } = figures.nodes[node]!.hca.doorbells;
  const lines = 1 + Math.ceil(Math.max(0, sizeBytes <= inlineBytes ? sizeBytes - 16 : 0) / 64);
  return (
    sends * (cost.postSend + cost.postSendPerSegment + inline) +
    (send + blueFlame * lines) * cost.mmioStore +
    receives * cost.postRecv
  );
}

interface CoreShares {
  readonly work: number;
  readonly emptyPolls: number;
  readonly blockedPosts: number;
}

function sharesOf(measured: Measured, { node, cycles }: ProgramCore, programs: number): CoreShares {
  const { config, durationPs, figures } = measured;
  const { core, cost } = config.host;
  const total = (durationPs * core.clockMHz) / 1e6;
  const { post = 0, poll = 0 } = cycles;
  const taken = (completionsOf(figures.nodes[node]!) / programs) * (cost.pollCompletion + cost.readDmaLine);
  const emptyPolls = Math.max(0, poll - taken);
  const blockedPosts = Math.max(0, post - plainPostCycles(measured, node) / programs);
  const all = sum(Object.values(cycles));
  return {
    work: (all - emptyPolls - blockedPosts) / total,
    emptyPolls: emptyPolls / total,
    blockedPosts: blockedPosts / total,
  };
}

/** Of each host the program with most work. */
export function coreResources(measured: Measured): Resource[] {
  const { cores, args } = measured;
  return [0, 1].flatMap((node) => {
    const own = cores.filter((core) => core.node === node);
    const shares = own.map((core) => sharesOf(measured, core, own.length));
    if (shares.length === 0) return [];
    const most = (pick: (shares: CoreShares) => number): number => Math.max(...shares.map(pick));
    const work: Resource = {
      name: `core of host ${node}`,
      kind: 'server',
      share: most((each) => each.work),
      turn: [...more('--threads', 'host.core.clockMHz'), ...coreTurns(node, args.verb === 'send')],
    };
    const blocked: Resource = {
      name: `stores of host ${node} to the device`,
      kind: 'window',
      share: most((each) => each.blockedPosts),
      turn: [...more('--post-list', 'pcie.endpointPort.postedHeaders', 'host.core.writeCombiningBuffers')],
    };
    if (!isSender(args, node)) return [work, blocked];
    const window: Resource = {
      name: `messages in flight of host ${node}`,
      kind: 'window',
      share: Math.min(...shares.map((each) => each.emptyPolls)),
      turn: [...more('--tx-depth', '--qps'), ...less('--cq-mod')],
    };
    return [work, blocked, window];
  });
}

const coreTurns = (node: number, isSend: boolean) =>
  node === 1 && isSend
    ? less('host.cost.postRecv', 'host.cost.pollCompletion')
    : [...more('--post-list'), ...less('host.cost.postSend')];
