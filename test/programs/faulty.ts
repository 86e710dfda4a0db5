/**
 * Traffic to inject faults into: two WRITEs, a READ and a SEND, on one QP, polled. Before it begins, the machine is quiet for
 * 100 µs, and the sender's progress reports this: a test can count the events up to then, and number the next ones.
 */

import { allAccess, toInit } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  createQp,
  createSrq,
  deregMr,
  destroyCq,
  destroyQp,
  destroySrq,
  getCqEvent,
  IBV_QPT_RC,
  postRecv,
  postSend,
  regMr,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { codeOf, statusesOf, takeAll, takeWithin } from './outcomes.ts';
import { areEqual, patternOf, readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, type PairOptions, Side } from './side.ts';

export interface FaultyArgs {
  readonly timeoutCode?: number;
  readonly retryCount?: number;
  /** Simulated time for which the sender waits for late events at the end. */
  readonly lingerUs?: number;
}

const microsecond = 1e6;
/** Above the completion timeout of PCIe, 10 ms: a fatal error of the queue itself promises no completions. */
const waitUs = 15_000;
const writeBytes = 2000;
const sendBytes = 300;
const bufferBytes = 16_384;
/** Sources on both sides; written, read and received data follow them. */
const sourceOf = (node: number): Uint8Array => patternOf(node + 40, 4096);
const firstAt = 4096;
const secondAt = 8192;
const readAt = 12_288;

export async function sender(program: ProgramContext<FaultyArgs | null>): Promise<JsonValue> {
  const { cpu, args } = program;
  const { lingerUs = 0, ...options } = args ?? {};
  const side = await Side.open(program);
  const pair = await side.pair('faulty', { timeoutCode: 6, bufferBytes, ...options } satisfies PairOptions);
  const { buffer, qp } = pair;
  side.write(buffer, sourceOf(0));
  await side.barrier('quiet');
  await side.events();
  program.progress(1, 2);
  await cpu.sleep(100 * microsecond);
  const fromPs = cpu.localPs;
  postSend(qp, writeOf([segment(buffer, 0, writeBytes)], remoteAt(pair, firstAt), { wrId: 1 }));
  postSend(qp, writeOf([segment(buffer, 100, writeBytes)], remoteAt(pair, secondAt), { wrId: 2 }));
  postSend(qp, readOf([segment(buffer, readAt, writeBytes)], remoteAt(pair, 0), { wrId: 3 }));
  postSend(qp, sendOf([segment(buffer, 0, sendBytes)], { wrId: 4 }));
  const taken = await takeWithin(pair.sendCq, 4, waitUs);
  const tookUs = (cpu.localPs - fromPs) / microsecond;
  program.progress(2, 2);
  const isRead = areEqual(side.read(buffer, writeBytes, readAt), sourceOf(1).subarray(0, writeBytes));
  await cpu.sleep(lingerUs * microsecond);
  const surplus = statusesOf(await takeAll(pair.sendCq));
  await side.barrier('sent');
  return {
    statuses: statusesOf(taken),
    isInOrder: taken.every(({ wrId }, index) => wrId === index + 1),
    surplus,
    fromPs,
    tookUs,
    isRead,
    state: await side.stateOf(pair),
    events: await side.events(),
  };
}

export async function receiver(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('faulty', {
    bufferBytes,
    timeoutCode: 6,
    beforeReady: ({ qp, buffer }) => {
      postRecv(qp, receiveOf([segment(buffer, readAt, sendBytes)]));
    },
  });
  side.write(pair.buffer, sourceOf(1));
  await side.barrier('quiet');
  await side.barrier('sent');
  const received = statusesOf(await takeAll(pair.recvCq));
  const has = (offset: number, bytes: Uint8Array): boolean =>
    areEqual(side.read(pair.buffer, bytes.length, offset), bytes);
  const source = sourceOf(0);
  return {
    written: [
      has(firstAt, source.subarray(0, writeBytes)),
      has(secondAt, source.subarray(100, 100 + writeBytes)),
    ],
    received,
    isReceived: has(readAt, source.subarray(0, sendBytes)),
    state: await side.stateOf(pair),
    events: await side.events(),
  };
}

/**
 * Waits for the event of one WRITE's completion, for 500 µs or for a given time, after a quiet time as above; then polls. The
 * partner is {@link idler}.
 */
export async function waiter(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { patienceUs = 500 } = (program.args ?? {}) as { readonly patienceUs?: number };
  const channel = await createCompChannel(side.context);
  const sendCq = await createCq(side.context, 8, null, channel, 0);
  const pair = await side.pair('waited for', { sendCq });
  reqNotifyCq(sendCq, 0);
  await side.barrier('quiet');
  program.progress(1, 2);
  await program.cpu.sleep(100 * microsecond);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 64)], remoteAt(pair, 0)));
  const cq = await getCqEvent(channel, patienceUs * microsecond);
  if (cq !== undefined) ackCqEvents(cq, 1);
  const statuses = statusesOf(await takeAll(sendCq));
  await side.barrier('over');
  return { isWoken: cq === sendCq, statuses };
}

/**
 * Destroys a CQ with an unfetched event, and creates another one, which gets the same number. @returns the events of the new
 * one, and the completions found after each; -1 is a wait in vain
 */
export async function successor(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const channel = await createCompChannel(side.context);
  const first = await createCq(side.context, 8, null, channel, 0);
  const pair = await side.pair('first', { sendCq: first });
  const write = (by: Pair) => postSend(by.qp, writeOf([segment(by.buffer, 0, 64)], remoteAt(by, 0)));
  reqNotifyCq(first, 0);
  write(pair);
  await takeAll(first);
  await destroyQp(pair.qp);
  await destroyCq(first);
  const second = await createCq(side.context, 8, null, channel, 0);
  const next = await side.pair('second', { sendCq: second });
  const found: number[] = [];
  for (let round = 0; round < 3; round++) {
    reqNotifyCq(second, 0);
    if (round === 0) await program.cpu.sleep(1000 * microsecond);
    write(next);
    const cq = await getCqEvent(channel, 2000 * microsecond);
    if (cq !== undefined) ackCqEvents(cq, 1);
    found.push(cq === undefined ? -1 : (await takeAll(second, 0)).length);
  }
  await side.barrier('over');
  return { isSameNumber: first.ring.cqn === second.ring.cqn, found };
}

export async function predecessor(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  await side.pair('first');
  await side.pair('second');
  await side.barrier('over');
  return null;
}

export async function idler(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  await side.pair('waited for');
  await side.barrier('quiet');
  await side.barrier('over');
  return null;
}

/** Creates one object of each kind twice. @returns the codes of the first and the second time, and whether anything leaked */
export async function maker(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const { context, pd } = side;
  const [device] = program.verbs.devices;
  const takenNow = (): string =>
    JSON.stringify([
      device!.resourceCounts(),
      program.host.frames.usedCount - program.host.mm.residentBytes / 4096,
      program.memory.process.space.pinnedBytes,
    ]);
  const cq = await createCq(context, 8);
  const address = program.memory.map(4096);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const make: Record<string, () => Promise<unknown>> = {
    regMr: () => regMr(pd, address, 4096, allAccess).then(deregMr),
    createCq: () => createCq(context, 8).then(destroyCq),
    createSrq: () => createSrq(pd, { attr: { maxWr: 4, maxSge: 1 } }).then(destroySrq),
    toInit: async () => {
      const qp = await createQp(pd, { sendCq: cq, recvCq: cq, cap: { ...cap }, qpType: IBV_QPT_RC });
      try {
        await toInit(qp, allAccess);
      } finally {
        await destroyQp(qp);
      }
    },
  };
  const results: Record<string, JsonValue> = {};
  for (const [name, body] of Object.entries(make)) {
    const before = takenNow();
    const first = await codeOf(body());
    const isGivenBack = takenNow() === before;
    results[name] = { first, isGivenBack, second: await codeOf(body()) };
  }
  return results;
}
