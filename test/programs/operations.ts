/** Every operation at every size that matters, in every form; payload is checked byte by byte at both ends. */
import type { JsonValue, ProgramContext } from '../../system/program.ts';
import { allAccess } from '../../system/programs/rc-states.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  createSrq,
  getCqEvent,
  IBV_MTU_256,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_STATE,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_SRQ_LIMIT,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND_WITH_IMM,
  type IbvCompChannel,
  type IbvSge,
  modifyCq,
  modifyQp,
  modifySrq,
  postRecv,
  postSend,
  postSrqRecv,
  querySrq,
  regMr,
  reqNotifyCq,
  resizeCq,
} from '../../userlib/index.ts';
import type { Acts } from './companion.ts';
import { type Outcome, statusesOf, take, takeAll, takeWithin } from './outcomes.ts';
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

const microsecond = 1e6;
/** MTU of the sweeps: small, so that a few hundred bytes are many packets. */
const mtuBytes = 256;
export const sizes = [0, 1, mtuBytes - 1, mtuBytes, mtuBytes + 1, 3 * mtuBytes, 5000];

export async function provoker(program: ProgramContext): Promise<JsonValue> {
  return runActs(program, provokerActs);
}

export async function partner(program: ProgramContext): Promise<JsonValue> {
  return runActs(program, partnerActs);
}

async function runActs(program: ProgramContext, acts: Acts): Promise<JsonValue> {
  const side = await Side.open(program);
  const wanted = program.args as readonly string[] | null;
  const results: Record<string, JsonValue> = {};
  for (const [name, act] of Object.entries(acts)) {
    if (wanted !== null && !wanted.includes(name)) continue;
    results[name] = await act(side, name);
    await side.barrier(`${name} is over`);
  }
  return results;
}

// Sizes and pages.

/** Offsets that begin or end at, or cross, a 4 KiB page. */
const offsets = [0, 1, 4095, 4096 - mtuBytes, 8191];
const sweepBytes = 16_384;
const receiveAt = 0;

/** WRITE, READ and SEND of every size at every offset; the peer's memory is read back to be compared. */
async function sweep(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { mtu: IBV_MTU_256, bufferBytes: 3 * sweepBytes });
  return sweepPair(side, pair);
}

async function sweepPair(side: Side, pair: Pair): Promise<JsonValue> {
  const mistakes: string[] = [];
  let seed = 1;
  for (const size of sizes) {
    for (const offset of offsets) {
      const pattern = patternOf(++seed, size);
      side.write(pair.buffer, pattern, offset);
      const source = segment(pair.buffer, offset, size);
      const back = segment(pair.buffer, sweepBytes + offset + 3, size);
      postSend(pair.qp, writeOf([source], remoteAt(pair, sweepBytes + offset)));
      postSend(
        pair.qp,
        readOf([back], remoteAt(pair, sweepBytes + offset), {
          sendFlags: IBV_SEND_SIGNALED | IBV_SEND_FENCE,
        }),
      );
      const taken = await take(pair.sendCq, 2);
      const isRight = areEqual(side.read(pair.buffer, size, sweepBytes + offset + 3), pattern);
      if (!isRight || statusesOf(taken).join() !== 'SUCCESS,SUCCESS' || taken[1]!.byteLen !== size)
        mistakes.push(`WRITE and READ of ${size} at ${offset}: ${JSON.stringify(taken)}`);
      postSend(pair.qp, sendOf([source]));
      mistakes.push(...statusesOf(await take(pair.sendCq, 1)).filter((status) => status !== 'SUCCESS'));
    }
  }
  return mistakes;
}

/** Takes each SEND of a sweep into a buffer that is longer than the message, and looks around it. */
async function sweepPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, {
    mtu: IBV_MTU_256,
    bufferBytes: 3 * sweepBytes,
    beforeReady: ({ qp, buffer }) => {
      for (let index = 0; index < 8; index++)
        postRecv(qp, receiveOf([segment(buffer, receiveAt, sweepBytes)], index));
    },
  });
  return takeSweep(side, pair);
}

async function takeSweep(side: Side, pair: Pair): Promise<JsonValue> {
  const mistakes: string[] = [];
  let seed = 1;
  for (const size of sizes) {
    for (const offset of offsets) {
      const [taken] = await take(pair.recvCq, 1);
      const pattern = patternOf(++seed, size);
      const isRight = areEqual(side.read(pair.buffer, size, receiveAt), pattern);
      if (taken!.status !== 'SUCCESS' || taken!.byteLen !== size || !isRight)
        mistakes.push(`SEND of ${size} from ${offset}: ${JSON.stringify(taken)}`);
      postRecv(pair.qp, receiveOf([segment(pair.buffer, receiveAt, sweepBytes)]));
    }
  }
  return mistakes;
}

/** Messages over the boundary of two 2 MiB pages, and over 4 KiB pages of the other side, both ways. */
async function hugePages(side: Side, name: string): Promise<JsonValue> {
  const { process } = side.program.memory;
  const hugeBytes = 2 ** 21;
  const address = process.space.map(2 * hugeBytes, hugeBytes);
  const huge: Area = {
    address,
    lengthBytes: 2 * hugeBytes,
    mr: await regMr(side.pd, address, 2 * hugeBytes, allAccess),
  };
  const pair = await side.pair(name, { bufferBytes: 20_000, note: { address, rkey: huge.mr.rkey } });
  if (side.program.node === 1) {
    await side.barrier(`${name} done`);
    const bytes = side.read(huge, 10_000, hugeBytes - 5000);
    return areEqual(bytes, patternOf(77, 10_000)) ? [] : ['other bytes written over the boundary'];
  }
  const remote = pair.remote.note as { address: number; rkey: number };
  const target = { address: remote.address + hugeBytes - 5000, rkey: remote.rkey };
  const mistakes: string[] = [];
  side.write(pair.buffer, patternOf(77, 10_000), 123);
  postSend(pair.qp, writeOf([segment(pair.buffer, 123, 10_000)], target));
  const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  postSend(pair.qp, readOf([segment(huge, hugeBytes - 1, 10_000)], target, { sendFlags }));
  mistakes.push(...statusesOf(await take(pair.sendCq, 2)).filter((status) => status !== 'SUCCESS'));
  if (!areEqual(side.read(huge, 10_000, hugeBytes - 1), patternOf(77, 10_000)))
    mistakes.push('other bytes read');
  await side.barrier(`${name} done`);
  return mistakes;
}

// Forms of requests.

const formsBytes = 32_768;

/** Lists of buffers on either side, inline, immediate, atomics, unsignalled. */
async function forms(side: Side, name: string): Promise<JsonValue> {
  const cap = { maxSendSge: 8, maxRecvSge: 8, maxInlineData: 200 };
  const pair = await side.pair(name, { bufferBytes: formsBytes, cap });
  const { buffer, qp } = pair;
  side.write(buffer, patternOf(5, 8192));
  const pieces = (base: number): IbvSge[] => [
    segment(buffer, base + 3, 1),
    segment(buffer, base + 100, 0),
    segment(buffer, base + 200, 1500),
    segment(buffer, base + 4090, 12),
    segment(buffer, base + 5000, 777),
  ];
  const inline = { sendFlags: IBV_SEND_INLINE | IBV_SEND_SIGNALED };
  const posted: [string, number][] = [
    ['gather', postSend(qp, sendOf(pieces(0)))],
    ['immediate', postSend(qp, sendOf([], { opcode: IBV_WR_SEND_WITH_IMM, immData: 0xdead_beef }))],
    ['inline', postSend(qp, sendOf([segment(buffer, 10, 100), segment(buffer, 300, 100)], inline))],
    [
      'write with immediate',
      postSend(
        qp,
        writeOf([segment(buffer, 0, 2000)], remoteAt(pair, 16_384), {
          opcode: IBV_WR_RDMA_WRITE_WITH_IMM,
          immData: 0x8000_0001,
        }),
      ),
    ],
    ['inline write', postSend(qp, writeOf([segment(buffer, 20, 64)], remoteAt(pair, 20_000), inline))],
    ['empty inline', postSend(qp, writeOf([segment(buffer, 20, 0)], remoteAt(pair, 20_000), inline))],
  ];
  const sent = await take(pair.sendCq, 6);
  await side.barrier(`${name} written`);
  // Unsignalled ones complete with the next signalled one, or in error.
  for (let index = 0; index < 5; index++)
    postSend(
      qp,
      writeOf([segment(buffer, index, 1)], remoteAt(pair, 24_000 + index), { sendFlags: 0, wrId: index }),
    );
  postSend(qp, readOf(pieces(8192), remoteAt(pair, 16_384), { wrId: 9 }));
  const signalled = await take(pair.sendCq, 1);
  const surplus = await takeAll(pair.sendCq);
  const scattered = [1, 1500, 12, 777].reduce(
    ({ at, bytes }, length, index) => {
      const offset = [3, 200, 4090, 5000][index]!;
      bytes.push(...side.read(buffer, length, 8192 + offset));
      return { at: at + length, bytes };
    },
    { at: 0, bytes: [] as number[] },
  ).bytes;
  const expected = await side.hear(`${name} target`);
  return {
    errors: posted.filter(([, error]) => error !== 0),
    sent: statusesOf(sent),
    opcodes: sent.map(({ opcode }) => opcode),
    signalled: signalled.map(({ wrId, status, byteLen }) => [wrId, status, byteLen]),
    surplus: statusesOf(surplus),
    isScattered: digestOf(Uint8Array.from(scattered)) === expected,
    atomics: await atomics(side, pair),
  };
}

/** Both atomics on one word of the peer, which holds 2^63 − 1 at first. */
async function atomics(side: Side, pair: Pair): Promise<JsonValue> {
  const { memory } = side.program;
  const place = remoteAt(pair, 28_672);
  const found: string[] = [];
  const result = (): string => memory.readUint64(pair.buffer.address + 30_000).toString();
  const cell = segment(pair.buffer, 30_000, 8);
  const requests = [
    fetchAddOf(cell, place, 1n),
    compareSwapOf(cell, place, 0n, 5n),
    compareSwapOf(cell, place, 2n ** 63n, 2n ** 64n - 1n),
    fetchAddOf(cell, place, 3n),
    fetchAddOf(cell, place, 0n),
  ];
  for (const request of requests) {
    postSend(pair.qp, request);
    const [taken] = await take(pair.sendCq, 1);
    found.push(`${taken!.status} ${taken!.byteLen} ${result()}`);
  }
  return found;
}

async function formsPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, {
    bufferBytes: formsBytes,
    cap: { maxSendSge: 8, maxRecvSge: 8 },
    beforeReady: ({ qp, buffer }) => {
      side.program.memory.writeUint64(buffer.address + 28_672, 2n ** 63n - 1n);
      const lists = [
        [
          segment(buffer, 1, 1000),
          segment(buffer, 2000, 0),
          segment(buffer, 4000, 1289),
          segment(buffer, 9000, 10),
        ],
        [],
        [segment(buffer, 12_000, 150), segment(buffer, 12_500, 150)],
        [],
      ];
      lists.forEach((list, index) => {
        postRecv(qp, receiveOf(list, index));
      });
    },
  });
  const received = await take(pair.recvCq, 4);
  await side.barrier(`${name} written`);
  const source = patternOf(5, 8192);
  const gathered = concatenated([
    source.subarray(3, 4),
    source.subarray(200, 1700),
    source.subarray(4090, 4102),
    source.subarray(5000, 5777),
  ]);
  const scattered = concatenated([
    side.read(pair.buffer, 1000, 1),
    side.read(pair.buffer, 1289, 4000),
    side.read(pair.buffer, 1, 9000),
  ]);
  const inline = concatenated([side.read(pair.buffer, 150, 12_000), side.read(pair.buffer, 50, 12_500)]);
  await side.tell(`${name} target`, digestOf(side.read(pair.buffer, 2290, 16_384)));
  return {
    received: received.map(({ wrId, status, opcode, byteLen, wcFlags, immData }: Outcome) =>
      wcFlags === 0 ? [wrId, status, opcode, byteLen] : [wrId, status, opcode, byteLen, immData],
    ),
    isScattered: areEqual(scattered, gathered),
    isInline: areEqual(inline, concatenated([source.subarray(10, 110), source.subarray(300, 400)])),
    isWritten: areEqual(side.read(pair.buffer, 2000, 16_384), source.subarray(0, 2000)),
    isInlineWritten: areEqual(side.read(pair.buffer, 64, 20_000), source.subarray(20, 84)),
  };
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A fenced WRITE behind a READ of the same word: the READ must see the word as it was. */
async function fence(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes: 65_536 });
  side.write(pair.buffer, new Uint8Array(64).fill(1));
  const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  const seen: number[] = [];
  for (let round = 0; round < 4; round++) {
    postSend(pair.qp, readOf([segment(pair.buffer, 4096, 30_000)], remoteAt(pair, 0), { sendFlags: 0 }));
    // What was read is sent on at once: without the fence it would be what was there before.
    postSend(pair.qp, writeOf([segment(pair.buffer, 4096, 30_000)], remoteAt(pair, 32_768), { sendFlags }));
    await take(pair.sendCq, 1);
    postSend(pair.qp, readOf([segment(pair.buffer, 36_000, 8)], remoteAt(pair, 32_768 + 29_992)));
    await take(pair.sendCq, 1);
    seen.push(side.read(pair.buffer, 1, 36_000)[0]!);
    side.write(pair.buffer, new Uint8Array(30_000), 4096);
    postSend(pair.qp, fetchAddOf(segment(pair.buffer, 0, 8), remoteAt(pair, 29_992), 1n));
    await take(pair.sendCq, 1);
  }
  return seen;
}

// Shared receive queues, events, resizing, draining.

/** Two QPs on one SRQ; the limit raises one event; a QP in error says that it has taken its last WQE. */
async function sharedQueue(side: Side, name: string): Promise<JsonValue> {
  const srq = await createSrq(side.pd, { attr: { maxWr: 15, maxSge: 2 } });
  const slots = await side.area(16 * 256);
  const post = (slot: number): number => postSrqRecv(srq, receiveOf([segment(slots, slot * 256, 200)], slot));
  for (let slot = 0; slot < 12; slot++) post(slot);
  await modifySrq(srq, { srqLimit: 5 }, IBV_SRQ_LIMIT);
  const armed = (await querySrq(srq)).srqLimit;
  const first = await side.pair(`${name} 0`, { srq });
  const second = await side.pair(`${name} 1`, { srq, recvCq: first.recvCq });
  await side.barrier(`${name} begins`);
  const taken = await take(first.recvCq, 10);
  const events = await side.events();
  const bytes = taken.map(
    ({ wrId, immData }) =>
      side.read(slots, 200, wrId * 256)[immData % 200] === patternOf(3, 200)[immData % 200]!,
  );
  const after = (await querySrq(srq)).srqLimit;
  await side.barrier(`${name} sent`);
  await modifyQp(second.qp, { qpState: 6 }, IBV_QP_STATE);
  return {
    armed,
    after,
    slots: taken.map(({ wrId }) => wrId),
    statuses: [...new Set(statusesOf(taken))],
    areRight: bytes.every((isRight) => isRight),
    events,
    eventsOfError: await side.events(),
    postRecv: postRecv(first.qp, receiveOf([])),
  };
}

async function sharedQueuePartner(side: Side, name: string): Promise<JsonValue> {
  const pairs = [await side.pair(`${name} 0`), await side.pair(`${name} 1`)];
  for (const pair of pairs) side.write(pair.buffer, patternOf(3, 200));
  await side.barrier(`${name} begins`);
  const statuses: string[] = [];
  for (let index = 0; index < 10; index++) {
    const { qp, buffer, sendCq } = pairs[index % 2]!;
    postSend(qp, sendOf([segment(buffer, 0, 200)], { opcode: IBV_WR_SEND_WITH_IMM, immData: index * 17 }));
    statuses.push(...statusesOf(await take(sendCq, 1)));
  }
  await side.barrier(`${name} sent`);
  return [...new Set(statuses)];
}

/** Whether an event of the channel comes within 100 µs. */
async function isWoken(channel: IbvCompChannel): Promise<boolean> {
  const cq = await getCqEvent(channel, 100 * microsecond);
  if (cq !== undefined) ackCqEvents(cq, 1);
  return cq !== undefined;
}

/** Completion vector 3, and what wakes it: any completion, only solicited ones, each third one. */
async function wakeUps(side: Side, name: string): Promise<JsonValue> {
  const channel = await createCompChannel(side.context);
  const recvCq = await createCq(side.context, 64, null, channel, 2);
  const pair = await side.pair(name, {
    recvCq,
    cap: { maxRecvWr: 32 },
    beforeReady: ({ qp, buffer }) => {
      for (let index = 0; index < 20; index++) postRecv(qp, receiveOf([segment(buffer, 0, 64)], index));
    },
  });
  const ask = async (what: string): Promise<boolean> => {
    await side.tell(`${name} send`, what);
    const woken = await isWoken(channel);
    await takeAll(recvCq, 5);
    return woken;
  };
  const told: Record<string, boolean> = {};
  told['notArmed'] = await ask('plain');
  reqNotifyCq(recvCq, 0);
  told['armed'] = await ask('plain');
  told['onlyOnce'] = await ask('plain');
  reqNotifyCq(recvCq, 1);
  told['solicitedOnlyByPlain'] = await ask('plain');
  told['solicitedOnlyBySolicited'] = await ask('solicited');
  reqNotifyCq(recvCq, 1);
  told['solicitedOnlyByError'] = await (async () => {
    await modifyQp(pair.qp, { qpState: 6 }, IBV_QP_STATE);
    return isWoken(channel);
  })();
  await side.tell(`${name} send`, 'stop');
  return told;
}

async function wakeUpsPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name);
  for (let what = await side.hear(`${name} send`); what !== 'stop'; what = await side.hear(`${name} send`)) {
    const sendFlags = IBV_SEND_SIGNALED | (what === 'solicited' ? IBV_SEND_SOLICITED : 0);
    postSend(pair.qp, sendOf([segment(pair.buffer, 0, 64)], { sendFlags }));
    await take(pair.sendCq, 1);
  }
  return null;
}

/** One event for each four completions; the period of a millisecond brings the rest. */
async function moderation(side: Side, name: string): Promise<JsonValue> {
  const channel = await createCompChannel(side.context);
  const sendCq = await createCq(side.context, 64, null, channel, 3);
  await modifyCq(sendCq, 4, 1000);
  const pair = await side.pair(name, { sendCq });
  const wakes: boolean[] = [];
  for (const count of [3, 1]) {
    reqNotifyCq(sendCq, 0);
    for (let index = 0; index < count; index++)
      postSend(pair.qp, writeOf([segment(pair.buffer, 0, 8)], remoteAt(pair, 0)));
    wakes.push(await isWoken(channel));
  }
  await takeAll(sendCq, 5);
  reqNotifyCq(sendCq, 0);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 8)], remoteAt(pair, 0)));
  wakes.push(await isWoken(channel));
  const late = await getCqEvent(channel, 1500 * microsecond);
  if (late !== undefined) ackCqEvents(late, 1);
  return { wakes, late: late === sendCq };
}

/** Grows and shrinks a CQ while completions come; each request completes once, in order. */
async function resizing(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { cap: { maxSendWr: 64 } });
  const ids: number[] = [];
  const statuses = new Set<string>();
  let posted = 0;
  const note = (taken: readonly Outcome[]): void => {
    for (const { wrId, status } of taken) {
      ids.push(wrId);
      statuses.add(status);
    }
  };
  for (const entries of [100, 200, 60, 500, 63]) {
    for (let index = 0; index < 40; index++)
      postSend(pair.qp, writeOf([segment(pair.buffer, 0, 512)], remoteAt(pair, 0), { wrId: posted++ }));
    await resizeCq(pair.sendCq, entries);
    note(await take(pair.sendCq, 40));
  }
  const surplus = await takeAll(pair.sendCq);
  return {
    isInOrder: ids.every((id, index) => id === index),
    count: ids.length,
    statuses: [...statuses],
    surplus: surplus.length,
    size: pair.sendCq.cqe,
  };
}

/** Drains the send queue: what was posted before completes, what is posted then waits until the QP sends again. */
async function draining(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes: 65_536 });
  const post = (wrId: number): number =>
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 65_536)], remoteAt(pair, 0), { wrId }));
  for (let index = 0; index < 4; index++) post(index);
  await modifyQp(
    pair.qp,
    { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 1 },
    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
  );
  await side.program.cpu.sleep(200 * microsecond);
  const drained = await takeAll(pair.sendCq);
  const events = await side.events();
  const state = await side.stateOf(pair);
  const posted = post(10);
  const held = statusesOf(await takeWithin(pair.sendCq, 1, 200));
  await modifyQp(pair.qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
  // Whatever had not begun when the QP was drained goes on now.
  const rest = await take(pair.sendCq, 5 - drained.length);
  const ids = [...drained, ...rest].map(({ wrId }) => wrId);
  return { events, state, posted, held, ids, statuses: [...new Set(statusesOf([...drained, ...rest]))] };
}

const silent =
  (bufferBytes = 65_536): Acts[string] =>
  async (side, name) => {
    const pair = await side.pair(name, { bufferBytes });
    await side.barrier(`${name} is over for the partner`);
    return side.stateOf(pair);
  };

/** Ends an act whose partner is silent. */
const withSilent =
  (act: Acts[string]): Acts[string] =>
  async (side, name) => {
    const told = await act(side, name);
    await side.barrier(`${name} is over for the partner`);
    return told;
  };

const provokerActs: Acts = {
  sweep,
  hugePages,
  forms,
  fence: withSilent(fence),
  sharedQueue,
  wakeUps,
  moderation: withSilent(moderation),
  resizing: withSilent(resizing),
  draining: withSilent(draining),
};

const partnerActs: Acts = {
  sweep: sweepPartner,
  hugePages,
  forms: formsPartner,
  fence: silent(),
  sharedQueue: sharedQueuePartner,
  wakeUps: wakeUpsPartner,
  moderation: silent(),
  resizing: silent(),
  draining: silent(),
};
