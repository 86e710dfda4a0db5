/**
 * Exactly one completion for each request that is owed one, in order, with a status that the standard allows and the fields that
 * belong to it.
 */
import * as ibv from '../../userlib/index.ts';
import { copiesOf, lossesIn } from '../cable-faults.ts';
import { isOnEthernet } from '../ethernet-cable.ts';
import type { CompletionSeen, Observations } from '../observations.ts';
import { ackTimeoutPs } from '../patience.ts';
import type { Played } from '../run-story.ts';
import { isOnDemandArea, type SendPlan, type SgePlan, type Story } from '../story.ts';
import { consumesReceive, grhBytes, receiveOpcodeOf, verbs } from '../verbs.ts';
import {
  endOfBadInvalidation,
  endOfFlaw,
  endsOfBadReceive,
  endsOfBadReceiver,
  endsOfLostWindow,
  isFlawOfAnyLength,
  isFoundByResponder,
  rnrDelayPs,
} from '../verbs-model.ts';
import { backOf, type Flow, flowsOf, type ReceiveHistory, type SendHistory } from './traffic.ts';
import { isEverTaken, windowStateOf } from './windows.ts';

/** A story with the limit of packets that were missing where they were due. */
interface CountedStory extends Story {
  readonly losses: number;
  /** Records of requests that the QPs of a device share. */
  readonly outstandingWqes: number;
}

export function judgeCompletions(played: Played): string[] {
  const { outstandingWqes } = played.config.hca;
  const story: CountedStory = { ...played.story, losses: lossesIn(played), outstandingWqes };
  const found: string[] = [];
  for (const [program, seen] of played.seen.entries())
    if (seen !== null) found.push(...judgeUniqueness(program, seen));
  const flows = flowsOf(played);
  for (const flow of flows) {
    const back = backOf(flows, flow);
    found.push(...judgeOrder(flow), ...judgeArrivals(flow, back, story), ...judgeFields(flow));
    if (played.story.climate !== 'broken')
      found.push(...judgeEnds(story, flow, back), ...judgeCoverage(story, flow, back));
  }
  return found;
}

const named = ({ from }: Flow, { plan }: SendHistory): string =>
  `request ${plan.id} (program ${from.program}, QP ${from.qp})`;

function judgeUniqueness(program: number, { completions, posts, receives }: Observations): string[] {
  const found: string[] = [];
  const known = new Map([...posts, ...receives].map((post) => [post.id, post]));
  const times = new Map<number, number>();
  for (const { id, status, qp } of completions) {
    const post = known.get(id);
    if (post === undefined)
      found.push(`program ${program} took a completion of ${id}, which it never posted`);
    else if (post.qp >= 0 && post.qp !== qp)
      found.push(`program ${program}: request ${id} completed on another QP`);
    else if (!post.isSignalled && status === ibv.IBV_WC_SUCCESS)
      found.push(`program ${program}: request ${id} was not signalled, and completed with SUCCESS`);
    times.set(id, (times.get(id) ?? 0) + 1);
  }
  for (const [id, count] of times)
    if (count > 1) found.push(`program ${program}: request ${id} completed ${count} times`);
  return found;
}

function judgeOrder(flow: Flow): string[] {
  const { from, sends } = flow;
  const placeOf = new Map(sends.map(({ plan, place }) => [plan.id, place]));
  const found: string[] = [];
  let last = -1;
  for (const { id, qp } of from.seen.completions) {
    const place = placeOf.get(id);
    if (place === undefined || qp !== from.qp) continue;
    if (place < last)
      found.push(`request ${id} (program ${from.program}) completed after a later one of its QP`);
    last = Math.max(last, place);
  }
  return [...found, ...judgeReceiveOrder(flow)];
}

/** A receive queue of its own gives its buffers out in order. */
function judgeReceiveOrder({ to, arrivals, flushedReceives }: Flow): string[] {
  if (to.plan.srq >= 0) return [];
  const posted = to.seen.receives.filter(({ qp, error }) => qp === to.qp && error === 0).map(({ id }) => id);
  const ended = new Set([...arrivals, ...flushedReceives].map(({ plan }) => plan.id));
  const order = to.seen.completions.filter(({ id, qp }) => qp === to.qp && ended.has(id)).map(({ id }) => id);
  const wrong = order.findIndex((id, index) => id !== posted[index]);
  return wrong < 0
    ? []
    : [`receive ${order[wrong]} (program ${to.program}) completed where ${posted[wrong]} was due`];
}

function judgeArrivals(flow: Flow, back: Flow, story: CountedStory): string[] {
  const { arrivals, brought, to, from, sends } = flow;
  const found = arrivals.flatMap(({ end, plan }, index) =>
    brought[index] === undefined && end.status === ibv.IBV_WC_SUCCESS
      ? [`receive ${plan.id} (program ${to.program}) brought ${end.byteLen} bytes that no program sent`]
      : [],
  );
  const isWhole =
    story.climate === 'calm' || (story.climate === 'lossy' && isOnEthernet(story) && story.losses === 0);
  const isCalm = isWhole && to.seen.broken.length === 0 && from.seen.broken.length === 0;
  if (!isCalm || to.seen.failure !== null || from.seen.failure !== null) return found;
  const consuming = sends.filter(({ plan }) => consumesReceive(plan.opcode));
  const posted = to.seen.receives.filter(({ qp }) => qp === to.qp).length;
  const hasRoomForAll = to.plan.srq < 0 && posted <= to.plan.maxRecvWr && posted >= consuming.length;
  if (
    (from.plan.transport === 'RC' || (hasRoomForAll && !hasOnDemand(story, to.program))) &&
    arrivals.length !== consuming.length &&
    !isCutShort(flow) &&
    !mayHang(story, flow, back)
  )
    found.push(
      `link ${flow.link}: ${consuming.length} messages sent by program ${from.program}, ${arrivals.length} received`,
    );
  return found;
}

/**
 * Whether an area is on demand: packets that meet an absent page get an RNR NAK, or are lost if their service sends
 * none.
 */
const hasOnDemand = (story: CountedStory, program: number): boolean =>
  story.programs[program]!.areas.some(isOnDemandArea);

const isCutShort = ({ sends }: Flow): boolean =>
  sends.some(({ end }) => end !== undefined && end.status !== ibv.IBV_WC_SUCCESS);

function judgeFields(flow: Flow): string[] {
  const found: string[] = [];
  const expect = (who: string, what: string, actual: number, due: number): void => {
    if (actual !== due) found.push(`${who}: ${what} is ${actual}, expected ${due}`);
  };
  for (const history of flow.sends) {
    const { plan, end, lengthBytes } = history;
    if (end?.status !== ibv.IBV_WC_SUCCESS) continue;
    expect(named(flow, history), 'opcode', end.opcode, verbs.get(plan.opcode)!.completion);
    if (end.opcode === ibv.IBV_WC_RDMA_READ)
      expect(named(flow, history), 'byteLen', end.byteLen, lengthBytes);
  }
  const extra = flow.to.plan.transport === 'UD' ? grhBytes : 0;
  for (const [index, { plan: receive, end }] of flow.arrivals.entries()) {
    const sent = flow.brought[index];
    if (sent === undefined || end.status !== ibv.IBV_WC_SUCCESS) continue;
    const who = `receive ${receive.id} (program ${flow.to.program})`;
    expect(who, 'opcode', end.opcode, receiveOpcodeOf(sent.plan.opcode));
    expect(who, 'byteLen', end.byteLen, sent.lengthBytes + extra);
    expect(
      who,
      'the flag of immediate data',
      end.flags & ibv.IBV_WC_WITH_IMM,
      sent.plan.imm === undefined ? 0 : ibv.IBV_WC_WITH_IMM,
    );
    if (sent.plan.imm !== undefined) expect(who, 'immediate data', end.imm, sent.plan.imm);
    const isInvalidating = sent.plan.opcode === ibv.IBV_WR_SEND_WITH_INV;
    expect(
      who,
      'the flag of an invalidated key',
      end.flags & ibv.IBV_WC_WITH_INV,
      isInvalidating ? ibv.IBV_WC_WITH_INV : 0,
    );
    if (isInvalidating) expect(who, 'the key', end.imm, sent.post.key!);
  }
  return found;
}

/** The status of everything that ended. */
function judgeEnds(story: CountedStory, flow: Flow, back: Flow): string[] {
  const found: string[] = [];
  let failed: SendHistory | undefined;
  for (const history of flow.sends) {
    const { end } = history;
    if (end === undefined) continue;
    if (end.status === ibv.IBV_WC_SUCCESS) {
      if (failed !== undefined)
        found.push(`${named(flow, history)} succeeded after ${failed.plan.id} had failed`);
      if (mustFail(story, flow, history))
        found.push(`${named(flow, history)} ended in SUCCESS in spite of its flaw: ${history.plan.flaw}`);
      if (history.lengthBytes > 0 && windowStateOf(flow, back, history) === 'gone')
        found.push(`${named(flow, history)} ended in SUCCESS by the key of a window that was gone`);
      continue;
    }
    const reason = failed === undefined ? unexplained(story, flow, back, history, end) : afterFailure(end);
    if (reason !== undefined)
      found.push(`${named(flow, history)} ended in ${ibv.wcStatusStr(end.status)}: ${reason}`);
    failed ??= history;
  }
  for (const [index, receive] of flow.arrivals.entries()) {
    const { end } = receive;
    if (end.status === ibv.IBV_WC_SUCCESS) continue;
    const sent = flow.brought[index];
    const isRight =
      sent?.plan.flaw === 'remoteInvalidKey'
        ? end.status === endOfBadInvalidation
        : endsOfBadReceive.includes(end.status) && isBadReceive(flow, receive, sent);
    if (!isRight)
      found.push(
        `receive ${receive.plan.id} (program ${flow.to.program}) ended in ${ibv.wcStatusStr(end.status)}, and nothing is wrong with it`,
      );
  }
  if (flow.flushedReceives.length > 0 && !isInError(story, flow.to, back, flow))
    found.push(
      `${flow.flushedReceives.length} receives of program ${flow.to.program} were flushed, and nothing had failed`,
    );
  return found;
}

const afterFailure = ({ status }: CompletionSeen): string | undefined =>
  status === ibv.IBV_WC_WR_FLUSH_ERR ? undefined : 'one before it has failed already';

/** @returns why the first failure of a send queue cannot be */
function unexplained(
  story: CountedStory,
  flow: Flow,
  back: Flow,
  history: SendHistory,
  end: CompletionSeen,
): string | undefined {
  const { plan } = history;
  const { status } = end;
  const elapsedPs = end.toPs - history.post.fromPs;
  if (status === ibv.IBV_WC_WR_FLUSH_ERR)
    return isInError(story, flow.from, flow, back) ? undefined : 'nothing had failed on its QP';
  if (endOfFlaw[plan.flaw].includes(status)) return undefined;
  if (endsOfLostWindow.includes(status) && mayLackWindow(flow, back, history)) return undefined;
  if (endsOfBadReceiver.includes(status))
    return isReceiverBad(flow, history) ? undefined : 'nothing is wrong with what receives it';
  if (status === ibv.IBV_WC_RETRY_EXC_ERR) return retriesUnexplained(story, flow, back, elapsedPs);
  if (status === ibv.IBV_WC_RNR_RETRY_EXC_ERR) return rnrUnexplained(story, flow, elapsedPs, plan);
  if (status === ibv.IBV_WC_LOC_PROT_ERR && isDeregistered(flow.from.seen, plan.sges)) return undefined;
  if (status === ibv.IBV_WC_REM_ACCESS_ERR && plan.remote !== undefined) {
    const { area } = plan.remote;
    if (flow.to.seen.deregistrations.some((gone) => gone.area === area)) return undefined;
  }
  return `it had no flaw that ends so (${plan.flaw})`;
}

/** ACK timeout of code 13: slow hardware and long messages take less. */
const longTimeoutPs = ackTimeoutPs(13);

function retriesUnexplained(
  story: CountedStory,
  flow: Flow,
  back: Flow,
  elapsedPs: number,
): string | undefined {
  const { from, to, link } = flow;
  const { timeout, retryCount } = from.plan;
  const lossCount = story.losses;
  // A sequence NAK costs a retry without a wait, and needs a lost packet.
  const leastPs = Math.max(0, retryCount + 1 - lossCount) * ackTimeoutPs(timeout, story.set);
  if (lossCount <= retryCount && (timeout === 0 || elapsedPs < leastPs))
    return `it took ${elapsedPs} ps, and ${retryCount + 1} time-outs of code ${timeout} less ${lossCount} losses take ${leastPs}`;
  const isSuspect =
    lossCount > 0 ||
    ackTimeoutPs(timeout, story.set) < longTimeoutPs ||
    isOutOfService(to.seen, to.qp) ||
    back.sends.some(isFailed) ||
    hasFlaws(story, link) ||
    // The requester drops an answer for want of a page; the refusal of a later request has left the responder in error.
    (hasOnDemand(story, from.program) && flow.sends.some((history) => mayLackWindow(flow, back, history)));
  return isSuspect ? undefined : 'no packet was lost, and the responder was there';
}

const isFailed = ({ end }: SendHistory): boolean => end !== undefined && end.status !== ibv.IBV_WC_SUCCESS;

const isOutOfService = (seen: Observations, qp: number): boolean =>
  seen.broken.some((broken) => broken.qp === qp) || seen.failure !== null || seen.finals.length === 0;

/** A flawed request anywhere on the link may have put either end into the error state. */
function hasFlaws(story: CountedStory, link: number): boolean {
  const { ends } = story.links[link]!;
  return ends.some(({ program, qp }) => {
    const { early, steps, qps } = story.programs[program]!;
    return [...early, ...steps].some(
      (step) =>
        (step.do === 'post' && step.qp === qp && step.wrs.some(({ flaw }) => flaw !== 'none')) ||
        (step.do === 'receive' && step.qp === qp && step.wrs.some(({ flaw }) => flaw !== 'none')) ||
        (step.do === 'receiveShared' &&
          step.srq === qps[qp]!.srq &&
          step.wrs.some(({ flaw }) => flaw !== 'none')) ||
        step.do === 'deregister' ||
        step.do === 'exit',
    );
  });
}

function rnrUnexplained(
  story: CountedStory,
  { from, to }: Flow,
  elapsedPs: number,
  plan: SendPlan,
): string | undefined {
  const { rnrRetry } = from.plan;
  if (rnrRetry === 7) return 'its QP retries indefinitely';
  // A responder also sends RNR NAKs while a page is brought in.
  if (!consumesReceive(plan.opcode) && !hasOnDemand(story, to.program)) return 'it takes no receive';
  // An RNR NAK that is duplicated after its delay counts again.
  const delays = Math.max(0, rnrRetry - copiesOf(story));
  const leastPs = delays * rnrDelayPs(to.plan.rnrTimer, story.set);
  return elapsedPs >= leastPs ? undefined : `it took ${elapsedPs} ps, and ${delays} delays take ${leastPs}`;
}

/** Whether a QP has a reason to be in the error state: its own requests, what arrived at it, or its program. */
function isInError(story: CountedStory, end: Flow['from'], own: Flow, back: Flow): boolean {
  if (isOutOfService(end.seen, end.qp)) return true;
  if (
    own.sends.some(
      ({ end: ended }) =>
        ended !== undefined &&
        ended.status !== ibv.IBV_WC_SUCCESS &&
        ended.status !== ibv.IBV_WC_WR_FLUSH_ERR,
    )
  )
    return true;
  const [arrived, answered] =
    back.from.program === end.program && back.from.qp === end.qp ? [own, back] : [back, own];
  if (arrived.arrivals.some(({ end: ended }) => ended.status !== ibv.IBV_WC_SUCCESS)) return true;
  return (
    arrived.sends.some(
      (history) =>
        isFoundByResponder(history.plan.flaw) ||
        (history.end !== undefined &&
          [ibv.IBV_WC_REM_ACCESS_ERR, ...endsOfBadReceiver].includes(history.end.status)) ||
        mayLackWindow(arrived, answered, history) ||
        mayComeByOldKey(story, arrived, history) ||
        mayReadAnew(story, arrived, answered, history),
    ) || end.seen.deregistrations.length > 0
  );
}

/**
 * Whether a remote access may have used the key of a window that no longer existed, whichever request of its QP ends
 * first in error.
 */
const mayLackWindow = (flow: Flow, back: Flow, history: SendHistory): boolean =>
  history.plan.through !== undefined &&
  history.plan.remote !== undefined &&
  windowStateOf(flow, back, history) !== 'bound';

/**
 * A READ whose copy may arrive after its answer, when its window or its area was already taken back: a repeated READ is checked again
 * (9.7.5.1.4), and refused if its key is no longer valid.
 */
const mayReadAnew = (story: CountedStory, flow: Flow, back: Flow, history: SendHistory): boolean =>
  history.plan.opcode === ibv.IBV_WR_RDMA_READ &&
  (isEverTaken(flow, back, history) || isAreaRenewed(story, flow, history)) &&
  (story.losses > 0 || ackTimeoutPs(flow.from.plan.timeout, story.set) < longTimeoutPs);

/**
 * A request that was lost, for example on a QP without time-outs: the NAK of the next one retransmits it after its area was registered
 * again, and the refusal is lost, too.
 */
const mayComeByOldKey = (story: CountedStory, flow: Flow, history: SendHistory): boolean =>
  history.end === undefined && story.losses > 0 && isAreaRenewed(story, flow, history);

/** The area of a remote access gets another key at a turn. */
const isAreaRenewed = (
  { turns = [] }: CountedStory,
  { to }: Flow,
  { plan: { remote } }: SendHistory,
): boolean =>
  remote !== undefined && turns.some(({ programs }) => programs[to.program]!.areas.includes(remote.area));

const isDeregistered = ({ deregistrations }: Observations, sges: readonly SgePlan[]): boolean =>
  deregistrations.some((gone) => sges.some(({ area }) => area === gone.area));

function isReceiverBad(flow: Flow, history: SendHistory): boolean {
  const index = flow.brought.indexOf(history);
  const arrival = flow.arrivals[index];
  if (arrival !== undefined) return isBadReceive(flow, arrival, history);
  // The receive's completion may have vanished with its QP; the completion of a flawed request must exist.
  return (
    history.plan.flaw === 'tooLong' ||
    isOutOfService(flow.to.seen, flow.to.qp) ||
    flow.to.seen.deregistrations.length > 0
  );
}

const isBadReceive = (
  { to }: Flow,
  { plan, roomBytes }: ReceiveHistory,
  sent: SendHistory | undefined,
): boolean =>
  plan.flaw !== 'none' ||
  isDeregistered(to.seen, plan.sges) ||
  (sent !== undefined && sent.lengthBytes > roomBytes - (to.plan.transport === 'UD' ? grhBytes : 0));

/** A flaw that must have been detected. */
function mustFail(story: CountedStory, flow: Flow, history: SendHistory): boolean {
  const { plan, lengthBytes } = history;
  if (plan.flaw === 'tooLong') {
    const arrival = flow.arrivals[flow.brought.indexOf(history)];
    return arrival !== undefined && lengthBytes > arrival.roomBytes;
  }
  if (isFlawOfAnyLength(plan.flaw)) return true;
  // The key of a request for zero bytes is not checked (C9-88, 9.7.4.1.6).
  if (plan.flaw !== 'none' && lengthBytes > 0) return true;
  // An unreliable connection is never answered.
  const gone =
    flow.from.plan.transport === 'RC'
      ? flow.to.seen.deregistrations.find(({ area }) => area === plan.remote?.area)
      : undefined;
  if (gone !== undefined && lengthBytes > 0 && history.post.fromPs > gone.toPs) return true;
  const own = flow.from.seen.deregistrations.find(({ area }) => plan.sges.some((sge) => sge.area === area));
  return (
    own !== undefined &&
    lengthBytes > 0 &&
    !plan.isInline &&
    history.post.fromPs > own.toPs &&
    story.climate !== 'broken'
  );
}

/** Whether everything that is owed a completion has one. */
function judgeCoverage(story: CountedStory, flow: Flow, back: Flow): string[] {
  const { from, sends } = flow;
  if (isOutOfService(from.seen, from.qp)) return [];
  const failedAt = sends.find(isFailed)?.place ?? Number.POSITIVE_INFINITY;
  const lastEnded = sends.findLast(({ end }) => end !== undefined)?.place ?? -1;
  const found = sends
    .filter(
      ({ end, post, place }) =>
        end === undefined && (post.isSignalled || place > failedAt) && place < lastEnded,
    )
    .map((history) => `${named(flow, history)} never completed, but later ones did`);
  const pending = sends.filter(({ end, post }) => end === undefined && post.isSignalled);
  if (pending.length > 0 && !mayHang(story, flow, back) && found.length === 0)
    found.push(`${named(flow, pending[0]!)} never completed`);
  return found;
}

/**
 * Without a timeout, a requester waits indefinitely for a response that was lost, or that a destroyed responder never
 * sends.
 */
const mayHang = (story: CountedStory, flow: Flow, back: Flow): boolean =>
  flow.from.plan.transport === 'RC' &&
  (mayLackRecords(story, flow) ||
    mayLackReceives(story, flow) ||
    (flow.from.plan.timeout === 0 &&
      (story.losses > 0 ||
        isOutOfService(flow.to.seen, flow.to.qp) ||
        back.sends.some(isFailed) ||
        isInError(story, flow.to, back, flow))));

/** A copy of a datagram takes a receive of a shared queue: the last message of a connection finds none, and gets RNR NAKs indefinitely. */
function mayLackReceives(story: CountedStory, { from, to }: Flow): boolean {
  const { srq } = to.plan;
  return (
    srq >= 0 &&
    from.plan.rnrRetry === 7 &&
    copiesOf(story) > 0 &&
    story.programs[to.program]!.qps.some((qp) => qp.srq === srq && qp.transport !== 'RC')
  );
}

/**
 * Requests that wait indefinitely hold records of the device, of which all QPs share `hca.outstandingWqes`: others may
 * never begin.
 */
function mayLackRecords(story: CountedStory, { from }: Flow): boolean {
  const { programs, outstandingWqes, losses } = story;
  const { node } = programs[from.program]!;
  const waiting = programs
    .filter((program) => program.node === node)
    .flatMap(({ qps }) => qps.filter(({ transport, timeout }) => transport === 'RC' && timeout === 0))
    .reduce((sum, { maxSendWr }) => sum + maxSendWr, 0);
  return waiting >= outstandingWqes && losses > 0;
}
