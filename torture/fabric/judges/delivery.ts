/**
 * Messages as programs sent and received them: completed ones are there byte for byte, once and in order; where nothing may be lost, all
 * of them complete, and nothing is sent twice.
 */
import type { FabricFlow, FlowEnd } from '../fabric-story.ts';
import { hasPacketFault, isLossless, isOnEthernet, type PlayedFabric } from '../played.ts';
import { mayExpire, mayTimeOut } from './limits.ts';
import { isAccepted } from './partitions.ts';
import { canDeadlock } from './routes.ts';

const failures: ReadonlySet<string> = new Set(['RETRY_EXC_ERR', 'WR_FLUSH_ERR']);

export function judgeDelivery(played: PlayedFabric): string[] {
  const { error, outcomes, hostCount, story } = played;
  if (error !== undefined) return [`the run ended with ${error.message}`];
  if (outcomes.length < hostCount) return [`${hostCount - outcomes.length} hosts returned nothing`];
  const isSure =
    story.faults.length === 0 && isLossless(played) && !mayExpire(played) && !canDeadlock(played);
  return [
    ...story.flows.flatMap((flow, index) => judgeFlow(played, flow, index, isSure)),
    ...(isSure ? judgeSure(played) : []),
  ];
}

/** The ends of a flow by host; a host that is no end of it has none. */
const endsOf = ({ outcomes }: PlayedFabric, index: number): (FlowEnd | undefined)[] =>
  outcomes.map(({ ends }) => ends.find(({ flow }) => flow === index));

function judgeFlow(played: PlayedFabric, flow: FabricFlow, index: number, isSure: boolean): string[] {
  const { kind, from, to, messages } = flow;
  const ends = endsOf(played, index);
  const { statuses } = ends[kind === 'read' ? to : from]!;
  const receivers = kind === 'group' ? [...ends.keys()] : [to];
  const what = `flow ${index} (${kind} from ${from} to ${to})`;
  const isReliable = kind !== 'datagram' && kind !== 'group';
  if (isReliable && !isAccepted(played, from, to))
    return judgeForeign(statuses).map((text) => `${what}: ${text}`);
  return [
    ...judgeStatuses(statuses, flow, isSure),
    ...receivers.flatMap((host) =>
      (isAccepted(played, from, host)
        ? judgeReceiver(played, flow, ends[host]!, statuses, isSure)
        : ends[host]!.came.map((message) => `message ${message} came from another partition`)
      ).map((text) => `host ${host}: ${text}`),
    ),
    ...(isSure && statuses.length !== messages
      ? [`${statuses.length} of ${messages} messages completed`]
      : []),
  ].map((text) => `${what}: ${text}`);
}

/** Between partitions the first request times out. */
const judgeForeign = (statuses: readonly string[]): string[] =>
  statuses[0] === 'RETRY_EXC_ERR' && statuses.slice(1).every((status) => status === 'WR_FLUSH_ERR')
    ? []
    : [`requests to another partition ended with ${statuses.join()}`];

function judgeStatuses(statuses: readonly string[], { kind }: FabricFlow, isSure: boolean): string[] {
  const failed = statuses.findIndex((status) => status !== 'SUCCESS');
  if (failed < 0) return [];
  const [first, ...later] = statuses.slice(failed);
  if (isSure || kind === 'datagram' || kind === 'group' || !failures.has(first!))
    return [`message ${failed} ended with ${first}`];
  if (first !== 'RETRY_EXC_ERR') return [`message ${failed} was the first to fail, with ${first}`];
  const other = later.find((status) => status !== 'WR_FLUSH_ERR');
  return other === undefined ? [] : [`after a failure a message ended with ${other}`];
}

function judgeReceiver(
  played: PlayedFabric,
  { kind, messages }: FabricFlow,
  { came, wrong }: FlowEnd,
  statuses: readonly string[],
  isSure: boolean,
): string[] {
  const done = statuses.filter((status) => status === 'SUCCESS').length;
  if (kind === 'write' || kind === 'read') {
    const bad = wrong.find((message) => message < done);
    return bad === undefined ? [] : [`message ${bad} completed, and has other bytes`];
  }
  if (wrong.length > 0) return [`${wrong.length} messages came with other bytes or lengths`];
  if (kind === 'send') {
    const isInOrder = came.every((message, at) => message === at);
    return isInOrder && came.length >= done
      ? []
      : [`SENDs came as ${came.join()}, of which ${done} completed`];
  }
  const mayRepeat = hasPacketFault(played, 'duplicated');
  const mayPass = mayRepeat || hasPacketFault(played, 'reordered');
  const isAscending = came.every((message, at) => at === 0 || message > came[at - 1]!);
  const isOnce = new Set(came).size === came.length;
  return [
    ...(mayPass || isAscending ? [] : [`datagrams came as ${came.join()}`]),
    ...(mayRepeat || isOnce ? [] : [`datagrams came twice: ${came.join()}`]),
    ...(isSure && came.length !== messages ? [`${came.length} of ${messages} datagrams came`] : []),
  ];
}

/** Counts of a requester whose timer expired although nothing was lost, and of its responder. */
const ofTimeouts: ReadonlySet<string> = new Set(['ackTimeout', 'duplicateRequest', 'unexpectedResponse']);

/** Nothing was lost, dropped, repeated or complained about. */
function judgeSure(played: PlayedFabric): string[] {
  const { report } = played;
  // A bridge floods to stations that it does not know: copies end where they are of no use.
  const ofPartitions = played.story.memberships === undefined ? [] : ['inboundPkey', 'outboundPkey'];
  const harmless = isOnEthernet(played) ? ['noRoute', 'ownPort', 'linkLocal'] : ofPartitions;
  const dropped = (report.switches ?? []).flatMap(({ node, ports }) =>
    ports.flatMap(({ port, notForwarded, output }) => [
      ...Object.entries(notForwarded)
        .filter(([reason]) => !harmless.includes(reason))
        .map(([reason, count]) => `switch ${node}, port ${port} dropped ${count} packets: ${reason}`),
      ...(output !== undefined && output.queueDrops + output.watchdogDrops > 0
        ? [
            `switch ${node}, port ${port} dropped ${output.queueDrops} + ${output.watchdogDrops} frames of its queues`,
          ]
        : []),
    ]),
  );
  const missing = report.wire.flatMap(({ from, to, lost = 0, corrupted, dropped: gone, discarded }) =>
    lost + corrupted + gone + discarded === 0
      ? []
      : [
          `cable ${from} to ${to}: ${lost} lost, ${corrupted} damaged, ${gone} dropped, ${discarded} discarded`,
        ],
  );
  const repeated = report.nodes.flatMap(({ hca }, host) =>
    Object.keys(hca.transport).every((name) => ofTimeouts.has(name) && mayTimeOut(played)) ||
    played.story.memberships !== undefined
      ? []
      : [`host ${host} recovered: ${JSON.stringify(hca.transport)}`],
  );
  return [...dropped, ...missing, ...repeated];
}
