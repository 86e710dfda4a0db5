/**
 * Explains why a program waits for an event that never occurs: it polls a CQ, waits for an event of a channel, for a
 * value of the other host, or for memory to change, and nothing in progress could end the wait.
 */
import type { CqEvidence, PostEvidence, QpEvidence, WaitEvidence } from '../../machine/evidence/index.ts';
import { counted, durationText, type Explanation, explained, hex, qpName, type Rule } from './cause.ts';
import { connectionWait } from './connections.ts';
import { overrunExplained } from './overruns.ts';
import { type NoAnswer, noAnswerRules, notReady } from './retries.ts';
import type { Scene } from './scene.ts';
import { stalledStream } from './streams.ts';
import { headRead } from './thrown.ts';
import { datagramsLost, lostOnTheWay, refusedInSilence, servicesLost, unequalMtu } from './unreliable.ts';

export interface Waiting {
  readonly scene: Scene;
  readonly node: number;
  readonly wait: WaitEvidence;
  /** CQs that it polls, or whose event it waits for. */
  readonly cqns: readonly number[];
  readonly atPs: number;
}

const cqName = (node: number, cqn: number): string => `CQ ${hex(cqn)} of host ${node}`;

/** The program's wait, as the subject of a sentence. */
function waiter({ node, wait, cqns }: Waiting): string {
  const cqs = cqns.map(hex).join(', ');
  if (wait.kind === 'poll') return `Program ${wait.program} of host ${node} polls CQ ${cqs}`;
  if (wait.kind === 'event')
    return `Program ${wait.program} of host ${node} waits for an event of ${cqns.length === 0 ? `channel ${wait.channel}` : `CQ ${cqs}`}`;
  if (wait.kind === 'connection')
    return `Program ${wait.program} of host ${node} waits for a connection event (rdma_get_cm_event)`;
  if (wait.kind === 'async') return `Program ${wait.program} of host ${node} waits for an asynchronous event`;
  if (wait.kind === 'exchange')
    return `Program ${wait.program} of host ${node} waits for '${wait.label}' of the other host`;
  return `Program ${wait.program} of host ${node} waits in ${wait.text}`;
}

const taken = ({ scene, node }: Waiting, cqn: number): number => scene.cqUse(node, cqn)?.taken ?? 0;

const unpolled = (waiting: Waiting, cq: CqEvidence): number =>
  Math.max(0, cq.written - taken(waiting, cq.cqn));

const livingQps = ({ scene, node }: Waiting, isMeant: (qp: QpEvidence) => boolean): QpEvidence[] =>
  (scene.device(node)?.qps ?? []).filter((qp) => qp.destroyedPs === undefined && isMeant(qp));

/** Posts of a QP whose completion the program has not seen. */
const openPosts = ({ scene, node }: Waiting, qp: QpEvidence): PostEvidence[] =>
  (scene.host(node)?.posts ?? []).filter((post) => post.qpn === qp.qpn && !post.isCompleted);

/** Whether the device has finished the request. */
function isDone(qp: QpEvidence, post: PostEvidence): boolean {
  const [oldest] = qp.underWay;
  const behind = (counter: number): boolean => ((counter - post.wqeCounter - 1) & 0xffff) < 0x8000;
  return oldest === undefined ? behind(qp.begun) : behind(oldest.wqeCounter);
}

const overrun: Rule<Waiting> = ({ scene, node, cqns }) => {
  for (const cqn of cqns) {
    const explanation = overrunExplained(scene, node, cqn);
    if (explanation !== undefined) return explanation;
  }
  return undefined;
};

const connections: Rule<Waiting> = (waiting) =>
  waiting.wait.kind === 'connection'
    ? connectionWait(waiting.scene, waiting.node, waiter(waiting))
    : undefined;

/** Signalled requests of a QP that was destroyed or reset: their completions were removed with it, or never written. */
const ownQpGone: Rule<Waiting> = (waiting) => {
  const { scene, node, cqns, atPs } = waiting;
  const gone = (scene.device(node)?.qps ?? []).filter(
    ({ destroyedPs, sendCqn }) => destroyedPs !== undefined && destroyedPs <= atPs && cqns.includes(sendCqn),
  );
  for (const qp of gone.toReversed()) {
    const lost = openPosts(waiting, qp).filter(({ isSignalled }) => isSignalled);
    if (lost.length > 0) return requestsGone(waiting, qp, qp.destroyedPs!, lost);
  }
  return undefined;
};

function requestsGone(
  waiting: Waiting,
  qp: QpEvidence,
  destroyedPs: number,
  lost: readonly PostEvidence[],
): Explanation {
  const { scene, node } = waiting;
  const lines = scene.lines(node, 'QP', qp.qpn);
  const subject = `${waiter(waiting)} for ${counted(lost.length, 'request')} of ${qpName(node, qp.qpn)}`;
  const evidence = { requests: lost.length, destroyedPs };
  const at = durationText(destroyedPs);
  if (lines !== undefined && !lines.isDestroyed && !lines.isReset) {
    const fault = scene.faults.find((one) => /^(catastrophic|device|reset)/.test(one.fault));
    return {
      cause: 'device-fatal',
      sentence: `${subject}, whose device was reset at ${at}${fault === undefined ? '' : ` (injected: ${fault.fault})`}: its objects and their completions were destroyed`,
      evidence,
      advice:
        'Wait for IBV_EVENT_DEVICE_FATAL (ibv_get_async_event) as well, then close the device and open it again.',
    };
  }
  const how = lines?.isDestroyed === false ? 'reset' : 'destroyed';
  const mendLine = how === 'reset' ? lines?.toReset : lines?.destroyed;
  if (lost.every((post) => post.atPs > destroyedPs))
    return {
      cause: 'post-to-destroyed-qp',
      sentence: `${subject}, posted after it had ${how} the QP at ${at}: nothing executes them`,
      evidence,
      mendLine,
      advice: `Post before the QP is ${how}, or to another QP.`,
    };
  return {
    cause: 'own-qp-destroyed',
    sentence: `${subject}, which it ${how} at ${at}: their completions were removed with it`,
    evidence,
    mendLine,
    advice:
      'Poll all completions first, or move the QP to ERR and poll the flushed ones, and only then destroy or reset it.',
  };
}

/** Completions wait in a CQ that the program does not poll. */
const otherCq: Rule<Waiting> = (waiting) => {
  const { scene, node, wait, cqns } = waiting;
  if (cqns.length === 0) return undefined;
  const own = livingQps(waiting, (qp) => cqns.includes(qp.sendCqn) || cqns.includes(qp.receiveCqn));
  // If no QP uses the CQ, any other CQ of this program counts.
  const used = wait.kind !== 'poll' ? [] : livingQps(waiting, ({ service }) => service !== 'MLX');
  const qps = own.length > 0 ? own : used;
  const others = qps.flatMap(({ sendCqn, receiveCqn }) => [sendCqn, receiveCqn]);
  for (const cqn of new Set(others)) {
    const cq = scene.cq(node, cqn);
    if (cq === undefined || cqns.includes(cqn) || unpolled(waiting, cq) === 0) continue;
    return {
      cause: 'other-cq',
      sentence: `${waiter(waiting)}, with ${counted(unpolled(waiting, cq), 'completion')} in ${cqName(node, cqn)}, which it ${(scene.cqUse(node, cqn)?.polls ?? 0) === 0 ? 'never polled' : 'does not poll any more'}${own.length > 0 ? '' : `; no QP uses CQ ${cqns.map(hex).join(', ')}`}`,
      evidence: { cqn, unpolled: unpolled(waiting, cq), polls: scene.cqUse(node, cqn)?.polls ?? 0 },
      advice: 'Sends complete in send_cq, receives in recv_cq: poll both.',
    };
  }
  return undefined;
};

const unsignalled: Rule<Waiting> = (waiting) => {
  const { node, cqns } = waiting;
  for (const qp of livingQps(waiting, ({ sendCqn }) => cqns.includes(sendCqn))) {
    const open = openPosts(waiting, qp);
    if (open.length === 0 || open.some(({ isSignalled }) => isSignalled)) continue;
    if (!open.every((post) => isDone(qp, post))) continue;
    const [first] = open;
    return {
      cause: 'unsignalled',
      sentence: `${waiter(waiting)} for ${counted(open.length, 'request')} of ${qpName(node, qp.qpn)} posted unsignalled: the device has done all and writes no completion`,
      evidence: { unsignalled: open.length, silent: qp.silent, signalled: qp.signalled },
      mendLine: first?.line,
      advice: 'Set IBV_SEND_SIGNALED in the request, or sq_sig_all when the QP is created.',
    };
  }
  return undefined;
};

/** A request is in progress, and its peer is not ready, does not answer, or this side delays it. */
const underWay: Rule<Waiting> = (waiting) => {
  const { scene, node, cqns, atPs } = waiting;
  const hasOpen = (qp: QpEvidence): boolean =>
    openPosts(waiting, qp).some((post) => !isDone(qp, post)) || qp.underWay.length > 0;
  const waits = (qp: QpEvidence): boolean => cqns.length === 0 || cqns.includes(qp.sendCqn);
  for (const qp of livingQps(waiting, (one) => waits(one) && hasOpen(one))) {
    const post = openPosts(waiting, qp).find((one) => !isDone(qp, one));
    const explanation = heldBack({ scene, node, qp, post, atPs }, waiting);
    if (explanation !== undefined) return explanation;
  }
  return undefined;
};

function heldBack(request: NoAnswer, waiting: Waiting): Explanation | undefined {
  const { qp, node } = request;
  const subject = waiter(waiting);
  const held = (cause: string, why: string, advice: string): Explanation => ({
    cause,
    sentence: `${subject}, but the send queue of ${qpName(node, qp.qpn)} is stalled: ${why}`,
    evidence: { parkedFor: qp.parkedFor, underWay: qp.underWay.length, begun: qp.begun },
    advice,
  });
  if (qp.state === 'SQD')
    return held('send-queue-drained', 'the QP is in SQD', 'Bring the QP back to RTS with ibv_modify_qp.');
  if (qp.parkedFor === 'rnr' || (qp.rnrNaksReceived > 0 && qp.timeouts === 0)) return notReady(request);
  if (qp.parkedFor === 'pageFault')
    return held(
      'page-fault-wait',
      'a page of an on-demand region was requested and never provided',
      'See the pages of the region: unmapped memory is refused.',
    );
  // TCP tries again: time-outs and paths are not the QP's.
  if (request.scene.stream(node, qp.qpn) !== undefined)
    return stalledStream(request.scene, node, qp, subject);
  if (qp.timeoutCode === 0 || qp.timeouts > 0 || qp.sequenceNaksReceived > 0 || qp.service === 'UC') {
    const explanation = explained(noAnswerRules, request)!;
    const evidence = { ...explanation.evidence, timeoutCode: qp.timeoutCode };
    return qp.timeoutCode === 0
      ? {
          ...explanation,
          evidence,
          sentence: `${explanation.sentence}; ${explanation.sentence.includes('timeout 0') ? 'the' : 'with timeout 0 the'} request never fails`,
        }
      : { ...explanation, evidence };
  }
  return undefined;
}

/** Datagrams or messages of an unreliable connection that were dropped on their way to a receive of these CQs. */
const dropped: Rule<Waiting> = (waiting) => {
  const { scene, node, cqns } = waiting;
  const qps = livingQps(waiting, (qp) => cqns.length === 0 || cqns.includes(qp.receiveCqn));
  return (
    datagramsLost(scene, node, qps) ??
    servicesLost(scene, node, qps) ??
    unequalMtu(scene, node, qps) ??
    lostOnTheWay(scene, node, qps)
  );
};

/** An unreliable connection does not answer refused accesses: the WRITE or SEND is lost. */
const silentlyRefused: Rule<Waiting> = (waiting) => {
  const { scene, node, cqns } = waiting;
  const qps = livingQps(
    waiting,
    ({ service, receiveCqn }) => service === 'UC' && (cqns.length === 0 || cqns.includes(receiveCqn)),
  );
  return refusedInSilence(scene, node, qps);
};

const oneSided: Rule<Waiting> = (waiting) => {
  const { node, cqns, wait } = waiting;
  if (wait.kind !== 'poll' && wait.kind !== 'event') return undefined;
  for (const qp of livingQps(waiting, ({ receiveCqn }) => cqns.includes(receiveCqn))) {
    const { write, read, atomic } = qp.served;
    if (write + read + atomic === 0 || openPosts(waiting, qp).length > 0) continue;
    return {
      cause: 'one-sided',
      sentence: `${waiter(waiting)}, but the peer of ${qpName(node, qp.qpn)} did ${counted(write, 'WRITE')}, ${counted(read, 'READ')} and ${counted(atomic, 'atomic')}, which complete at the peer only`,
      evidence: { writes: write, reads: read, atomics: atomic, received: qp.received },
      advice:
        'Use WRITE with immediate (it takes a receive and completes here), send a message after it, or poll the memory.',
    };
  }
  return undefined;
};

// Events.

const events: Rule<Waiting> = (waiting) => {
  const { scene, node, wait, cqns } = waiting;
  if (wait.kind !== 'event') return undefined;
  if (cqns.length === 0)
    return {
      cause: 'event-no-cq',
      sentence: `${waiter(waiting)}, which no CQ was created with`,
      evidence: { channel: wait.channel },
      advice: 'Pass the channel to ibv_create_cq.',
    };
  for (const cqn of cqns) {
    const cq = scene.cq(node, cqn);
    if (cq === undefined || unpolled(waiting, cq) === 0) continue;
    const explanation = armExplained(waiting, cq);
    if (explanation !== undefined) return explanation;
  }
  return otherChannel(waiting);
};

/** A CQ of another channel has raised an event that the program does not read. */
function otherChannel(waiting: Waiting): Explanation | undefined {
  const { scene, node, wait } = waiting;
  const use = scene
    .host(node)
    ?.cqs.find(
      ({ cqn, channel, hasChannel, events }) =>
        hasChannel && channel !== wait.channel && (scene.cq(node, cqn)?.events ?? 0) > events,
    );
  const cq = use && scene.cq(node, use.cqn);
  if (cq === undefined) return undefined;
  const count = unpolled(waiting, cq);
  return {
    cause: 'other-channel',
    sentence: `${waiter(waiting)}, but the completion of CQ ${hex(cq.cqn)} raised its event on channel ${use!.channel}`,
    evidence: { channel: wait.channel, otherChannel: use!.channel, unpolled: count },
    mendLine: use!.createLine,
    advice: 'Call ibv_get_cq_event with the channel that the CQ was created with.',
  };
}

function armExplained(waiting: Waiting, cq: CqEvidence): Explanation | undefined {
  const { scene, node } = waiting;
  const use = scene.cqUse(node, cq.cqn);
  const left = counted(unpolled(waiting, cq), 'completion');
  const evidence = { cqn: cq.cqn, unpolled: unpolled(waiting, cq), arms: cq.arms, events: cq.events };
  const mendLine = use?.armLine ?? use?.createLine;
  if (cq.arms === 0)
    return {
      cause: 'event-never-armed',
      sentence: `${waiter(waiting)}, which was never armed: ${left} came and raised no event`,
      evidence,
      mendLine,
      advice: 'Call ibv_req_notify_cq before the completion can come, then poll once, then wait.',
    };
  if (cq.armed === 'solicited')
    return {
      cause: 'event-solicited-only',
      sentence: `${waiter(waiting)}, which is armed for solicited completions only: ${left} came of messages without IBV_SEND_SOLICITED`,
      evidence,
      mendLine,
      advice: 'Set IBV_SEND_SOLICITED in the sender’s requests, or call ibv_req_notify_cq with 0.',
    };
  if (cq.armed === 'next' || cq.lastArmPs >= cq.lastEventPs)
    return {
      cause: 'left-in-armed-cq',
      sentence: `${waiter(waiting)} with ${left} left in it, written before it was armed again and reported by an event that was taken: no new event comes`,
      evidence,
      mendLine: use?.pollLine ?? mendLine,
      advice: 'After ibv_req_notify_cq poll until the CQ is empty, and only then wait for the next event.',
    };
  return {
    cause: 'event-not-rearmed',
    sentence: `${waiter(waiting)}, which was not armed again after its last event at ${durationText(cq.lastEventPs)}: ${left} came since and raised none`,
    evidence,
    mendLine,
    advice: 'Each event uses the arm up: call ibv_req_notify_cq after each, then poll, then wait.',
  };
}

/** Asynchronous events: the limit of a shared receive queue, which must be armed, or an occurrence that never happened. */
const asyncEvents: Rule<Waiting> = (waiting) => {
  const { scene, node, wait } = waiting;
  if (wait.kind !== 'async') return undefined;
  const shared = livingQps(waiting, ({ srqn }) => srqn !== -1);
  const { arms = 0, events: reached = 0, armLine } = scene.host(node)?.limits ?? {};
  const evidence = {
    limitArms: arms,
    limitEvents: reached,
    sharedQueues: new Set(shared.map(({ srqn }) => srqn)).size,
  };
  if (shared.length > 0 && arms === 0)
    return {
      cause: 'srq-limit-never-armed',
      sentence: `${waiter(waiting)}, and the limit of its shared receive queue was never armed: IBV_EVENT_SRQ_LIMIT_REACHED comes only after ibv_modify_srq with IBV_SRQ_LIMIT`,
      evidence,
      mendLine: scene.host(node)?.receives.find(({ qpn }) => qpn === -1)?.line,
      advice:
        'Call ibv_modify_srq with srq_limit and IBV_SRQ_LIMIT after ibv_create_srq, and again after each event.',
    };
  if (shared.length > 0 && reached >= arms)
    return {
      cause: 'srq-limit-not-rearmed',
      sentence: `${waiter(waiting)}, and the limit of its shared receive queue was not armed again after its last event: ${counted(arms, 'arm')}, ${counted(reached, 'event')}`,
      evidence,
      mendLine: armLine,
      advice:
        'Each event uses the limit up: post receives, then call ibv_modify_srq with IBV_SRQ_LIMIT again.',
    };
  return {
    cause: 'no-async-event',
    sentence: `${waiter(waiting)}, and none happened that was not taken: no error of a QP or CQ, no change of the port${shared.length > 0 ? ', and no limit of a shared receive queue was reached' : ''}`,
    evidence,
    advice: 'Wait for asynchronous events in a thread of its own, or with a time limit: most runs have none.',
    key: `async ${node}`,
  };
};

// Nothing is in progress.

/** The waits of the programs of the other host. */
function farText({ scene, node }: Waiting): string {
  const far = scene.farHost(node);
  if (far === undefined) return 'nothing more comes';
  if (far.waits.length === 0) return `all programs of host ${far.node} have ended`;
  return far.waits.map((wait) => `host ${far.node} waits in ${wait.text}`).join(', ');
}

/** QPs without a receive complete only their own requests, and all have completed. */
export function ownCompletionsTaken(waiting: Waiting): Explanation | undefined {
  const { scene, node, wait, cqns } = waiting;
  const qps = livingQps(waiting, (qp) => cqns.includes(qp.receiveCqn) || cqns.includes(qp.sendCqn));
  if (wait.kind !== 'poll' || qps.length === 0) return undefined;
  const numbers = new Set(qps.map(({ qpn }) => qpn));
  const posts = (scene.host(node)?.posts ?? []).filter(({ qpn }) => numbers.has(qpn));
  const hasReceives = qps.some((qp) => scene.receivesPosted(node, qp) > qp.received);
  if (posts.length === 0 || hasReceives || posts.some(({ isCompleted }) => !isCompleted)) return undefined;
  const signalled = posts.filter(({ isSignalled }) => isSignalled).length;
  return {
    cause: 'no-more-completions',
    sentence: `${waiter(waiting)} for one more completion than come: ${counted(posts.length, 'request')}, ${signalled} of them signalled, ${posts.length === 1 ? 'has' : 'have'} completed, and no receive is posted there`,
    evidence: { requests: posts.length, signalled },
    mendLine: posts.at(-1)?.line,
    advice:
      'Take as many completions as requests were signalled; for a message of the peer post a receive first.',
    key: `no-more ${node}`,
  };
}

function nothingComes(waiting: Waiting): Explanation {
  const { scene, node, wait, cqns } = waiting;
  const farWaits = scene.farHost(node)?.waits ?? [];
  const isMutual = farWaits.length > 0;
  const qps = livingQps(waiting, (qp) => cqns.includes(qp.receiveCqn) || cqns.includes(qp.sendCqn));
  const received = qps.reduce((sum, qp) => sum + qp.received, 0);
  const evidence = { received, requestsUnderWay: 0 };
  if (wait.kind === 'poll' || wait.kind === 'event')
    return {
      cause: isMutual ? 'deadlock' : 'no-more-messages',
      sentence: `${waiter(waiting)}, and no request that could complete there is under way: ${counted(received, 'receive')} completed, ${farText(waiting)}`,
      evidence,
      mendLine: farWaits[0]?.line,
      advice: isMutual
        ? 'Both sides wait: one of them must send first.'
        : 'Fewer messages were sent than are expected: count both, or send an end mark.',
      key: isMutual ? 'deadlock' : `no-more ${node}`,
    };
  if (wait.kind === 'exchange')
    return {
      cause: isMutual ? 'deadlock' : 'exchange-never-put',
      sentence: `${waiter(waiting)}, which no program has put: ${farText(waiting)}`,
      evidence: { label: wait.label },
      advice: 'Put the value at the other host under the same name before that program ends or waits.',
      key: isMutual ? 'deadlock' : `exchange ${node}`,
    };
  const atHead = headRead(scene, node, waiter(waiting));
  if (atHead !== undefined) return atHead;
  const written = (scene.device(node)?.qps ?? []).reduce(
    (sum, qp) => sum + qp.served.write + qp.served.writeImmediate + qp.served.atomic,
    0,
  );
  return {
    cause: 'memory-never-changes',
    sentence: `${waiter(waiting)} while nothing that could change what it looks at is under way: the peer did ${counted(written, 'WRITE or atomic')} so far, ${farText(waiting)}`,
    evidence: { writes: written },
    advice: 'Check the address that the peer writes to, and what the program compares it with.',
    key: `memory ${node}`,
  };
}

const rules: readonly Rule<Waiting>[] = [
  overrun,
  asyncEvents,
  connections,
  ownQpGone,
  otherCq,
  events,
  unsignalled,
  underWay,
  dropped,
  silentlyRefused,
  oneSided,
];

export const waitExplained = (waiting: Waiting): Explanation | undefined => explained(rules, waiting);

/** Explains a wait that no other rule explains: it adds nothing to another finding. */
export const emptyWaitExplained = (waiting: Waiting): Explanation => nothingComes(waiting);
