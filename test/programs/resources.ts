/**
 * Resources that are removed while in use, or are missing: deregistered regions, a process that ends, the pin limit, physical
 * memory, the tables of the device.
 */

import { allAccess, toInit } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createCq,
  createQp,
  createSrq,
  deregMr,
  destroyCq,
  destroyQp,
  destroySrq,
  getDeviceList,
  IBV_QPT_RC,
  type IbvCq,
  type IbvMr,
  type IbvQp,
  type IbvSrq,
  openDevice,
  postSend,
  regMr,
  VerbsError,
} from '../../userlib/index.ts';
import { type Act, type Acts, accompany, idle, provoke } from './companion.ts';
import { untilGone } from './leaver.ts';
import { codeOf, statusesOf, take } from './outcomes.ts';
import { digestOf, remoteAt, segment, writeOf } from './requests.ts';
import type { Side } from './side.ts';

export const provoker = (program: ProgramContext): Promise<object> => provoke(program, provokerActs);
export const partner = (program: ProgramContext): Promise<JsonValue> => accompany(program, partnerActs);

const bufferBytes = 65_536;
const requestCount = 12;

/** Everything held on this host: by the driver, and of physical memory. */
function takenOn({ program }: Side): Record<string, number> {
  const [device] = program.verbs.devices;
  return {
    ...device!.resourceCounts(),
    frames: program.host.frames.usedCount - program.host.mm.residentBytes / 4096,
  };
}

const hasSame = (left: object, right: object): boolean => JSON.stringify(left) === JSON.stringify(right);

/** Twelve WRITEs of 64 KiB take 240 µs at least; deregistration takes 40. */
function postMany(side: Side, pair: Awaited<ReturnType<Side['pair']>>): void {
  side.write(pair.buffer, new Uint8Array(bufferBytes).fill(0xa5));
  for (let index = 0; index < requestCount; index++)
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, bufferBytes)], remoteAt(pair, 0), { wrId: index }));
}

/** Statuses in order, each run of equal ones once; and whether each request completed once. */
async function endings(pair: Awaited<ReturnType<Side['pair']>>): Promise<Record<string, JsonValue>> {
  const taken = await take(pair.sendCq, requestCount);
  const statuses = statusesOf(taken);
  return {
    runs: statuses.filter((status, index) => status !== statuses[index - 1]),
    failures: statuses.filter((status) => status !== 'SUCCESS' && status !== 'WR_FLUSH_ERR').length,
    isInOrder: taken.every(({ wrId }, index) => wrId === index),
  };
}

async function deregisteredLocally(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes });
  postMany(side, pair);
  await deregMr(pair.buffer.mr);
  const told = { ...(await endings(pair)), state: await side.stateOf(pair), events: await side.events() };
  await side.barrier(`${name} done`);
  await destroyQp(pair.qp);
  return told;
}

async function deregisteredLocallyPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes });
  await side.barrier(`${name} done`);
  return { state: await side.stateOf(pair), events: await side.events() };
}

async function deregisteredRemotely(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes });
  await side.barrier(`${name} begins`);
  postMany(side, pair);
  const told = { ...(await endings(pair)), state: await side.stateOf(pair), events: await side.events() };
  await side.barrier(`${name} done`);
  await side.closePair(pair);
  return told;
}

/** Deregistered memory is not written any more: cleared at once, it stays clear. */
async function deregisteredRemotelyPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes });
  await side.barrier(`${name} begins`);
  await deregMr(pair.buffer.mr);
  const wasWritten = side.read(pair.buffer, bufferBytes).some((byte) => byte === 0xa5);
  side.write(pair.buffer, new Uint8Array(bufferBytes));
  await side.barrier(`${name} done`);
  const isClear = digestOf(side.read(pair.buffer, bufferBytes)) === digestOf(new Uint8Array(bufferBytes));
  return { wasWritten, isClear, state: await side.stateOf(pair), events: await side.events() };
}

/** Starts and ends the leaver (leaver.ts); nothing of it is left. */
async function processEnded(side: Side): Promise<JsonValue> {
  const before = takenOn(side);
  await untilGone(side.program);
  const after = takenOn(side);
  return { isGivenBack: hasSame(before, after), ...(hasSame(before, after) ? {} : { before, after }) };
}

/** RLIMIT_MEMLOCK is 1 MiB on this machine. */
async function pinLimit(side: Side): Promise<JsonValue> {
  const { memory } = side.program;
  const bytes = 2 ** 20;
  const address = memory.map(bytes);
  const before = takenOn(side);
  const pinned = memory.process.space.pinnedBytes;
  const tooMuch = await codeOf(regMr(side.pd, address, bytes, allAccess));
  const isUnchanged = hasSame(takenOn(side), before) && memory.process.space.pinnedBytes === pinned;
  // Requests that fit succeed; then each object that needs a page fails, and is released again.
  const fits = await regMr(side.pd, address, bytes - pinned - 4096, allAccess);
  const oneMore = await codeOf(regMr(side.pd, address, 4097, allAccess));
  const cq = await codeOf(createCq(side.context, 1000));
  const srq = await codeOf(createSrq(side.pd, { attr: { maxWr: 1000, maxSge: 4 } }));
  await deregMr(fits);
  const again = await regMr(side.pd, address, 2 ** 19, allAccess);
  await deregMr(again);
  const isGivenBack = hasSame(takenOn(side), before) && memory.process.space.pinnedBytes === pinned;
  return { tooMuch, isUnchanged, oneMore, cq, srq, isGivenBack };
}

/** Allocates all of the host's memory, to the last frame. */
function takeAllMemory({ program }: Side): number[] {
  const { process } = program.memory;
  const taken: number[] = [];
  for (const length of [2 ** 20, 4096]) {
    for (let address = process.mapQueue(length); address >= 0; address = process.mapQueue(length))
      taken.push(address);
    taken.push(-length);
  }
  return taken;
}

function giveMemoryBack({ program }: Side, taken: readonly number[]): void {
  let pending: number[] = [];
  for (const entry of taken) {
    if (entry >= 0) pending.push(entry);
    else {
      for (const address of pending) program.memory.unmap(address, -entry);
      pending = [];
    }
  }
}

async function outOfMemory(side: Side): Promise<JsonValue> {
  const { context, pd, program } = side;
  const sendCq = await createCq(context, 8);
  const address = program.memory.process.mapQueue(8192);
  const before = takenOn(side);
  const hoard = takeAllMemory(side);
  const hoarded = takenOn(side);
  const cap = { maxSendWr: 64, maxRecvWr: 64, maxSendSge: 2, maxRecvSge: 2 };
  const codes = {
    cq: await codeOf(createCq(context, 100)),
    qp: await codeOf(createQp(pd, { sendCq, recvCq: sendCq, cap, qpType: IBV_QPT_RC })),
    srq: await codeOf(createSrq(pd, { attr: { maxWr: 16, maxSge: 1 } })),
    // Needs no new page: its pages are present, and the device's tables have room.
    mr: await codeOf(regMr(pd, address, 8192, allAccess).then(deregMr)),
  };
  const isUnchanged = hasSame(takenOn(side), hoarded);
  giveMemoryBack(side, hoard);
  const isGivenBack = hasSame(takenOn(side), before);
  const again = await codeOf(createCq(context, 100).then(destroyCq));
  await destroyCq(sendCq);
  return { ...codes, isUnchanged, isGivenBack, again };
}

/** Creates objects until one fails, then releases one and creates one more. */
async function exhaust<T>(make: () => Promise<T>, destroy: (made: T) => Promise<void>): Promise<JsonValue> {
  const made: T[] = [];
  let code = 'none';
  while (made.length < 3000 && code === 'none') {
    try {
      made.push(await make());
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      code = error.code;
    }
  }
  const count = made.length;
  await destroy(made.pop()!);
  const again = await codeOf(make().then((one) => made.push(one)));
  for (const one of made) await destroy(one);
  return { code, again, count };
}

/** The tables of this machine's device are small; see the spec. */
async function outOfIcm(side: Side): Promise<JsonValue> {
  const { context, pd, program } = side;
  const before = takenOn(side);
  const mapped = program.memory.map(2 ** 20);
  const cq = await createCq(context, 8);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const newQp = async (): Promise<IbvQp> => {
    const qp = await createQp(pd, { sendCq: cq, recvCq: cq, cap: { ...cap }, qpType: IBV_QPT_RC });
    try {
      await toInit(qp, allAccess);
    } catch (error) {
      await destroyQp(qp);
      throw error;
    }
    return qp;
  };
  const told = {
    cqs: await exhaust<IbvCq>(() => createCq(context, 1), destroyCq),
    srqs: await exhaust<IbvSrq>(() => createSrq(pd, { attr: { maxWr: 1, maxSge: 1 } }), destroySrq),
    regions: await exhaust<IbvMr>(() => regMr(pd, mapped, 1, allAccess), deregMr),
    translations: await exhaust<IbvMr>(() => regMr(pd, mapped, 2 ** 20, allAccess), deregMr),
    qps: await exhaust<IbvQp>(newQp, destroyQp),
    contexts: await exhaust(
      () => openDevice(getDeviceList(program.verbs)[0]!),
      (opened) => opened.kernel.close(context.cpu),
    ),
  };
  await destroyCq(cq);
  program.memory.unmap(mapped, 2 ** 20);
  const after = takenOn(side);
  return {
    ...told,
    isGivenBack: hasSame(after, before),
    ...(hasSame(after, before) ? {} : { before, after }),
  };
}

const provokerActs: Acts = {
  deregisteredLocally,
  deregisteredRemotely,
  processEnded,
  pinLimit,
  outOfMemory,
  outOfIcm,
};

const partnerActs: Readonly<Record<keyof typeof provokerActs, Act>> = {
  deregisteredLocally: deregisteredLocallyPartner,
  deregisteredRemotely: deregisteredRemotelyPartner,
  processEnded: idle,
  pinLimit: idle,
  outOfMemory: idle,
  outOfIcm: idle,
};
