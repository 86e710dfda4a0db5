/**
 * One way of a message through userlib/messaging, in a ping-pong: from the sender's call until the receiver has the
 * message and is about to answer.
 *
 *     eager        copy ─ SEND ─ wait ─ copy
 *     cached       look-up ─ ADVERTISE ─ wait ─ look-up ─ READ ─ wait ─ FINISHED
 *       by WRITE   look-up ─ ADVERTISE ─ wait ─ look-up ─ CLEAR ─ wait ─ WRITE, FINISHED ─ wait
 *     on the fly   the same with a registration instead of each look-up, and the receiver's deregistration at the end
 */

import { type MessagingConfig, messageHeaderBytes } from '../../userlib/messaging/index.ts';
import type { Path, Post } from './path.ts';
import { deregistrationTerms, pagesOf, registrationTerms } from './registration.ts';
import { gathered, type Term, type Terms, totalPs } from './terms.ts';
import { takeCompletionPs } from './verbs.ts';
import { completionVector, interruptTerms, type WaitingBy, waitTerms } from './waiting.ts';

/** Way of moving a message's bytes. */
export type Way = 'eager' | 'cached' | 'onTheFly';

export interface MessagePlan {
  readonly path: Path;
  readonly messaging: MessagingConfig;
  readonly waiting: WaitingBy;
}

export function messageTerms(plan: MessagePlan, way: Way, lengthBytes: number): Terms {
  if (way === 'eager') return gathered(eager(plan, lengthBytes));
  const { messaging } = plan;
  return gathered(
    messaging.rendezvousBy === 'read'
      ? rendezvousByRead(plan, way, lengthBytes)
      : rendezvousByWrite(plan, way, lengthBytes),
  );
}

function eager(plan: MessagePlan, lengthBytes: number): Terms {
  const copied = copy(plan, lengthBytes);
  return [
    overhead(plan),
    copied,
    ...sent(plan, messageHeaderBytes + lengthBytes),
    ...waitTerms(plan.path, plan.waiting),
    overhead(plan),
    copied,
    repost(plan),
    refill(plan, 1),
  ];
}

function rendezvousByRead(plan: MessagePlan, way: Way, lengthBytes: number): Terms {
  const { path, messaging, waiting } = plan;
  const read: Post = {
    verb: 'read',
    lengthBytes,
    isInline: false,
    qpInlineBytes: messaging.inlineBytes,
  };
  const finished = controlPost(plan);
  const acquire = memory(plan, way, lengthBytes);
  return [
    ...acquire,
    ...control(plan),
    ...acquire,
    { name: 'post', ps: path.postPs(read) },
    ...path.takeUp(read),
    ...path.readBack(lengthBytes),
    ...waitTerms(path, waiting),
    overhead(plan),
    { name: 'post', ps: path.postPs(finished) },
    ...giveBack(plan, way, lengthBytes),
    refill(plan, 1),
    ...(way === 'cached' ? nextRequest(plan) : [refill(plan, 1), missed(plan, 5)]),
  ];
}

function rendezvousByWrite(plan: MessagePlan, way: Way, lengthBytes: number): Terms {
  const { path, messaging, waiting } = plan;
  const write: Post = {
    verb: 'write',
    lengthBytes,
    isInline: false,
    qpInlineBytes: messaging.inlineBytes,
  };
  const acquire = memory(plan, way, lengthBytes);
  return [
    ...acquire,
    ...control(plan),
    ...acquire,
    ...control(plan),
    { name: 'post', ps: path.postPs(write) },
    ...path.takeUp(write),
    ...path.deliver(write, [controlPost(plan)]),
    ...waitTerms(path, waiting),
    overhead(plan),
    repost(plan),
    refill(plan, 3),
    ...giveBack(plan, way, lengthBytes),
    ...(way === 'cached' ? [] : [missed(plan, 6)]),
  ];
}

/**
 * Newly created regions are not on chip: an MPT entry and an MTT line at either side. Creating or removing a region
 * invalidates the HCA's whole MTT cache: the slot of each control message misses a line, one by READ, two by WRITE.
 */
const missed = ({ path }: MessagePlan, count: number): Term => ({
  name: 'translation',
  ps: count * path.translationMissPs(),
});

/** A control message from its creation until it was received and its buffer posted again. */
function control(plan: MessagePlan): Terms {
  return [
    overhead(plan),
    ...sent(plan, messageHeaderBytes),
    ...waitTerms(plan.path, plan.waiting),
    overhead(plan),
    repost(plan),
  ];
}

function sent(plan: MessagePlan, lengthBytes: number): Terms {
  const { path } = plan;
  const post = postOf(plan, lengthBytes);
  return [{ name: 'post', ps: path.postPs(post) }, ...path.takeUp(post), ...path.deliver(post)];
}

const postOf = ({ messaging }: MessagePlan, lengthBytes: number): Post => ({
  verb: 'send',
  lengthBytes,
  isInline: lengthBytes <= messaging.inlineBytes,
  qpInlineBytes: messaging.inlineBytes,
});

const controlPost = (plan: MessagePlan): Post => postOf(plan, messageHeaderBytes);

function memory(plan: MessagePlan, way: Way, lengthBytes: number): Terms {
  if (way === 'onTheFly') return registrationTerms(plan.path, lengthBytes);
  return [{ name: 'lookup', ps: plan.path.core(plan.messaging.cacheLookup) }];
}

const giveBack = (plan: MessagePlan, way: Way, lengthBytes: number): Terms =>
  way === 'onTheFly' ? deregistrationTerms(plan.path, lengthBytes) : [];

const overhead = ({ path, messaging }: MessagePlan): Term => ({
  name: 'overhead',
  ps: path.core(messaging.messageOverhead),
});

const repost = ({ path }: MessagePlan): Term => ({
  name: 'postReceive',
  ps: path.core(path.config.host.cost.postRecv),
});

/**
 * The answer's ADVERTISE follows FINISHED on the same QP, which spaces its requests. Once per round of the receive
 * slots, the last acknowledgement granted too few credits for two messages: then ADVERTISE waits until FINISHED is
 * acknowledged (IBTA vol 1, 9.7.7.2). Also once per round, it finds the receives that the HCA has counted used up.
 * FINISHED already wakes a sleeping side, so that a delay of ADVERTISE costs nothing meanwhile.
 */
function nextRequest(plan: MessagePlan): Terms {
  const { path, messaging, waiting } = plan;
  const postPs = path.postPs(controlPost(plan));
  const apartPs = path.core(messaging.cacheLookup + messaging.messageOverhead) + postPs;
  const intervalPs = Math.max(0, path.hca(path.config.hca.sameQpIntervalCycles) - apartPs);
  const creditPs = Math.max(0, path.acknowledgedPs(messageHeaderBytes) - apartPs - intervalPs);
  const slots = receiveSlotsOf(messaging);
  const refillPs = path.receiveRefillPs();
  const wakingPs = waiting === 'event' ? totalPs(interruptTerms(path, completionVector)) : 0;
  const handlingPs = takeCompletionPs(path) + overhead(plan).ps + repost(plan).ps;
  const savedPs = waiting === 'event' ? Math.max(0, apartPs + intervalPs - handlingPs) : 0;
  // If FINISHED used the last receive WQE on chip, the next ones are being read when ADVERTISE arrives.
  const { receivePrefetchCount } = path.config.hca;
  const fetchPs = Math.max(0, path.receiveFetchPs() - apartPs - intervalPs - wakingPs);
  return [
    { name: 'sameQpInterval', ps: intervalPs },
    { name: 'receiveFetch', ps: fetchPs / receivePrefetchCount },
    { name: 'credits', ps: (2 * Math.max(0, creditPs - wakingPs)) / slots },
    { name: 'receiveRefill', ps: Math.max(0, refillPs - wakingPs) / slots },
    { name: 'wokenEarlier', ps: -savedPs },
  ];
}

/** Receive slots of a channel (userlib/messaging/message-link.ts). */
const receiveSlotsOf = ({ bufferCount, rendezvousCount }: MessagingConfig): number =>
  bufferCount + 1 + 2 * rendezvousCount;

/** Number of receives after which the HCA must fetch more WQEs. */
const refill = ({ path, messaging }: MessagePlan, receives: number): Term => ({
  name: 'receiveRefill',
  ps: (receives * path.receiveRefillPs()) / receiveSlotsOf(messaging),
});

/** One copy by the processor, with page-table walks if the buffers exceed the TLB's reach. */
function copy({ path, messaging }: MessagePlan, lengthBytes: number): Term {
  if (lengthBytes === 0) return { name: 'copy', ps: 0 };
  const { cost, tlb } = path.config.host;
  const cycles = cost.copyFixed + Math.ceil(lengthBytes / cost.copyBytesPerCycle);
  const pages = pagesOf(lengthBytes);
  // Two user buffers, one send slot, and the receive slots in rotation.
  const isBeyondTlb = pages * (receiveSlotsOf(messaging) + 3) > tlb.entries;
  return { name: 'copy', ps: path.core(cycles + (isBeyondTlb ? pages * tlb.walkCycles : 0)) };
}
