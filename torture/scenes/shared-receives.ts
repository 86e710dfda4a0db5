/**
 * QPs share a receive queue whose receives end in any order, since several CQs are polled, and QPs vanish: by an error in mid-message, or with
 * unpolled receives. Each message arrives in one receive, in the order of its connection; and in the end every receive of the queue is usable (IBTA 10.2.9.3: a receive that a message has begun when its QP fails completes in error; the
 * others stay in the queue).
 */

import { connectRc, type RcBuffer } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Device, Draft, Draws, Stage, Taken } from './language/index.ts';
import { filled, isWell, psPerMs, SEND, scene, series, sumOf, times, topic } from './language/index.ts';

type Message = readonly [qp: number, lengthBytes: number];

/** Bytes of a receive, and of the longest message. */
const slotBytes = 16_384;
const blank = 0xee;
const restMs = 100;

function draw(random: Draws) {
  const qpCount = 2 + random.below(5);
  const cqCount = 1 + random.below(3);
  const maxWr = random.oneOf([3, 7, 15, 31]);
  const isLong = random.chance(0.3);
  const length = (): number =>
    isLong
      ? random.below(slotBytes + 1)
      : random.oneOf([random.below(10), random.below(300), random.below(5000)]);
  // The last QP stays to the end.
  const doomed = times(qpCount - 1, (qp) => qp);
  const turns = times(4 + random.below(8), () => {
    const isEnd = doomed.length > 0 && random.chance(0.45);
    const qp = isEnd ? doomed.shift()! : 0;
    const how = random.chance(0.6) ? 'error' : 'destroy';
    return {
      // QP and length of each; as many of them are sent as there are receives.
      messages: times(
        1 + random.below(2 * maxWr),
        (): Message =>
          isEnd && (how === 'error' || random.chance(0.6))
            ? [qp, how === 'error' ? slotBytes : length()]
            : [random.below(qpCount), length()],
      ),
      // Numbers of completions to poll from the receiving CQs when the messages have arrived, in this order.
      polls: times(random.below(6), () => [random.below(cqCount), 1 + random.below(6)] as const),
      // Receives are posted as one list, or one by one.
      isList: random.chance(0.5),
      // The QP that fails while it receives its messages, or is destroyed with unpolled ones.
      ...(isEnd ? { ends: { qp, how, delayNs: random.below(random.chance(0.5) ? 10_000 : 40_000) } } : {}),
    };
  });
  const args = { qpCount, cqCount, maxWr, maxSge: 1 + random.below(4), turns };
  return { args, hasDrawnHardware: random.chance(0.5), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Turn = Args['turns'][number];

/**
 * Topics: messages of a turn, none to end the scene; then the messages sent, the QPs whose sends failed, and the QP to
 * destroy, or -1.
 */
const turnTopic = topic<readonly Message[]>('turn');
const sentTopic = topic<{ readonly messages: readonly Message[]; readonly failed: readonly number[] }>(
  'sent',
);
const goneTopic = topic<number>('gone');

/** Returns the byte of which a message is made. */
const byteOf = (qp: number, number: number): number => (37 * qp + 11 * number + 1) % 0xed;

async function asker(stage: Stage<Args>): Promise<void> {
  const device = await stage.open();
  const cq = await device.cq(255);
  const qps: (ibv.IbvQp | undefined)[] = await device.rcQps(stage.args.qpCount, cq, {
    maxSendWr: 64,
    maxRecvWr: 1,
  });
  const { address, region } = await device.buffer(64 * slotBytes);
  await connectRc(device.endpoint, qps as ibv.IbvQp[], 'shared');
  const numbers = qps.map(() => 0);
  for (let turn = await stage.take(turnTopic); turn.length > 0; turn = await stage.take(turnTopic)) {
    const messages = turn.filter(([qp]) => qps[qp] !== undefined);
    for (const [wrId, [qp, length]] of messages.entries()) {
      const addr = address + wrId * slotBytes;
      stage.memory.write(addr, filled(length, byteOf(qp, numbers[qp]!++)));
      const request = { wrId, numSge: 1, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED };
      ibv.postSend(qps[qp]!, { ...request, sgList: [{ addr, length, lkey: region.lkey }] });
    }
    const ended = await stage.completions(cq, messages.length, 100_000 * psPerMs);
    if (ended.length !== messages.length)
      stage.accuse(`${ended.length} of ${messages.length} sends have ended`);
    const well = new Set(ended.filter(isWell).map(({ id }) => id));
    const failed = [...new Set(messages.filter((_, at) => !well.has(at)).map(([qp]) => qp))];
    await stage.put(sentTopic, { messages, failed });
    const gone = await stage.take(goneTopic);
    if (gone < 0) continue;
    await device.destroyQp(qps[gone]!);
    qps[gone] = undefined;
  }
  await stage.meet('over');
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { qpCount, cqCount, maxWr, maxSge, turns } = stage.args;
  const device = await stage.open();
  const cqs = await series(cqCount, () => device.cq(255));
  const srq = await device.srq({ maxWr, maxSge });
  const init = { srq, qpType: ibv.IBV_QPT_RC, cap: { maxSendWr: 1 } };
  const qps = await series(qpCount, (at) => device.qp(cqs[at % cqCount]!, init));
  const granted = (await ibv.querySrq(srq)).maxWr!;
  const area = await device.buffer(qpCount * granted * slotBytes);
  const queue = new SharedQueue({ stage, device, srq, cqs, qps, area, granted });
  await connectRc(device.endpoint, qps, 'shared');
  for (const turn of turns) await queue.play(turn);
  await queue.useAll();
  await stage.put(turnTopic, []);
  await stage.meet('over');
}

interface Parts {
  readonly stage: Stage<Args>;
  readonly device: Device;
  readonly srq: ibv.IbvSrq;
  readonly cqs: readonly ibv.IbvCq[];
  readonly qps: readonly ibv.IbvQp[];
  readonly area: RcBuffer;
  /** Receives that the queue holds. */
  readonly granted: number;
}

/** The receives of the queue, one slot of the area each, and the messages that they must receive. */
class SharedQueue {
  readonly #parts: Parts;
  /** Receives that the device holds, as far as completions tell. */
  #inQueueCount = 0;
  readonly #free: number[];
  #freshSlot: number;
  /** Slots without a completion yet. */
  readonly #posted = new Set<number>();
  /** QPs that have failed, and QPs that were destroyed. */
  readonly #failed = new Set<number>();
  readonly #gone = new Set<number>();
  /** Lengths of messages that have arrived, or will, and the number of the first of these, by QP. */
  readonly #due: readonly { lengths: number[]; first: number }[];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#free = times(parts.granted, (slot) => slot);
    this.#freshSlot = parts.granted;
    this.#due = parts.qps.map(() => ({ lengths: [], first: 0 }));
  }

  async play({ messages, polls, ends, isList }: Turn): Promise<void> {
    const { stage, device, cqs, qps } = this.#parts;
    this.#fill(isList);
    const sendable = messages.filter(([qp]) => !this.#gone.has(qp)).slice(0, this.#inQueueCount);
    // A turn of no messages would be the end.
    if (sendable.length === 0) return;
    await stage.put(turnTopic, sendable);
    const doomed = ends === undefined || this.#gone.has(ends.qp) ? undefined : ends;
    if (doomed?.how === 'error') {
      await stage.sleepNs(doomed.delayNs);
      await ibv.modifyQp(qps[doomed.qp]!, { qpState: ibv.IBV_QPS_ERR }, ibv.IBV_QP_STATE);
      this.#failed.add(doomed.qp);
    }
    const unexpected = (await this.#sent()).filter((qp) => !this.#failed.has(qp));
    if (unexpected.length > 0) stage.accuse(`sends to QPs ${unexpected} failed`);
    await stage.sleepMs(restMs);
    if (doomed !== undefined) {
      if (doomed.how === 'error') await this.#endInError(doomed.qp);
      else this.#drop(doomed.qp);
      await device.destroyQp(qps[doomed.qp]!);
      this.#gone.add(doomed.qp);
    }
    for (const [cq, count] of polls) await this.#poll(cqs[cq]!, count);
    await stage.put(goneTopic, doomed?.qp ?? -1);
  }

  /** Polls everything left in the CQs; then all receives must be posted, and serve the last QP. */
  async useAll(): Promise<void> {
    const { stage, cqs, qps, granted } = this.#parts;
    for (const cq of cqs) await this.#poll(cq, 255);
    this.#fill(false);
    const last = qps.length - 1;
    await stage.put(
      turnTopic,
      times(granted, (): Message => [last, 40]),
    );
    const failed = await this.#sent();
    if (failed.length > 0) stage.accuse(`${granted} messages do not find as many receives`);
    // Their ACKs tell that the device has received them: completions may still wait for their writes.
    await stage.sleepMs(restMs);
    await this.#poll(cqs[last % cqs.length]!, 255);
    const left = sumOf(this.#due.map(({ lengths }) => lengths.length));
    if (failed.length === 0 && left > 0) stage.accuse(`${left} receives never completed`);
    await stage.put(goneTopic, -1);
  }

  /** Waits until the messages of the turn are sent, and expects them. @returns QPs whose sends failed */
  async #sent(): Promise<readonly number[]> {
    const { messages, failed } = await this.#parts.stage.take(sentTopic);
    for (const [qp, lengthBytes] of messages) this.#due[qp]!.lengths.push(lengthBytes);
    this.#inQueueCount -= messages.length;
    return failed;
  }

  /**
   * Handles a QP in error: everything that it received, the receive that it had begun, and the event that it consumes
   * no other.
   */
  async #endInError(qp: number): Promise<void> {
    const { stage, device, cqs, qps } = this.#parts;
    for (const cq of cqs) await this.#poll(cq, 255);
    // Receives that it has not used stay in the queue.
    this.#inQueueCount += this.#due[qp]!.lengths.splice(0).length;
    const events = await stage.asyncEvents(device.context);
    const lastWqe = ibv.IBV_EVENT_QP_LAST_WQE_REACHED;
    const own = events.filter((event) => event.eventType !== lastWqe || event.qp === qps[qp]);
    if (own.length !== 1 || own[0]!.eventType !== lastWqe)
      stage.accuse(
        `a QP with a shared receive queue failed with events ${own.map(({ eventType }) => eventType)}`,
      );
  }

  /** Handles a destroyed QP: its received messages are lost, and its receives can be posted again. */
  #drop(qp: number): void {
    // No record tells which slots those were: others take their places.
    for (const _ of this.#due[qp]!.lengths.splice(0)) this.#free.push(this.#freshSlot++);
  }

  /** Posts as many receives as the queue takes. */
  #fill(isList: boolean): void {
    const { stage, srq, area } = this.#parts;
    const slots = this.#free.splice(0);
    for (const slot of slots) stage.memory.write(area.address + slot * slotBytes, filled(slotBytes, blank));
    const receives = slots.map((slot) => this.#receiveOf(slot));
    if (isList) for (const [at, receive] of receives.entries()) receive.next = receives[at + 1] ?? null;
    for (const receive of isList ? receives.slice(0, 1) : receives) {
      const error = ibv.postSrqRecv(srq, receive);
      if (error !== 0) stage.accuse(`a receive was refused with ${error}`);
    }
    for (const slot of slots) this.#posted.add(slot);
    this.#inQueueCount += slots.length;
  }

  /** A list of pieces, some of them empty, that together are the slot. */
  #receiveOf(slot: number): ibv.IbvRecvWr {
    const { stage, area } = this.#parts;
    const numSge = 1 + (slot % stage.args.maxSge);
    const cuts = times(numSge - 1, (at) => Math.min(slotBytes, (slot % 5) * 100 * (at + 1)));
    const ends = [...cuts, slotBytes];
    const sgList = ends.map((end, at) => {
      const from = ends[at - 1] ?? 0;
      return { addr: area.address + slot * slotBytes + from, length: end - from, lkey: area.region.lkey };
    });
    return { wrId: slot, sgList, numSge };
  }

  async #poll(cq: ibv.IbvCq, count: number): Promise<void> {
    for (const one of await this.#parts.stage.poll(cq, count)) this.#take(one);
  }

  #take({ id, status, byteLen, qpNum }: Taken): void {
    const { stage, qps, area } = this.#parts;
    const qp = qps.findIndex((one, at) => one.qpNum === qpNum && !this.#gone.has(at));
    if (!this.#posted.delete(id)) return stage.accuse(`receive ${id} completed, which was not posted`);
    this.#free.push(id);
    const due = this.#due[qp];
    const lengthBytes = due?.lengths.shift();
    // A flush belongs to the message that had begun; later messages have not begun.
    const isFlushed = status === 'WR_FLUSH_ERR' && this.#failed.has(qp);
    if (due === undefined || lengthBytes === undefined || (status !== 'SUCCESS' && !isFlushed))
      return stage.accuse(`receive ${id} of QP ${qp} completed in ${status} with ${byteLen} bytes`);
    if (isFlushed) return;
    const number = due.first++;
    const bytes = stage.memory.read(area.address + id * slotBytes, slotBytes);
    const isRight = bytes.every((byte, at) => byte === (at < lengthBytes ? byteOf(qp, number) : blank));
    if (byteLen !== lengthBytes || !isRight)
      stage.accuse(`receive ${id} is not message ${number} of ${lengthBytes} bytes of QP ${qp}`);
  }
}

export const sharedReceives = scene({
  about: 'receives of a shared queue end out of order, and QPs that use it fail and go',
  draw,
  programs: [asker, answerer],
});
