/**
 * QPs share a receive queue whose receives end in any order, since completions are taken from this CQ and from that one, and QPs
 * go: by an error in the middle of a message, or with receives that were not polled. Each message lies in one receive, in the
 * order of its connection; and in the end every receive of the queue can still be used (IBTA 10.2.9.3: a receive that a message
 * has begun when its QP fails completes in error; the others stay in the queue).
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createBuffer,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  closeDevice,
  createCq,
  createQp,
  createSrq,
  deallocPd,
  deregMr,
  destroyCq,
  destroyQp,
  destroySrq,
  getAsyncEvent,
  IBV_EVENT_QP_LAST_WQE_REACHED,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  type IbvRecvWr,
  type IbvSrq,
  IbvWc,
  modifyQp,
  pollCq,
  postSrqRecv,
  querySrq,
} from '../../userlib/index.ts';
import { askerAndAnswerer, post } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  readonly cqCount: number;
  readonly maxWr: number;
  readonly maxSge: number;
  readonly turns: readonly Turn[];
}

interface Turn {
  /** QP and length of each message; as many of them are sent as there are receives. */
  readonly messages: readonly (readonly [qp: number, lengthBytes: number])[];
  /** Of the receiving CQs, how many completions are taken when the messages have come, in this order. */
  readonly polls: readonly (readonly [cq: number, count: number])[];
  /** The QP that fails while it gets its messages, or goes with what is unpolled of them. */
  readonly ends?: { readonly qp: number; readonly how: 'error' | 'destroy'; readonly delayNs: number };
  /** Receives are posted as one list, or one by one. */
  readonly isList: boolean;
}

/** Of a receive; the longest message is as long. */
const slotBytes = 16_384;
const blank = 0xee;
const restPs = 100 * psPerMs;

function draw(random: Random): SceneDraft {
  const qpCount = 2 + random.below(5);
  const cqCount = 1 + random.below(3);
  const maxWr = [3, 7, 15, 31][random.below(4)]!;
  const isLong = random.chance(0.3);
  const length = (): number =>
    isLong
      ? random.below(slotBytes + 1)
      : [random.below(10), random.below(300), random.below(5000)][random.below(3)]!;
  // The last QP stays to the end.
  const doomed = Array.from({ length: qpCount - 1 }, (_, qp) => qp);
  const turns = Array.from({ length: 4 + random.below(8) }, (): Turn => {
    const isEnd = doomed.length > 0 && random.chance(0.45);
    const qp = isEnd ? doomed.shift()! : 0;
    const how = random.chance(0.6) ? 'error' : 'destroy';
    const messages = Array.from({ length: 1 + random.below(2 * maxWr) }, () =>
      isEnd && (how === 'error' || random.chance(0.6))
        ? ([qp, how === 'error' ? slotBytes : length()] as const)
        : ([random.below(qpCount), length()] as const),
    );
    return {
      messages,
      polls: Array.from(
        { length: random.below(6) },
        () => [random.below(cqCount), 1 + random.below(6)] as const,
      ),
      isList: random.chance(0.5),
      ...(isEnd ? { ends: { qp, how, delayNs: random.below(random.chance(0.5) ? 10_000 : 40_000) } } : {}),
    };
  });
  const args: Args = { qpCount, cqCount, maxWr, maxSge: 1 + random.below(4), turns };
  return {
    args: args as unknown as JsonValue,
    hasDrawnHardware: random.chance(0.5),
    climate: 'flawed',
  };
}

/** What was sent in a turn. */
interface Sent {
  readonly messages: readonly (readonly [qp: number, lengthBytes: number])[];
  readonly failed: readonly number[];
}

/** The byte of which a message is made. */
const byteOf = (qp: number, number: number): number => (37 * qp + 11 * number + 1) % 0xed;

/** Sends. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 255);
  const qps: (IbvQp | undefined)[] = [];
  const cap = { maxSendWr: 64, maxRecvWr: 1 };
  for (let at = 0; at < args.qpCount; at++)
    qps.push(await createQp(endpoint.pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap: { ...cap } }));
  const area = await createBuffer(endpoint, 64 * slotBytes);
  await connectRc(endpoint, qps as IbvQp[], 'shared');
  const numbers = qps.map(() => 0);
  const found: string[] = [];
  for (;;) {
    const turn = (await program.exchange.take('turn')) as unknown as Sent['messages'];
    if (turn.length === 0) break;
    const messages = turn.filter(([qp]) => qps[qp] !== undefined);
    for (const [at, [qp, lengthBytes]] of messages.entries()) {
      const address = area.address + at * slotBytes;
      program.memory.write(address, new Uint8Array(lengthBytes).fill(byteOf(qp, numbers[qp]!++)));
      post(qps[qp]!, {
        wrId: at,
        sgList: [{ addr: address, length: lengthBytes, lkey: area.region.lkey }],
        numSge: 1,
        opcode: IBV_WR_SEND,
        sendFlags: IBV_SEND_SIGNALED,
      });
    }
    const statuses = await statusesOf(endpoint, cq, messages.length);
    const failed = [
      ...new Set(messages.filter((_, at) => statuses.get(at) !== IBV_WC_SUCCESS).map(([qp]) => qp)),
    ];
    if (statuses.size !== messages.length)
      found.push(`${statuses.size} of ${messages.length} sends have ended`);
    await program.exchange.put('sent', { messages, failed } as unknown as JsonValue);
    const gone = (await program.exchange.take('gone')) as number;
    if (gone >= 0) {
      await destroyQp(qps[gone]!);
      qps[gone] = undefined;
    }
  }
  await barrier(program, 'over');
  await close(endpoint, area, qps, [cq]);
  return found;
}

/** By request. */
async function statusesOf({ program }: RcEndpoint, cq: IbvCq, count: number): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  for (let naps = 0; statuses.size < count && naps < 2000; ) {
    const taken = await pollCq(cq, 16, wcs);
    for (const { wrId, status } of wcs.slice(0, taken)) statuses.set(wrId, status);
    if (taken > 0) naps = 0;
    else {
      naps++;
      await program.cpu.sleep(naps * psPerMs);
    }
  }
  return statuses;
}

/** Receives. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { qpCount, cqCount, maxWr, maxSge, turns } = args;
  const endpoint = await openEndpoint(program);
  const cqs: IbvCq[] = [];
  for (let at = 0; at < cqCount; at++) cqs.push(await createCq(endpoint.context, 255));
  const srq = await createSrq(endpoint.pd, { attr: { maxWr, maxSge } });
  const qps: (IbvQp | undefined)[] = [];
  for (let at = 0; at < qpCount; at++) {
    const cq = cqs[at % cqCount]!;
    const cap = { maxSendWr: 1 };
    qps.push(await createQp(endpoint.pd, { sendCq: cq, recvCq: cq, srq, qpType: IBV_QPT_RC, cap }));
  }
  const { maxWr: granted } = await querySrq(srq);
  const area = await createBuffer(endpoint, qpCount * granted! * slotBytes);
  const queue = new SharedQueue(program, srq, area, maxSge, granted!);
  await connectRc(endpoint, qps as IbvQp[], 'shared');
  for (const turn of turns) await playTurn(program, turn, queue, qps, cqs);
  // Whatever is left in the CQs is taken; then all receives must be there, and serve the last QP.
  for (const cq of cqs) await queue.poll(cq, 255, qps);
  queue.fill(false);
  const last = qpCount - 1;
  const rest = Array.from({ length: granted! }, () => [last, 40] as const);
  await program.exchange.put('turn', rest as unknown as JsonValue);
  const { messages, failed } = (await program.exchange.take('sent')) as unknown as Sent;
  for (const [qp, lengthBytes] of messages) queue.expect(qp, lengthBytes);
  if (failed.length > 0) queue.found.push(`${granted} messages do not find as many receives`);
  // Their ACKs say that the device has them: completions may still wait for their writes.
  await program.cpu.sleep(restPs);
  await queue.poll(cqs[last % cqCount]!, 255, qps);
  if (failed.length === 0 && queue.expectedCount > 0)
    queue.found.push(`${queue.expectedCount} receives never completed`);
  await program.exchange.put('gone', -1);
  await program.exchange.put('turn', []);
  await barrier(program, 'over');
  await close(endpoint, area, qps, cqs, srq);
  return queue.found;
}

async function playTurn(
  program: ProgramContext,
  { messages, polls, ends, isList }: Turn,
  queue: SharedQueue,
  qps: (IbvQp | undefined)[],
  cqs: readonly IbvCq[],
): Promise<void> {
  queue.fill(isList);
  const sendable = messages.filter(([qp]) => qps[qp] !== undefined).slice(0, queue.inQueueCount);
  // A turn of no messages would be the end.
  if (sendable.length === 0) return;
  await program.exchange.put('turn', sendable as unknown as JsonValue);
  const doomed = ends === undefined ? undefined : qps[ends.qp];
  if (ends?.how === 'error' && doomed !== undefined) {
    await program.cpu.sleep(ends.delayNs * psPerNs);
    await modifyQp(doomed, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
  }
  const sent = (await program.exchange.take('sent')) as unknown as Sent;
  for (const [qp, lengthBytes] of sent.messages) queue.expect(qp, lengthBytes);
  const unexpected = sent.failed.filter((qp) => ends?.how !== 'error' || qp !== ends.qp);
  if (unexpected.length > 0) queue.found.push(`sends to QPs ${unexpected} failed`);
  await program.cpu.sleep(restPs);
  if (ends !== undefined && doomed !== undefined) {
    if (ends.how === 'error') await endInError(queue, ends.qp, qps, cqs);
    else queue.drop(ends.qp);
    await destroyQp(doomed);
    qps[ends.qp] = undefined;
  }
  for (const [cq, count] of polls) await queue.poll(cqs[cq]!, count, qps);
  await program.exchange.put('gone', doomed === undefined ? -1 : ends!.qp);
}

/** All that the QP received, the receive it had begun, and the event that there is no other. */
async function endInError(
  queue: SharedQueue,
  number: number,
  qps: readonly (IbvQp | undefined)[],
  cqs: readonly IbvCq[],
): Promise<void> {
  for (const cq of cqs) await queue.poll(cq, 255, qps);
  queue.forget(number);
  const events: number[] = [];
  for (;;) {
    const event = await getAsyncEvent(cqs[0]!.context, psPerMs);
    if (event === undefined) break;
    if (event.eventType !== IBV_EVENT_QP_LAST_WQE_REACHED || event.qp === qps[number])
      events.push(event.eventType);
  }
  if (events.join() !== String(IBV_EVENT_QP_LAST_WQE_REACHED))
    queue.found.push(`a QP with a shared receive queue failed with events ${events}`);
}

/** The receives of the queue, one slot of the area each, and what has to come into them. */
class SharedQueue {
  readonly found: string[] = [];
  /** Receives that the device has, as far as completions tell. */
  inQueueCount = 0;
  readonly #program: ProgramContext;
  readonly #srq: IbvSrq;
  readonly #area: RcBuffer;
  readonly #maxSge: number;
  readonly #free: number[];
  #freshSlot: number;
  /** Slots of which the program has no completion yet. */
  readonly #posted = new Set<number>();
  /** By QP: lengths of messages that have come, or will, and the number of the first of these. */
  readonly #expected = new Map<number, { readonly lengths: number[]; first: number }>();
  readonly #wcs = Array.from({ length: 255 }, () => new IbvWc());

  constructor(program: ProgramContext, srq: IbvSrq, area: RcBuffer, maxSge: number, count: number) {
    this.#program = program;
    this.#srq = srq;
    this.#area = area;
    this.#maxSge = maxSge;
    this.#free = Array.from({ length: count }, (_, slot) => slot);
    this.#freshSlot = count;
  }

  get expectedCount(): number {
    return [...this.#expected.values()].reduce((sum, { lengths }) => sum + lengths.length, 0);
  }

  /** Posts as many receives as the queue takes. */
  fill(isList: boolean): void {
    const slots = this.#free.splice(0);
    for (const slot of slots) {
      const bytes = new Uint8Array(slotBytes).fill(blank);
      this.#program.memory.write(this.#area.address + slot * slotBytes, bytes);
    }
    const receives = slots.map((slot) => this.#receiveOf(slot));
    if (isList) for (const [at, receive] of receives.entries()) receive.next = receives[at + 1] ?? null;
    for (const receive of isList ? receives.slice(0, 1) : receives) {
      const error = postSrqRecv(this.#srq, receive, { wr: null, index: 0 });
      if (error !== 0) this.found.push(`a receive was refused with ${error}`);
    }
    for (const slot of slots) this.#posted.add(slot);
    this.inQueueCount += slots.length;
  }

  /** A list of pieces, some of them empty, that together are the slot. */
  #receiveOf(slot: number): IbvRecvWr {
    const { address, region } = this.#area;
    const begin = address + slot * slotBytes;
    const count = 1 + (slot % this.#maxSge);
    const cuts = Array.from({ length: count - 1 }, (_, at) =>
      Math.min(slotBytes, (slot % 5) * 100 * (at + 1)),
    );
    const places = [0, ...cuts, slotBytes];
    const sgList = places
      .slice(0, -1)
      .map((from, at) => ({ addr: begin + from, length: places[at + 1]! - from, lkey: region.lkey }));
    return { wrId: slot, sgList, numSge: count };
  }

  expect(qp: number, lengthBytes: number): void {
    const expected = this.#expected.get(qp) ?? { lengths: [], first: 0 };
    this.#expected.set(qp, expected);
    expected.lengths.push(lengthBytes);
    this.inQueueCount--;
  }

  /** The QP is destroyed: what it has received is lost, and its receives can be posted again. */
  drop(qp: number): void {
    const expected = this.#expected.get(qp);
    this.#expected.delete(qp);
    // No record says which slots those were: others take their places.
    for (let left = expected?.lengths.length ?? 0; left > 0; left--) this.#free.push(this.#freshSlot++);
  }

  /** The QP has failed: what it has not received by now stays in the queue. */
  forget(qp: number): void {
    const expected = this.#expected.get(qp);
    this.#expected.delete(qp);
    this.inQueueCount += expected?.lengths.length ?? 0;
  }

  async poll(cq: IbvCq, count: number, qps: readonly (IbvQp | undefined)[]): Promise<void> {
    const taken = await pollCq(cq, count, this.#wcs);
    for (const wc of this.#wcs.slice(0, taken)) this.#take(wc, qps);
  }

  #take({ wrId, status, byteLen, qpNum }: IbvWc, qps: readonly (IbvQp | undefined)[]): void {
    const qp = qps.findIndex((one) => one?.qpNum === qpNum);
    if (!this.#posted.delete(wrId))
      return void this.found.push(`receive ${wrId} completed, which was not posted`);
    this.#free.push(wrId);
    const expected = this.#expected.get(qp);
    if (status === IBV_WC_WR_FLUSH_ERR && qps[qp]!.state === IBV_QPS_ERR) {
      // The message that had begun; those behind it have not.
      if (expected?.lengths.shift() === undefined)
        this.found.push(`receive ${wrId} was flushed, and no message had begun`);
      return;
    }
    const lengthBytes = expected?.lengths.shift();
    if (expected === undefined || lengthBytes === undefined || status !== IBV_WC_SUCCESS)
      return void this.found.push(
        `receive ${wrId} of QP ${qp} completed in status ${status} with ${byteLen} bytes`,
      );
    const number = expected.first++;
    const bytes = this.#program.memory.read(this.#area.address + wrId * slotBytes, slotBytes);
    const isRight = bytes.every((byte, at) => byte === (at < lengthBytes ? byteOf(qp, number) : blank));
    if (byteLen !== lengthBytes || !isRight)
      this.found.push(`receive ${wrId} is not message ${number} of ${lengthBytes} bytes of QP ${qp}`);
  }
}

async function close(
  { pd, context }: RcEndpoint,
  area: RcBuffer,
  qps: readonly (IbvQp | undefined)[],
  cqs: readonly IbvCq[],
  srq?: IbvSrq,
): Promise<void> {
  for (const qp of qps) if (qp !== undefined) await destroyQp(qp);
  for (const cq of cqs) await destroyCq(cq);
  if (srq !== undefined) await destroySrq(srq);
  await deregMr(area.region);
  await deallocPd(pd);
  await closeDevice(context);
}

export const sharedReceives: Scene = {
  name: 'shared-receives',
  about: 'receives of a shared queue end out of order, and QPs that use it fail and go',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
