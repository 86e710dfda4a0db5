/**
 * Impossible times: bytes that arrive before they can have crossed the cable or the PCIe link, by the rates of the
 * standards and the clocks of the programs; and retries that give up before their time-outs can have passed, or long after.
 * Sources: IBTA vol 2, 5.4 and 6 (lanes and line codes); PCIe Base 3.1, 4.2 (symbol rates and line codes); IBTA volume 1,
 * 9.7.6.1.3 (a time-out of code t takes 4.096 µs × 2^t to four times as long).
 */
import { psPerMs, psPerSecond } from '../../base/index.ts';
import { IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WR_RDMA_READ } from '../../userlib/index.ts';
import { lossesIn } from '../cable-faults.ts';
import { isOnEthernet } from '../ethernet-cable.ts';
import { ackTimeoutPs, patienceOf } from '../patience.ts';
import type { Played } from '../run-story.ts';
import { rnrDelayPs } from '../verbs-model.ts';
import { type Flow, flowsOf, type SendHistory } from './traffic.ts';

/** Gigabits of data of one lane. */
const cableLane: Readonly<Record<string, number>> = {
  SDR: (2.5 * 8) / 10,
  DDR: (5 * 8) / 10,
  QDR: (10 * 8) / 10,
  FDR10: (10.3125 * 64) / 66,
  FDR: (14.0625 * 64) / 66,
  EDR: (25.78125 * 64) / 66,
  HDR: 50,
  NDR: 100,
};
const pcieLane = [(2.5 * 8) / 10, (5 * 8) / 10, (8 * 128) / 130, (16 * 128) / 130, (32 * 128) / 130];

/** Clocks of programs count in cycles of their cores: a little is lost between. */
const roundingPs = 10_000;

export function judgePhysics(played: Played): string[] {
  const flows = flowsOf(played);
  return [...flows.flatMap((flow) => judgeFlow(played, flow)), ...judgeThroughput(played, flows)];
}

interface Rates {
  /** Picoseconds that a byte takes. */
  readonly cablePs: number;
  readonly pciePs: number;
}

function ratesOf({ report, story }: Played): Rates {
  const { wire, pcie, ethernet } = report.config;
  const bytePs = (gigabits: number): number => (8 * psPerSecond) / (gigabits * 1e9);
  const lane = pcieLane[Number(pcie.link.generation) - 1] ?? pcieLane.at(-1)!;
  const gigabits = isOnEthernet(story)
    ? ethernet.gigabitsPerSecond
    : (cableLane[wire.speed] ?? Number.POSITIVE_INFINITY) * Number(wire.lanes);
  return {
    cablePs: bytePs(gigabits),
    pciePs: bytePs(lane * Number(pcie.link.lanes)),
  };
}

const isLoopback = ({ story }: Played, { from, to }: Flow): boolean =>
  story.programs[from.program]!.node === story.programs[to.program]!.node;

/** Least time for bytes that have crossed both PCIe links and the cable when the request has succeeded. */
function leastPsOf(played: Played, flow: Flow, bytes: number): number {
  const { cablePs, pciePs } = ratesOf(played);
  return bytes * (isLoopback(played, flow) ? pciePs : Math.max(pciePs, cablePs));
}

function judgeFlow(played: Played, flow: Flow): string[] {
  const { from, sends } = flow;
  if (from.plan.transport !== 'RC') return [];
  const found: string[] = [];
  for (const [index, history] of sends.entries()) {
    const { plan, post, end, lengthBytes } = history;
    if (end === undefined) continue;
    const who = `request ${plan.id} (program ${from.program}, QP ${from.qp})`;
    const elapsedPs = end.toPs - post.fromPs;
    // Inline data cross the sender's PCIe link by stores of the processor.
    if (end.status === IBV_WC_SUCCESS && !plan.isInline) {
      const leastPs = leastPsOf(played, flow, lengthBytes);
      if (elapsedPs + roundingPs < leastPs)
        found.push(`${who}: ${lengthBytes} bytes took ${elapsedPs} ps, and their links need ${leastPs}`);
    }
    if (end.status === IBV_WC_RETRY_EXC_ERR && played.story.climate !== 'broken')
      found.push(...judgeGivingUp(played, flow, history, sends.slice(0, index), who));
  }
  return found;
}

/** Judges that a requester gives up within the longest time that its timeouts can take since its last progress. */
function judgeGivingUp(
  played: Played,
  { from, to }: Flow,
  { post, end }: SendHistory,
  before: readonly SendHistory[],
  who: string,
): string[] {
  const { timeout, retryCount, rnrRetry } = from.plan;
  const gotOnPs = before.reduce((last, { end: ended }) => Math.max(last, ended?.toPs ?? 0), post.fromPs);
  const timeouts = retryCount + 1 + lossesIn(played);
  // The program sleeps between two looks for a part of its patience; and hardware may be slow.
  const looksPs = patienceOf(played.story) / 64 + 500 * psPerMs;
  const rnrPs = (rnrRetry === 7 ? timeouts : rnrRetry + 1) * rnrDelayPs(to.plan.rnrTimer, played.story.set);
  // Without a timeout, only a later request reveals a loss: arbitrarily late if the cable keeps losing packets.
  const timeoutsPs =
    timeout !== 0
      ? 4 * timeouts * ackTimeoutPs(timeout, played.story.set)
      : Number.isFinite(timeouts)
        ? 0
        : Number.POSITIVE_INFINITY;
  const mostPs = timeoutsPs + rnrPs + looksPs;
  const elapsedPs = end!.toPs - gotOnPs;
  return elapsedPs <= mostPs
    ? []
    : [`${who}: gave up ${elapsedPs} ps after it got on last, and its time-outs take ${mostPs} at most`];
}

/** Judges the bytes that crossed the cable in one direction between the first post and the last completion. */
function judgeThroughput(played: Played, flows: readonly Flow[]): string[] {
  const { cablePs } = ratesOf(played);
  const found: string[] = [];
  for (const node of [0, 1]) {
    let bytes = 0;
    let fromPs = Number.POSITIVE_INFINITY;
    let toPs = 0;
    for (const flow of flows) {
      if (flow.from.plan.transport !== 'RC' || isLoopback(played, flow)) continue;
      for (const { plan, post, end, lengthBytes } of flow.sends) {
        const program = plan.opcode === IBV_WR_RDMA_READ ? flow.to.program : flow.from.program;
        if (end?.status !== IBV_WC_SUCCESS || played.story.programs[program]!.node !== node) continue;
        bytes += lengthBytes;
        fromPs = Math.min(fromPs, post.fromPs);
        toPs = Math.max(toPs, end.toPs);
      }
    }
    if (bytes > 0 && toPs - fromPs + roundingPs < bytes * cablePs)
      found.push(`node ${node} sent ${bytes} bytes in ${toPs - fromPs} ps: more than the cable carries`);
  }
  // The last frame's gap may still be outstanding.
  const restBytes = isOnEthernet(played.story) ? played.report.config.ethernet.interFrameGapBytes : 0;
  for (const { from, linkBytes } of played.report.wire)
    if ((linkBytes - restBytes) * cablePs > played.report.elapsedPs + roundingPs)
      found.push(`node ${from}: ${linkBytes} bytes on the cable in ${played.report.elapsedPs} ps`);
  return found;
}
