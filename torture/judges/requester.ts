/**
 * Judges the busy cycles of requesters, which follow from the configuration and the packets sent: each request that
 * ended was started once, each packet on the cable, or to the port itself, was made once (hw/hca/requester/README.md).
 *
 *     least = requests × taking up + packets × making + payload from memory × gathering
 *     most  = the same with the longest WQEs, where nothing was sent again, refused, or waited for the unit that keeps READs
 *
 * By machine from what ended, since the report counts operations so; of players by node as well, from what they saw
 * end.
 */

import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Played } from '../run-story.ts';
import { traitsOf } from './scene-traits.ts';
import { successesOf } from './traffic.ts';

const lineBytes = 64;
/** The longest WQE of the card. */
const wqeBytesMax = 1008;
/** True for requests, which requesters make, by their names in the report. */
const isRequest = (opcode: string): boolean =>
  /^(RC|UC|UD|XRC)_(SEND|RDMA_WRITE|RDMA_READ_REQUEST|COMPARE_SWAP|FETCH_ADD|MASKED)/.test(opcode);
/** Packets that have payload whatever their message is. */
const hasPayload = (opcode: string): boolean => /_(FIRST|MIDDLE|LAST|LAST_WITH_\w+)$/.test(opcode);

type HcaConfig = MachineConfig['hca'];

/** Requests that left a node, or both. */
interface Sent {
  packets: number;
  /** Packets among them that certainly have payload. */
  filled: number;
  payloadBytes: number;
}

export function judgeRequester(played: Played): string[] {
  const { story, report, config, error } = played;
  if (error !== undefined || isCut(played)) return [];
  const busy = report.nodes.map(({ hca }) => hca.blocks['requester']?.busyCycles ?? 0);
  const sent = report.nodes.map((_, node) => sentBy(played, node));
  const atLeast = isToGroups(story) ? report.nodes.map((_, node) => sentOnce(played, node)) : sent;
  const found = busy.flatMap((cycles, node) => {
    const least = leastCycles(
      config.hca,
      successesOf(played, node),
      atLeast[node]!,
      isGathered(played, node),
    );
    return cycles < least
      ? [`node ${node}: its requester was busy for ${cycles} cycles, what it sent takes ${least} at least`]
      : [];
  });
  const operations = Object.values(report.operations);
  const ended = operations.reduce((sum, { count }) => sum + count, 0);
  const [cycles, all] = [busy.reduce((sum, one) => sum + one, 0), sumOf(sent)];
  const gathered = report.nodes.every((_, node) => isGathered(played, node));
  const least = leastCycles(config.hca, ended, sumOf(atLeast), gathered);
  if (found.length === 0 && cycles < least)
    found.push(`the requesters were busy for ${cycles} cycles, what was sent takes ${least} at least`);
  const most = mostCycles(config.hca, ended, all);
  if (isSmooth(played) && cycles > most)
    found.push(
      `the requesters were busy for ${cycles} cycles, ${ended} requests and ${all.packets} packets take ${most} at most`,
    );
  return story.scene === undefined || found.length === 0 ? found : found.slice(0, 1);
}

/** Work may have been cut off by a device that left or was reset. */
const isCut = ({ story }: Played): boolean =>
  story.climate === 'broken' ||
  story.faults.some((fault) => 'device' in fault || 'reset' in fault || 'catastrophic' in fault) ||
  traitsOf(story).hasResets === true;

const sumOf = (parts: readonly Sent[]): Sent =>
  parts.reduce(
    (sum, part) => ({
      packets: sum.packets + part.packets,
      filled: sum.filled + part.filled,
      payloadBytes: sum.payloadBytes + part.payloadBytes,
    }),
    { packets: 0, filled: 0, payloadBytes: 0 },
  );

const isToGroups = (story: Played['story']): boolean => traitsOf(story).sendsToGroups === true;

/** Returns the requests that left a node's port, or went to the port itself. A datagram to a group does both. */
function sentBy(played: Played, node: number): Sent {
  const { loopback } = played.report.nodes[node]!.hca;
  return sumOf([sentOnce(played, node), sentIn([loopback.transmitted, loopback.retransmitted])]);
}

/** Requests that left a node's port. */
const sentOnce = ({ report }: Played, node: number): Sent =>
  sentIn(
    report.wire
      .filter(({ from }) => from === node)
      .flatMap(({ opcodes, retransmitted }) => [opcodes, retransmitted]),
  );

type Ledger = Played['report']['wire'][number]['opcodes'];

function sentIn(ledgers: readonly Ledger[]): Sent {
  return sumOf(
    ledgers.flatMap((ledger) =>
      Object.entries(ledger).flatMap(([opcode, { packets, payloadBytes }]) =>
        isRequest(opcode) ? [{ packets, filled: hasPayload(opcode) ? packets : 0, payloadBytes }] : [],
      ),
    ),
  );
}

/** Whether all payload of a node's requests comes from memory: inline payload is in the WQEs. */
const isGathered = ({ story }: Played, node: number): boolean =>
  story.scene === undefined &&
  story.programs.every(
    (plan) =>
      plan.node !== node ||
      plan.steps.every((step) => step.do !== 'post' || step.wrs.every(({ isInline }) => !isInline)),
  );

function takeUpCycles(
  { wqeLineCycles, wqeBufferLines, requestPacketCycles, wqeDecodeCycles }: HcaConfig,
  wqeBytes: number,
): number {
  let lines = Math.ceil(wqeBytes / lineBytes);
  // A buffer that is refilled is filled whole.
  if (wqeBufferLines > 0 && lines > wqeBufferLines) while (lines % wqeBufferLines !== 0) lines++;
  const linesCycles = lines * wqeLineCycles - requestPacketCycles;
  return Math.max(wqeDecodeCycles, linesCycles);
}

function leastCycles(hca: HcaConfig, requests: number, sent: Sent, gathers: boolean): number {
  const { requestPacketCycles, gatherCycles, gatherBytesPerCycle } = hca;
  const move = gatherBytesPerCycle === 0 ? 0 : Math.ceil(sent.payloadBytes / gatherBytesPerCycle);
  const gathering = gathers ? sent.filled * gatherCycles + move : 0;
  return requests * takeUpCycles(hca, lineBytes) + sent.packets * requestPacketCycles + gathering;
}

function mostCycles(hca: HcaConfig, requests: number, { packets, payloadBytes }: Sent): number {
  const { requestPacketCycles, gatherCycles, gatherBytesPerCycle, sendContextRegisters } = hca;
  const move = gatherBytesPerCycle === 0 ? 0 : Math.ceil(payloadBytes / gatherBytesPerCycle) + packets;
  // Each request may be of another QP than those in registers.
  const load = sendContextRegisters === 0 ? 0 : hca.sendContextLoadCycles;
  const start = load + takeUpCycles(hca, wqeBytesMax);
  return requests * start + packets * (requestPacketCycles + gatherCycles) + move;
}

/** Whether each request was started and made into packets once, and none waited for the unit that keeps READs. */
function isSmooth({ story, report, config, seen }: Played): boolean {
  const { readRequestCycles, readResponseCycles, readResponseBytesPerCycle, readSegmentCycles } = config.hca;
  const { nodes, operations, wire } = report;
  const isUntroubled = nodes.every(
    ({ hca, onDemand }) =>
      Object.keys(hca.transport).length + Object.keys(hca.violations).length === 0 && onDemand === undefined,
  );
  const isCabled = wire.every(
    ({ opcodes, retransmitted, discarded }) =>
      discarded === 0 && Object.keys(retransmitted).length === 0 && opcodes['FRAME'] === undefined,
  );
  const areAllSeen =
    story.scene === undefined && seen.every((one) => one !== null && one.unfinished.length === 0);
  return (
    story.climate === 'calm' &&
    areAllSeen &&
    isUntroubled &&
    isCabled &&
    readRequestCycles + readResponseCycles + readResponseBytesPerCycle + readSegmentCycles === 0 &&
    Object.values(operations).every(({ failed }) => failed === 0)
  );
}
