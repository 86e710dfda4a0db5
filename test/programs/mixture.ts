/**
 * All operations at once: the load for comparing partitions, orders within one instant and repeated runs.
 *
 * `polling`: several QPs, both ways, WRITE, WRITE with immediate, READ, both atomics, SEND fenced, SEND inline with
 * immediate, some unsignalled. `sleeping`: QPs with one SRQ, both ways, woken by completion events. Both check every byte.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  createSrq,
  getCqEvent,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_WC_RECV,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND_WITH_IMM,
  type IbvCompChannel,
  type IbvCq,
  type IbvSendWr,
  IbvWc,
  pollSettled,
  postRecv,
  postSend,
  postSrqRecv,
  reqNotifyCq,
  wcStatusStr,
} from '../../userlib/index.ts';
import { type Outcome, take } from './outcomes.ts';
import {
  areEqual,
  compareSwapOf,
  digestOf,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  remoteAt,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import { type Area, type Pair, Side } from './side.ts';

export interface MixtureArgs {
  readonly qps: number;
  readonly rounds: number;
}

const writeBytes = 3000;
const immediateBytes = 100;
const readBytes = 2500;
const sendBytes = 5000;
const inlineBytes = 40;
/** Receives of one round: WRITE with immediate, SEND, SEND with immediate. */
const receivesPerRound = 3;
const signalledPerRound = 6;
const sourceAt = 0;
const readAt = 8192;
const targetAt = 12288;
const countersAt = 16384;
const resultsAt = 16448;
const slotsAt = 20480;
const slotBytes = 8192;
const bufferBytes = slotsAt + 2 * receivesPerRound * slotBytes;

const sourceOf = (node: number, index: number): Uint8Array => patternOf(node * 1000 + index, 8192);

export async function polling(program: ProgramContext<MixtureArgs>): Promise<JsonValue> {
  const { qps, rounds } = program.args;
  const side = await Side.open(program);
  const shared = { sendCq: await createCq(side.context, 256), recvCq: await createCq(side.context, 256) };
  const pairs: Pair[] = [];
  for (let index = 0; index < qps; index++) {
    const pair = await side.pair(`polling ${index}`, {
      ...shared,
      bufferBytes,
      beforeReady: (early) => {
        for (let slot = 0; slot < 2 * receivesPerRound; slot++) postSlot(early, slot);
      },
    });
    side.write(pair.buffer, sourceOf(program.node, index));
    pairs.push(pair);
  }
  await side.barrier('polling begins');
  const mistakes: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const pair of pairs) for (const request of requestsOf(pair, round)) postSend(pair.qp, request);
    checkAll(await take(shared.sendCq, signalledPerRound * qps), mistakes);
    const received = await take(shared.recvCq, receivesPerRound * qps);
    checkAll(received, mistakes);
    for (const { wrId } of received) postSlot(pairs[Math.floor(wrId / 100)]!, wrId % 100);
    for (const [index, pair] of pairs.entries()) checkRound(side, pair, index, round, mistakes);
  }
  await side.barrier('polling over');
  for (const [index, pair] of pairs.entries()) checkTarget(side, pair, index, mistakes);
  return { mistakes, digest: pairs.map(({ buffer }) => digestOf(side.read(buffer, slotsAt))) };
}

function requestsOf(pair: Pair, round: number): IbvSendWr[] {
  const { buffer } = pair;
  const source = (length: number) => [segment(buffer, sourceAt, length)];
  return [
    writeOf(source(writeBytes), remoteAt(pair, targetAt), { sendFlags: 0 }),
    writeOf(source(immediateBytes), remoteAt(pair, targetAt), {
      opcode: IBV_WR_RDMA_WRITE_WITH_IMM,
      immData: round,
    }),
    readOf(
      [segment(buffer, readAt, 1000), segment(buffer, readAt + 1000, readBytes - 1000)],
      remoteAt(pair, sourceAt),
    ),
    fetchAddOf(segment(buffer, resultsAt, 8), remoteAt(pair, countersAt), 3n),
    compareSwapOf(
      segment(buffer, resultsAt + 8, 8),
      remoteAt(pair, countersAt + 8),
      BigInt(round),
      BigInt(round + 1),
    ),
    sendOf(source(sendBytes), { sendFlags: IBV_SEND_SIGNALED | IBV_SEND_FENCE }),
    sendOf(source(inlineBytes), {
      opcode: IBV_WR_SEND_WITH_IMM,
      immData: round,
      sendFlags: IBV_SEND_SIGNALED | IBV_SEND_INLINE,
    }),
  ];
}

/** The slot and the QP's index among the pairs form the work request's ID. */
function postSlot({ label, qp, buffer }: Pair, slot: number): void {
  const index = Number(label.split(' ')[1]);
  const sge = segment(buffer, slotsAt + slot * slotBytes, slotBytes);
  const error = postRecv(qp, receiveOf([sge], index * 100 + slot));
  if (error !== 0) throw new Error(`post_recv: ${error}`);
}

function checkAll(outcomes: readonly Outcome[], mistakes: string[]): void {
  for (const { status, wrId } of outcomes)
    if (status !== 'SUCCESS') mistakes.push(`request ${wrId}: ${status}`);
}

function checkRound(side: Side, pair: Pair, index: number, round: number, mistakes: string[]): void {
  const { memory, peers } = side.program;
  const peer = sourceOf(peers[0]!, index);
  if (!areEqual(side.read(pair.buffer, readBytes, readAt), peer.subarray(0, readBytes)))
    mistakes.push(`QP ${index} round ${round}: other bytes read`);
  const added = memory.readUint64(pair.buffer.address + resultsAt);
  const swapped = memory.readUint64(pair.buffer.address + resultsAt + 8);
  if (added !== 3n * BigInt(round)) mistakes.push(`QP ${index} round ${round}: added to ${added}`);
  if (swapped !== BigInt(round)) mistakes.push(`QP ${index} round ${round}: swapped ${swapped}`);
}

/** Data that the peer wrote, and data that it sent last. */
function checkTarget(side: Side, pair: Pair, index: number, mistakes: string[]): void {
  const peer = sourceOf(side.program.peers[0]!, index);
  if (!areEqual(side.read(pair.buffer, writeBytes, targetAt), peer.subarray(0, writeBytes)))
    mistakes.push(`QP ${index}: other bytes written`);
  for (const set of [0, 1]) {
    const [sent, inline] = [1, 2].map((slot) => slotsAt + (receivesPerRound * set + slot) * slotBytes);
    if (!areEqual(side.read(pair.buffer, sendBytes, sent), peer.subarray(0, sendBytes)))
      mistakes.push(`QP ${index}: other bytes sent`);
    if (!areEqual(side.read(pair.buffer, inlineBytes, inline), peer.subarray(0, inlineBytes)))
      mistakes.push(`QP ${index}: other bytes sent inline`);
  }
}

const sharedSlots = 8;
const sharedBytes = 2048;

export async function sleeping(program: ProgramContext<MixtureArgs>): Promise<JsonValue> {
  const { qps, rounds } = program.args;
  const side = await Side.open(program);
  const channel = await createCompChannel(side.context);
  const recvCq = await createCq(side.context, 64, null, channel, 1);
  const sendCq = await createCq(side.context, 64, null, channel, 0);
  const srq = await createSrq(side.pd, { attr: { maxWr: sharedSlots, maxSge: 2 } });
  const slots = await side.area(sharedSlots * sharedBytes);
  const postShared = (slot: number): void => {
    const sge = segment(slots, slot * sharedBytes, sharedBytes);
    postSrqRecv(srq, receiveOf([sge], slot));
  };
  for (let slot = 0; slot < sharedSlots; slot++) postShared(slot);
  const pairs: Pair[] = [];
  for (let index = 0; index < qps; index++)
    pairs.push(await side.pair(`sleeping ${index}`, { sendCq, recvCq, srq }));
  for (const [index, pair] of pairs.entries())
    side.write(pair.buffer, sourceOf(program.node, index).subarray(0, 4096));
  const waiter = new EventWaiter(side, channel, [sendCq, recvCq]);
  await side.barrier('sleeping begins');
  for (let round = 0; round < rounds; round++) {
    for (const [index, { qp, buffer }] of pairs.entries()) {
      const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
      const immData = index * 1000 + round;
      postSend(qp, sendOf([segment(buffer, 0, 1500)], { sendFlags, opcode: IBV_WR_SEND_WITH_IMM, immData }));
    }
    await waiter.until(2 * qps * (round + 1), (received) => {
      checkShared(side, slots, received, waiter.mistakes);
      postShared(received.wrId);
    });
  }
  await side.barrier('sleeping over');
  return { mistakes: waiter.mistakes, events: waiter.eventCount };
}

function checkShared(side: Side, slots: Area, { wrId, immData, byteLen }: IbvWc, mistakes: string[]): void {
  const peer = sourceOf(side.program.peers[0]!, Math.floor(immData / 1000));
  const bytes = side.read(slots, 1500, wrId * sharedBytes);
  if (byteLen !== 1500 || !areEqual(bytes, peer.subarray(0, 1500)))
    mistakes.push(`message ${immData}: other bytes received`);
}

/** Sleeps for completion events and dequeues the announced completions. */
class EventWaiter {
  readonly mistakes: string[] = [];
  eventCount = 0;
  readonly #side: Side;
  readonly #channel: IbvCompChannel;
  readonly #cqs: readonly IbvCq[];
  readonly #entries = Array.from({ length: 4 }, () => new IbvWc());
  #completed = 0;

  constructor(side: Side, channel: IbvCompChannel, cqs: readonly IbvCq[]) {
    this.#side = side;
    this.#channel = channel;
    this.#cqs = cqs;
    for (const cq of cqs) reqNotifyCq(cq, 0);
  }

  /** Polls until this many have completed since the beginning. */
  async until(count: number, received: (wc: IbvWc) => void): Promise<void> {
    await this.#takeAll(received);
    while (this.#completed < count) {
      const cq = (await getCqEvent(this.#channel))!;
      ackCqEvents(cq, 1);
      this.eventCount++;
      reqNotifyCq(cq, 0);
      await this.#takeAll(received);
    }
  }

  async #takeAll(received: (wc: IbvWc) => void): Promise<void> {
    for (const cq of this.#cqs) {
      for (;;) {
        await this.#side.program.cpu.settle();
        const count = pollSettled(cq, this.#entries.length, this.#entries);
        if (count === 0) break;
        for (const wc of this.#entries.slice(0, count)) this.#completedOne(wc, received);
      }
    }
  }

  #completedOne(wc: IbvWc, received: (wc: IbvWc) => void): void {
    this.#completed++;
    if (wc.status !== 0) this.mistakes.push(`request ${wc.wrId}: ${wcStatusStr(wc.status)}`);
    else if (wc.opcode === IBV_WC_RECV) received(wc);
  }
}
