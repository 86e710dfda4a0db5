/** Objects of a process: each mailbox equals what Linux sent for the same request, and nothing leaks. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CommandStatus } from '../abi/command-status.ts';
import { cqc } from '../abi/cqc.ts';
import { EventType, qpEqe, srqEqe } from '../abi/eqe.ts';
import { mpt } from '../abi/mpt.ts';
import { mttEntry } from '../abi/mtt.ts';
import { srqc } from '../abi/srqc.ts';
import type { Driver } from './driver.ts';
import type { CreateQp, KernelContext } from './kernel-verbs.ts';
import type { Answer, TestMachine } from './testing.ts';
import { goldenDevice, inputOf } from './testing-answers.ts';
import { captured, TestContext } from './testing-context.ts';
import type { TestProcess } from './testing-process.ts';
import { AccessFlag, AsyncEventType, QpAttrMask as M, QpStateVerb, SrqAttrMask } from './uapi.ts';

const { IBV_QPS_INIT } = QpStateVerb;
const allLocal = AccessFlag.IBV_ACCESS_LOCAL_WRITE;

let opened: TestContext;
let machine: TestMachine;
let driver: Driver;
let process: TestProcess;
let context: KernelContext;

const open = async (): Promise<void> => {
  opened = await TestContext.open();
  ({ machine, driver, process, context } = opened);
};
beforeEach(open);

const createCq = (entries?: number): Promise<number> => opened.createCq(entries);
const createQp = (overrides?: Partial<CreateQp>): ReturnType<TestContext['createQp']> =>
  opened.createQp(overrides);
const connected = (): Promise<number> => opened.connected();

describe('memory regions', () => {
  it('golden captures: are created with the flags, length and rights of Linux', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const address = process.map(4096);
    await context.regMr(machine.cpu, { pd, address, lengthBytes: 4096, access: allLocal });
    const expected = mpt.decode(inputOf(captured('b-rc-pingpong', 'SW2HW_MPT')));
    const actual = mpt.decode(machine.last('SW2HW_MPT').input);
    // Addresses, numbers and values derived from them differ between runs.
    const own = { keyIndexForm: 0, pd: 0, startAddress: 0n, mttAddress: 0, logPageSize: 0 };
    expect({ ...actual, ...own }).toEqual({ ...expected, ...own });
    expect(actual.startAddress).toBe(BigInt(address));
  });

  it('sheet 5.6: translate with entries written into ICM, present bit set', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const address = process.map(4096 * 3);
    const firstPage = address / 4096;
    // Frames 100, 300 and 200: no two are neighbours, so the page is 4 KiB and there are three entries.
    [100, 300, 200].forEach((frame, at) => {
      process.scattered.set(firstPage + at, frame * 4096);
    });
    await context.regMr(machine.cpu, { pd, address, lengthBytes: 4096 * 3, access: allLocal });
    const entry = mpt.decode(machine.last('SW2HW_MPT').input);
    expect(entry.logPageSize).toBe(12);
    const base = driver.device.profile.bases.mtt + entry.mttAddress;
    const entries = [0, 8, 16].map((at) => mttEntry.decode(machine.memory, machine.icmAddress(base + at)));
    expect(entries).toEqual(
      [100, 300, 200].map((frame) => ({ pageAddress: BigInt(frame * 4096), present: 1 })),
    );
  });

  it('sheet 7.1: have one key for both sides: the slot with its generation, rotated left by 8', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const request = { pd, address: process.map(4096), lengthBytes: 100, access: allLocal };
    const first = await context.regMr(machine.cpu, request);
    // The capturing device reserves 16 slots.
    expect(first).toMatchObject({ lkey: 0x1000, rkey: 0x1000 });
    await context.deregMr(machine.cpu, first.handle);
    const second = await context.regMr(machine.cpu, request);
    // Slot 16 again, one generation on: (0x10 + 0x80000) << 8.
    expect(second.lkey).toBe(0x0800_1000);
  });

  it('cost a fixed part and one per page, in both directions, charged to pin', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const address = process.map(4096 * 5);
    const region = await context.regMr(machine.cpu, {
      pd,
      address: address + 100,
      lengthBytes: 4096 * 4,
      access: allLocal,
    });
    // 16 KiB from byte 100 touch 5 pages: 1000 + 5 × 7.
    expect(machine.charged.get('pin')).toBe(1035);
    await context.deregMr(machine.cpu, region.handle);
    expect(machine.charged.get('pin')).toBe(1035 + 500 + 5 * 3);
    expect(process.pinnedPages).toBe(0);
  });

  it.each([
    ['a length of 0', { lengthBytes: 0 }, 'EINVAL'],
    ['memory that is not mapped', { address: 4096 }, 'EFAULT'],
    ['a PD that is none', { pd: 999 }, 'EINVAL'],
    ['remote write without local write', { access: AccessFlag.IBV_ACCESS_REMOTE_WRITE }, 'EINVAL'],
    ['unknown access bits', { access: 1 << 12 }, 'EINVAL'],
  ])('reject %s and keep nothing', async (_what, wrong, code) => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const request = { pd, address: process.map(4096), lengthBytes: 64, access: allLocal, ...wrong };
    await expect(context.regMr(machine.cpu, request)).rejects.toMatchObject({ code });
    expect(process.pinnedPages).toBe(0);
    expect(machine.commands).toEqual([]);
  });

  it('turn RLIMIT_MEMLOCK into ENOMEM and leave pinned pages alone', async () => {
    const poor = machine.newProcess(2);
    const own = await driver.openDevice(machine.cpu, poor);
    const pd = (await own.allocPd(machine.cpu)).handle;
    const request = { pd, address: poor.map(4096), lengthBytes: 4096, access: allLocal };
    await own.regMr(machine.cpu, request);
    const tooMuch = { ...request, address: poor.map(8192), lengthBytes: 8192 };
    await expect(own.regMr(machine.cpu, tooMuch)).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(poor.pinnedPages).toBe(1);
  });

  it('release everything when the device refuses', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    machine.script = (command) => (command.name === 'SW2HW_MPT' ? { status: 0x0c } : goldenDevice(command));
    const before = driver.resourceCounts();
    const request = { pd, address: process.map(4096), lengthBytes: 64, access: allLocal };
    await expect(context.regMr(machine.cpu, request)).rejects.toMatchObject({ code: 'ENFILE' });
    expect(driver.resourceCounts()).toEqual(before);
    expect(process.pinnedPages).toBe(0);
  });

  it('turn a host without frames for ICM into ENOMEM', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    // 40000 scattered pages need 40000 entries, more than the 32768 of the chunk that is mapped.
    const address = process.map(4096);
    const first = address / 4096;
    for (let page = 0; page < 40_000; page++) process.scattered.set(first + page, (page * 2 + 1) * 4096);
    machine.framesLeft = machine.framesTaken;
    const before = driver.resourceCounts();
    const request = { pd, address, lengthBytes: 40_000 * 4096, access: allLocal };
    await expect(context.regMr(machine.cpu, request)).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(driver.resourceCounts()).toEqual(before);
    expect(process.pinnedPages).toBe(0);
  });
});

describe('completion queues', () => {
  it('golden captures: are created as in Linux', async () => {
    await createCq(512);
    const expected = cqc.decode(inputOf(captured('b-rc-pingpong', 'SW2HW_CQ')));
    const actual = cqc.decode(machine.last('SW2HW_CQ').input);
    const own = { uarPage: 0, mttAddress: 0, doorbellRecordAddress: 0n, logPageSize4k: 0 };
    expect({ ...actual, ...own }).toEqual({ ...expected, ...own });
    expect(machine.last('SW2HW_CQ')).toMatchObject({ inputModifier: 0x80, opcodeModifier: 0 });
  });

  it('golden captures: are resized with a context that holds only the new ring, as in Linux', async () => {
    const cq = await createCq(4);
    await context.resizeCq(machine.cpu, { cq, entries: 2, bufferAddress: process.map(4096) });
    const actual = machine.last('MODIFY_CQ');
    const expected = captured('j-resize-cq', 'MODIFY_CQ');
    const own = { mttAddress: 0, logPageSize4k: 0 };
    expect({ ...cqc.decode(actual.input), ...own }).toEqual({ ...cqc.decode(inputOf(expected)), ...own });
    expect(actual.opcodeModifier).toBe(expected.op_mod);
  });

  it('are destroyed without a mailbox, and only when no QP uses them', async () => {
    const cq = await createCq();
    const qp = await createQp({ sendCq: cq, receiveCq: cq });
    await expect(context.destroyCq(machine.cpu, cq)).rejects.toMatchObject({ code: 'EBUSY' });
    await context.destroyQp(machine.cpu, qp.handle);
    await context.destroyCq(machine.cpu, cq);
    expect(machine.last('HW2SW_CQ')).toMatchObject({ opcodeModifier: 1, inParam: 0n, outParam: 0n });
  });

  it('wake the thread that waits on their channel, once per event', async () => {
    const channel = await context.createCompletionChannel(machine.cpu);
    const request = {
      entries: 16,
      bufferAddress: process.map(512),
      doorbellRecordAddress: process.map(4096),
      channel,
      completionVector: 1,
    };
    const cq = await context.createCq(machine.cpu, request);
    const waiting = context.getCqEvent(machine.cpu, channel);
    await machine.raiseCompletion(driver.device.completionEqs[1]!.eqn, cq.cqn);
    expect(await waiting).toBe(cq.handle);
    expect(await context.getCqEvent(machine.cpu, channel, 1000)).toBe(-1);
    await machine.raiseCompletion(driver.device.completionEqs[1]!.eqn, cq.cqn);
    expect(await context.getCqEvent(machine.cpu, channel)).toBe(cq.handle);
    expect(await context.destroyCq(machine.cpu, cq.handle)).toBe(2);
  });

  it.each([3, 2 ** 23])('of %i entries are rejected', async (entries) => {
    const request = {
      entries,
      bufferAddress: process.map(4096),
      doorbellRecordAddress: process.map(4096),
      channel: -1,
      completionVector: 0,
    };
    await expect(context.createCq(machine.cpu, request)).rejects.toMatchObject({ code: 'EINVAL' });
    expect(process.pinnedPages).toBe(0);
  });
});

describe('shared receive queues', () => {
  it('sheet 3.16: arm their limit and report the remaining one', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const srq = await context.createSrq(machine.cpu, {
      pd,
      xrcd: -1,
      cq: -1,
      wqeCount: 16,
      wqeStrideBytes: 32,
      bufferAddress: process.map(512),
      doorbellRecordAddress: process.map(4096),
    });
    await context.modifySrq(machine.cpu, srq.handle, { srqLimit: 5 }, SrqAttrMask.IBV_SRQ_LIMIT);
    expect(machine.last('ARM_SRQ')).toMatchObject({ inParam: 5n, inputModifier: srq.srqn });
    const output = srqc.encode({ limitWatermark: 5 });
    machine.script = (command) => (command.name === 'QUERY_SRQ' ? { output } : goldenDevice(command));
    expect(await context.querySrq(machine.cpu, srq.handle)).toEqual({ maxWr: 15, maxSge: 1, srqLimit: 5 });
    const tooHigh = context.modifySrq(machine.cpu, srq.handle, { srqLimit: 16 }, SrqAttrMask.IBV_SRQ_LIMIT);
    await expect(tooHigh).rejects.toMatchObject({ code: 'EINVAL' });
    await machine.raise(machine.asyncEq, (at, owner) =>
      srqEqe.encodeInto({ type: EventType.SRQ_LIMIT, srqn: srq.srqn, owner }, machine.memory, at),
    );
    expect(await context.getAsyncEvent(machine.cpu)).toEqual({
      eventType: AsyncEventType.IBV_EVENT_SRQ_LIMIT_REACHED,
      element: 'srq',
      handle: srq.handle,
    });
  });
});

describe('asynchronous events', () => {
  it('reach the context that owns the QP, and no other', async () => {
    const other = await driver.openDevice(machine.cpu, machine.newProcess());
    const { handle, qpn } = await createQp();
    await machine.raise(machine.asyncEq, (at, owner) =>
      qpEqe.encodeInto({ type: EventType.WQ_ACCESS_ERROR, qpn, owner }, machine.memory, at),
    );
    expect(await context.getAsyncEvent(machine.cpu, 1000)).toEqual({
      eventType: AsyncEventType.IBV_EVENT_QP_ACCESS_ERR,
      element: 'qp',
      handle,
    });
    expect(await other.getAsyncEvent(machine.cpu, 1000)).toBeUndefined();
  });

  it('of a port reach every context', async () => {
    const other = await driver.openDevice(machine.cpu, machine.newProcess());
    await machine.raisePort(1, 1);
    const expected = { eventType: AsyncEventType.IBV_EVENT_PORT_ERR, element: 'port', handle: 1 };
    expect(await context.getAsyncEvent(machine.cpu, 1000)).toEqual(expected);
    expect(await other.getAsyncEvent(machine.cpu, 1000)).toEqual(expected);
  });

  it('of a destroyed QP are dropped and counted', async () => {
    await machine.raise(machine.asyncEq, (at, owner) =>
      qpEqe.encodeInto({ type: EventType.WQ_ACCESS_ERROR, qpn: 0x999, owner }, machine.memory, at),
    );
    expect(driver.device.router.droppedEvents).toBe(1);
  });
});

describe('the end of a process', () => {
  it('golden capture j-rereg-mr: re-registers by HW2SW_MPT, an edit in the page of ICM, and SYNC_TPT', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const address = process.map(8192);
    const { handle } = await context.regMr(machine.cpu, { pd, address, lengthBytes: 64, access: allLocal });
    machine.commands.length = 0;
    const translation = { address: address + 4096, lengthBytes: 128 };
    await context.reregMr(machine.cpu, { region: handle, pd: -1, access: undefined, translation });
    expect(machine.names()).toEqual(['HW2SW_MPT', 'SYNC_TPT']);
    expect(process.pinnedPages).toBe(1);
  });

  it('destroys remaining objects, users before what they use, and releases all numbers and pages', async () => {
    const before = driver.resourceCounts();
    const frames = machine.framesTaken;
    const own = process;
    const mapped = frames;
    await connected();
    const pd = (await context.allocPd(machine.cpu)).handle;
    await context.regMr(machine.cpu, { pd, address: own.map(4096), lengthBytes: 64, access: allLocal });
    await context.createCompletionChannel(machine.cpu);
    machine.commands.length = 0;
    await context.close(machine.cpu);
    const closing = machine.names().filter((name) => name !== 'UNMAP_ICM');
    expect(closing).toEqual(['2RST_QP', 'HW2SW_CQ', 'HW2SW_MPT']);
    expect(process.pinnedPages).toBe(0);
    expect(process.mappedDevicePages).toBe(0);
    expect(driver.resourceCounts()).toEqual({ ...before, contexts: 0, uars: 0 });
    expect(mapped).toBeGreaterThan(0);
  });

  it('makes later calls fail with EBADF', async () => {
    await context.close(machine.cpu);
    await expect(context.allocPd(machine.cpu)).rejects.toMatchObject({ code: 'EBADF' });
  });

  it('is part of removal: nothing is counted afterwards', async () => {
    await connected();
    await driver.remove(machine.cpu);
    expect(Object.values(driver.resourceCounts()).every((count) => count === 0)).toBe(true);
    expect(process.pinnedPages).toBe(0);
    // The only host frames left are those that the specs' process has mapped itself.
    expect(machine.icmPageCount).toBe(0);
  });
});

describe('queries', () => {
  it('sheet 7.6: read port, GID and P_Key from the management agent', async () => {
    const port = await context.queryPort(machine.cpu, 1);
    expect(port).toMatchObject({
      state: 4,
      lid: 1,
      gidTblLen: 128,
      pkeyTblLen: 128,
      activeSpeed: 4,
      activeWidth: 2,
    });
    const zero = await context.queryGid(machine.cpu, 1, 0);
    expect(Buffer.from(zero).toString('hex')).toBe('fe800000000000000002c90300a1b2c1');
    expect(await context.queryPkey(machine.cpu, 1, 0)).toBe(0xffff);
    await expect(context.queryPort(machine.cpu, 2)).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(context.queryGid(machine.cpu, 1, 128)).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('report limits as ibv_devinfo prints them', async () => {
    const attr = await context.queryDevice(machine.cpu);
    expect(attr).toMatchObject({ fwVer: '2.42.5000', physPortCnt: 1, maxQpRdAtom: 16, maxQpInitRdAtom: 16 });
    expect(attr.nodeGuid.toString(16)).toBe('2c90300a1b2c0');
  });

  it('are system calls', async () => {
    machine.systemCalls.length = 0;
    await context.queryPkey(machine.cpu, 1, 0);
    expect(machine.systemCalls).toEqual(['ibv_query_pkey']);
  });
});

/** The frames left after removal with an open QP: those of the process itself, which this bench does not free. */
async function framesLeftBy(answer: Answer | undefined): Promise<number> {
  const { handle } = await createQp();
  const mask = M.IBV_QP_STATE | M.IBV_QP_PKEY_INDEX | M.IBV_QP_PORT | M.IBV_QP_ACCESS_FLAGS;
  const attr = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 };
  await context.modifyQp(machine.cpu, handle, attr, mask);
  const script = machine.script;
  machine.script = (command) => answer ?? script(command);
  // One step of the device's bring-down cannot succeed, and reports it; all resources are released nevertheless.
  await driver.remove(machine.cpu).catch(() => undefined);
  expect(Object.values(driver.resourceCounts()).every((count) => count === 0)).toBe(true);
  expect(process.pinnedPages).toBe(0);
  return machine.framesTaken;
}

describe('a removed device', () => {
  it.each<[string, Answer]>([
    ['does not answer any more', { isLost: true }],
    ['was reset', { status: CommandStatus.BAD_SYS_STATE }],
  ])('that %s keeps nothing: as much is given back as by one that is well', async (_what, answer) => {
    const left = await framesLeftBy(answer);
    await open();
    expect(left).toBe(await framesLeftBy(undefined));
  });

  it('sheet 3.3: that refuses to release an object is reset and probed again', async () => {
    const cq = await createCq();
    machine.script = (command) =>
      command.name === 'HW2SW_CQ' ? { status: CommandStatus.RESOURCE_BUSY } : goldenDevice(command);
    await context.destroyCq(machine.cpu, cq);
    machine.script = goldenDevice;
    expect(await context.getAsyncEvent(machine.cpu)).toMatchObject({
      eventType: AsyncEventType.IBV_EVENT_DEVICE_FATAL,
      element: 'device',
    });
    await vi.waitFor(() => expect(driver.recoveryCounts()).toMatchObject({ deaths: 1, restarts: 1 }));
    expect(driver.recoveryCounts().lastReason).toContain('HW2SW_CQ');
    await expect(context.queryDevice(machine.cpu)).rejects.toMatchObject({ code: 'EIO' });
    await context.close(machine.cpu);
    const again = await driver.openDevice(machine.cpu, process);
    await again.queryDevice(machine.cpu);
  });
});
