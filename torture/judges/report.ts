/**
 * Judges the report by the programs' own measurements: counts of requests, bytes and doorbells, latencies by the
 * programs' own clocks, and in calm stories the packets that the messages' lengths demand (IBTA 9.4, 9.7).
 */

import { psPerNs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import { copiesOf } from '../cable-faults.ts';
import { framesOf, isOnEthernet, networkHeaderBytes } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import { isOnDemandArea, mtuBytes, type SendPlan, type Story } from '../story.ts';
import { isLocal, verbs } from '../verbs.ts';
import { rnrDelayPs } from '../verbs-model.ts';
import { type Flow, flowsOf, type SendHistory } from './traffic.ts';

/** Quantiles and ends of a report's histograms are exact to within this part. */
const histogramError = 0.004;

export function judgeReport(played: Played): string[] {
  const flows = flowsOf(played);
  const isWhole = played.seen.every(
    (seen) => seen !== null && seen.failure === null && seen.finals.length > 0,
  );
  if (!isWhole || played.error !== undefined || played.story.climate === 'broken') return [];
  return [
    ...judgeOperations(played, flows),
    ...judgeDoorbells(played),
    ...judgeDistance(played, flows),
    ...judgeRnrNaks(played, flows),
    ...judgeStages(played, flows),
    ...(played.story.climate === 'calm' ? judgePackets(played, flows) : []),
  ];
}

function judgeOperations({ report, seen }: Played, flows: readonly Flow[]): string[] {
  const found: string[] = [];
  if (seen.some((observations) => observations!.broken.length > 0)) return found;
  for (const [opcode, { operation: name }] of verbs) {
    const histories = flows.flatMap(({ sends }) => sends.filter(({ plan }) => plan.opcode === opcode));
    const row = report.operations[name];
    const failed = histories.filter(({ end }) => end !== undefined && end.status !== ibv.IBV_WC_SUCCESS);
    const done = histories.filter((history) => !failed.includes(history));
    const hasPending = flows.some(({ from }) => from.seen.unfinished.length > 0);
    if (hasPending) continue;
    const expect = (what: string, actual: number, due: number): void => {
      if (actual !== due) found.push(`${name}: the report says ${actual} ${what}, the programs saw ${due}`);
    };
    expect('successful', row?.count ?? 0, done.length);
    expect('failed', row?.failed ?? 0, failed.length);
    expect('silent', row?.silent ?? 0, done.filter(({ post }) => !post.isSignalled).length);
    expect(
      'payload bytes',
      row?.payloadBytes ?? 0,
      done.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0),
    );
    found.push(...judgeLatency(name, row?.latencyPs ?? null, histories));
  }
  return found;
}

/** The latency of the report lies between the times that the program's clock showed inside and outside of its calls. */
function judgeLatency(
  name: string,
  latency: { readonly min: number; readonly max: number } | null,
  histories: readonly SendHistory[],
): string[] {
  const signalled = histories.filter(({ end }) => end !== undefined);
  if (signalled.length === 0 || latency === null)
    return signalled.length === 0 && latency === null
      ? []
      : [
          `${name}: latencies of ${signalled.length} requests, and the report says ${JSON.stringify(latency)}`,
        ];
  const inside = signalled.map(({ post, end }) => Math.max(0, end!.fromPs - post.toPs));
  const outside = signalled.map(({ post, end }) => end!.toPs - post.fromPs);
  const bounds = {
    min: [Math.min(...inside), Math.min(...outside)],
    max: [Math.max(...inside), Math.max(...outside)],
  } as const;
  return (['min', 'max'] as const).flatMap((which) => {
    const [least, most] = bounds[which];
    const value = latency[which];
    const isWithin = value >= least * (1 - histogramError) - 1 && value <= most * (1 + histogramError) + 1;
    return isWithin
      ? []
      : [`${name}: ${which} latency ${value} ps, by the programs' clocks from ${least} to ${most}`];
  });
}

function judgeDoorbells({ report, story, seen }: Played): string[] {
  return report.nodes.flatMap(({ hca }, node) => {
    const rung = (hca.doorbells['send'] ?? 0) + (hca.doorbells['blueFlame'] ?? 0);
    const due = story.programs.reduce(
      (sum, program, index) => sum + (program.node === node ? seen[index]!.doorbells : 0),
      0,
    );
    // A driver also rings for the frames by which it finds neighbours.
    const most = due + framesOf(report, node).sent;
    return rung >= due && rung <= most ? [] : [`node ${node}: ${rung} doorbells, the programs rang ${due}`];
  });
}

/** A request that was answered has crossed two ports and the cable each way. */
function judgeDistance({ report, story }: Played, flows: readonly Flow[]): string[] {
  const { wire, ethernet } = report.config;
  const { portLatencyNs, cableMetres, cablePsPerMetre } = isOnEthernet(story) ? ethernet : wire;
  const leastPs = 2 * (2 * portLatencyNs * psPerNs + cableMetres * cablePsPerMetre);
  for (const { from, to, sends } of flows) {
    if (
      from.plan.transport !== 'RC' ||
      story.programs[from.program]!.node === story.programs[to.program]!.node
    )
      continue;
    for (const { plan, post, end } of sends)
      if (!isLocal(plan.opcode) && end?.status === ibv.IBV_WC_SUCCESS && end.toPs - post.fromPs < leastPs)
        return [
          `request ${plan.id} took ${end.toPs - post.fromPs} ps to the other host and back, the cable and its ports take ${leastPs}`,
        ];
  }
  return [];
}

/**
 * Least number of RNR NAKs of a node whose delay its requester waited for. An RNR NAK after a missing response, or one
 * dropped for an absent page, does not count: the requester repeats everything from that response on. 0 or less:
 * perhaps none.
 */
const rnrNaksHeeded = ({ hca, onDemand }: Played['report']['nodes'][number]): number =>
  (hca.transport['rnrNakReceived'] ?? 0) -
  (hca.transport['missingResponse'] ?? 0) -
  (onDemand?.device.requests['requester'] ?? 0);

/** Each RNR NAK keeps its queue still for the time that it names. */
function judgeRnrNaks({ report, story }: Played, flows: readonly Flow[]): string[] {
  return report.nodes.flatMap((of, node) => {
    const received = rnrNaksHeeded(of);
    const most = flows
      .filter(({ from }) => from.plan.transport === 'RC' && story.programs[from.program]!.node === node)
      .reduce(
        (sum, { to }) => sum + 1 + Math.floor(report.elapsedPs / rnrDelayPs(to.plan.rnrTimer, story.set)),
        0,
      );
    return received <= most
      ? []
      : [`node ${node}: ${received} RNR NAKs, their delays leave time for ${most}`];
  });
}

/** Time is counted as waiting for a time-out or an RNR delay when there was one, and only then. */
function judgeStages({ report, story }: Played, flows: readonly Flow[]): string[] {
  const isSimple =
    flows.every(({ from, sends }) => from.seen.unfinished.length === 0 && sends.every(isDone)) &&
    !story.programs.some(({ areas }) => areas.some(isOnDemandArea));
  const mustWait = {
    ackTimeout: isSimple,
    rnrDelay: isSimple && report.nodes.some((node) => rnrNaksHeeded(node) > copiesOf(story)),
  };
  return [['ackTimeout', 'ackTimeout'] as const, ['rnrDelay', 'rnrNakReceived'] as const].flatMap(
    ([stage, event]) => {
      const count = report.nodes.reduce((sum, { hca }) => sum + (hca.transport[event] ?? 0), 0);
      const accountedPs = Object.values(report.operations).reduce(
        (sum, { milestonesPs }) => sum + (milestonesPs[stage] ?? 0),
        0,
      );
      const isRight = count === 0 ? accountedPs === 0 : accountedPs > 0 || !mustWait[stage];
      return isRight ? [] : [`${accountedPs} ps are counted for ${stage}, and ${event} counts ${count}`];
    },
  );
}

const isDone = ({ end, post }: SendHistory): boolean =>
  end === undefined ? !post.isSignalled : end.status === ibv.IBV_WC_SUCCESS;

/** Packets that a message of this length is cut into. */
const packetsOf = (lengthBytes: number, mtu: number): number => Math.max(1, Math.ceil(lengthBytes / mtu));

/**
 * Bytes of each packet: LRH and BTH, ICRC and VCRC (IBTA 7.7, 9.2, 7.8); extended headers (9.3, table 38) are added.
 */
const packetBytes = 8 + 12 + 4 + 2;
/** Bytes of each packet on Ethernet in addition to the network header: both MACs and the type, BTH, ICRC and FCS. */
const etherBytes = 14 + 12 + 4 + 4;
/** The shortest frame, which others are padded to. */
const etherBytesMin = 64;
const immediateBytes = 4;
/** Bytes of the key to invalidate (IETH). */
const keyBytes = 4;
const datagramBytes = 8;
const rdmaBytes = 16;
const atomicRequestBytes = 28;
const ackBytes = 4;
const atomicAnswerBytes = ackBytes + 8;
const padded = (lengthBytes: number): number => 4 * Math.ceil(lengthBytes / 4);

/** Bytes around the payload of each packet of a link. */
const frameBytesOf = (story: Story, link: number): number =>
  isOnEthernet(story)
    ? etherBytes + networkHeaderBytes(story, story.links[link]!.gidIndex ?? 0)
    : packetBytes;

/** Returns the bytes of the packets of one request and its responses, without acknowledgements. */
function bytesOf(
  plan: SendPlan,
  isDatagram: boolean,
  lengthBytes: number,
  mtu: number,
  frameBytes: number,
): number {
  const packets = packetsOf(lengthBytes, mtu);
  const payload = packets * frameBytes + padded(lengthBytes);
  switch (plan.opcode) {
    case ibv.IBV_WR_ATOMIC_CMP_AND_SWP:
    case ibv.IBV_WR_ATOMIC_FETCH_AND_ADD:
      return 2 * frameBytes + atomicRequestBytes + atomicAnswerBytes;
    case ibv.IBV_WR_RDMA_READ:
      // Only the first and the last response acknowledge (AETH).
      return frameBytes + rdmaBytes + payload + ackBytes * Math.min(packets, 2);
    case ibv.IBV_WR_RDMA_WRITE:
    case ibv.IBV_WR_RDMA_WRITE_WITH_IMM:
      return payload + rdmaBytes + (plan.imm === undefined ? 0 : immediateBytes);
    case ibv.IBV_WR_SEND_WITH_INV:
      return payload + keyBytes;
    default:
      return payload + (isDatagram ? datagramBytes : 0) + (plan.imm === undefined ? 0 : immediateBytes);
  }
}

/** Judges packets of requests and READ responses that crossed the cable once: exactly as many as the lengths demand. */
function judgePackets({ report, story }: Played, flows: readonly Flow[]): string[] {
  if (story.faults.length > 0) return [];
  const isDisturbed = report.wire.some(({ retransmitted }) => Object.keys(retransmitted).length > 0);
  // A request that is refused, also for want of a page, is not answered as its length demands, and later ones are not sent.
  const hasFailed = flows.some(({ sends }) =>
    sends.some(({ end }) => end !== undefined && end.status !== ibv.IBV_WC_SUCCESS),
  );
  if (isDisturbed || hasFailed) return [];
  const due = { requests: 0, payload: 0, responses: 0, bytes: 0 };
  for (const { link, from, to, sends } of flows) {
    if (story.programs[from.program]!.node === story.programs[to.program]!.node) continue;
    const frameBytes = frameBytesOf(story, link);
    // Only a frame without payload, and with few headers, is shorter than the shortest.
    const leastBytes = isOnEthernet(story) ? etherBytesMin : 0;
    const mtu = from.plan.transport === 'UD' ? 4096 : mtuBytes(from.plan.mtu);
    for (const { plan, lengthBytes } of sends) {
      if (isLocal(plan.opcode)) continue;
      const isRead = plan.opcode === ibv.IBV_WR_RDMA_READ;
      const isAtomic =
        plan.opcode === ibv.IBV_WR_ATOMIC_CMP_AND_SWP || plan.opcode === ibv.IBV_WR_ATOMIC_FETCH_AND_ADD;
      due.bytes += Math.max(
        leastBytes,
        bytesOf(plan, from.plan.transport === 'UD', lengthBytes, mtu, frameBytes),
      );
      due.requests += isRead || isAtomic ? 1 : packetsOf(lengthBytes, mtu);
      if (isRead) due.responses += packetsOf(lengthBytes, mtu);
      if (isAtomic) due.responses++;
      else due.payload += lengthBytes;
    }
  }
  const went = { requests: 0, payload: 0, responses: 0, bytes: 0 };
  for (const { opcodes } of report.wire)
    for (const [opcode, { packets, bytes, payloadBytes }] of Object.entries(opcodes)) {
      const isAnswer = /ACKNOWLEDGE$/.test(opcode) && !/ATOMIC/.test(opcode);
      // Hosts on Ethernet find each other by the other frames.
      if (isAnswer || opcode === 'FRAME') continue;
      const isResponse = /RESPONSE|ATOMIC_ACK/.test(opcode);
      went[isResponse ? 'responses' : 'requests'] += packets;
      went.payload += payloadBytes;
      went.bytes += bytes;
    }
  return (['requests', 'responses', 'payload', 'bytes'] as const).flatMap((what) =>
    went[what] === due[what]
      ? []
      : [`${went[what]} ${what} on the cable, the messages' lengths demand ${due[what]}`],
  );
}
