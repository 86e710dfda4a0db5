/** Objects of a process: what reaches the device equals what Linux sent for the same request, and nothing leaks. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CommandStatus } from '../abi/command-status.ts';
import { cqc } from '../abi/cqc.ts';
import { EventType, qpEqe, srqEqe } from '../abi/eqe.ts';
import { mpt } from '../abi/mpt.ts';
import { mttEntry } from '../abi/mtt.ts';
import { qpMailbox } from '../abi/qpc.ts';
import { srqc } from '../abi/srqc.ts';
import type { HcrLine } from '../abi/testing/golden.ts';
import { defaultsOf } from '../base/parameter.ts';
import { Driver } from './driver.ts';
import type { CreateQp, KernelContext } from './kernel-verbs.ts';
import { driverParameters } from './parameters.ts';
import { type Answer, TestMachine } from './testing.ts';
import { goldenCommands, goldenDevice, inputOf } from './testing-answers.ts';
import type { TestProcess } from './testing-process.ts';
import { AccessFlag, AsyncEventType, QpAttrMask as M, QpStateVerb, QpTypeVerb, SrqAttrMask } from './uapi.ts';

const { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR } = QpStateVerb;
const { IBV_QPT_RC, IBV_QPT_UD } = QpTypeVerb;
const allLocal = AccessFlag.IBV_ACCESS_LOCAL_WRITE;

let machine: TestMachine;
let driver: Driver;
let process: TestProcess;
let context: KernelContext;

beforeEach(async () => {
  machine = new TestMachine();
  machine.script = goldenDevice;
  driver = new Driver(machine.platform, { ...defaultsOf(driverParameters), completionEqEntries: 128 });
  await driver.probe(machine.cpu);
  process = machine.newProcess();
  context = await driver.openDevice(machine.cpu, process);
  machine.commands.length = 0;
});

/** The first command of this name in a capture. */
const captured = (file: string, op: string, inModifier?: string): HcrLine =>
  goldenCommands(file).find((line) => line.op === op && (inModifier ?? line.in_mod) === line.in_mod)!;

async function createCq(entries = 512): Promise<number> {
  const request = {
    entries,
    bufferAddress: process.map(entries * 32),
    doorbellRecordAddress: process.map(4096),
    channel: -1,
    completionVector: 0,
  };
  return (await context.createCq(machine.cpu, request)).handle;
}

async function createQp(overrides: Partial<CreateQp> = {}): Promise<{ handle: number; qpn: number }> {
  const pd = overrides.pd ?? (await context.allocPd(machine.cpu)).handle;
  const sendCq = overrides.sendCq ?? (await createCq());
  return context.createQp(machine.cpu, {
    pd,
    type: IBV_QPT_RC,
    sendCq,
    receiveCq: sendCq,
    srq: -1,
    logSendWqes: 6,
    logSendStride: 6,
    receiveWqes: 512,
    logReceiveStride: 4,
    bufferAddress: process.map(4096 * 3),
    bufferBytes: 4096 * 3,
    doorbellRecordAddress: process.map(4096),
    cap: { maxSendWr: 1, maxRecvWr: 500, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 },
    ...overrides,
  });
}

describe('memory regions', () => {
  it('are handed over with the flags, length and rights of Linux', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const address = process.map(4096);
    await context.regMr(machine.cpu, { pd, address, lengthBytes: 4096, access: allLocal });
    const expected = mpt.decode(inputOf(captured('b-rc-pingpong', 'SW2HW_MPT')));
    const actual = mpt.decode(machine.last('SW2HW_MPT').input);
    // Addresses, numbers and what follows from them are the run's own.
    const own = { keyIndexForm: 0, pd: 0, startAddress: 0n, mttAddress: 0, logPageSize: 0 };
    expect({ ...actual, ...own }).toEqual({ ...expected, ...own });
    expect(actual.startAddress).toBe(BigInt(address));
  });

  it('translate with entries written into ICM, present bit set', async () => {
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

  it('have one key for both sides: the slot with its generation, rotated left by 8', async () => {
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

  it('cost a fixed part and one per page, both ways, charged to pin', async () => {
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
  ])('refuse %s and keep nothing', async (_what, wrong, code) => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const request = { pd, address: process.map(4096), lengthBytes: 64, access: allLocal, ...wrong };
    await expect(context.regMr(machine.cpu, request)).rejects.toMatchObject({ code });
    expect(process.pinnedPages).toBe(0);
    expect(machine.commands).toEqual([]);
  });

  it('turn RLIMIT_MEMLOCK into ENOMEM and leave what is pinned', async () => {
    const poor = machine.newProcess(2);
    const own = await driver.openDevice(machine.cpu, poor);
    const pd = (await own.allocPd(machine.cpu)).handle;
    const request = { pd, address: poor.map(4096), lengthBytes: 4096, access: allLocal };
    await own.regMr(machine.cpu, request);
    const tooMuch = { ...request, address: poor.map(8192), lengthBytes: 8192 };
    await expect(own.regMr(machine.cpu, tooMuch)).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(poor.pinnedPages).toBe(1);
  });

  it('give everything back when the device refuses', async () => {
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
  it('are handed over as Linux does', async () => {
    await createCq(512);
    const expected = cqc.decode(inputOf(captured('b-rc-pingpong', 'SW2HW_CQ')));
    const actual = cqc.decode(machine.last('SW2HW_CQ').input);
    const own = { uarPage: 0, mttAddress: 0, doorbellRecordAddress: 0n, logPageSize4k: 0 };
    expect({ ...actual, ...own }).toEqual({ ...expected, ...own });
    expect(machine.last('SW2HW_CQ')).toMatchObject({ inputModifier: 0x80, opcodeModifier: 0 });
  });

  it('are resized with a context that holds only the new ring, as Linux does', async () => {
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

  it.each([3, 2 ** 23])('of %i entries are refused', async (entries) => {
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

/** Fields of a QP mailbox that belong to the run: addresses, numbers, PSNs. */
function comparable(bytes: Uint8Array): unknown {
  const { optionalParameterMask, context: fields } = qpMailbox.decode(bytes);
  const { pd, uarPage, localQpn, remoteQpn, sendCqn, receiveCqn, srqn, ...rest } = fields;
  const { nextSendPsn, nextReceivePsn, mttAddress, logPageSize4k, doorbellRecordAddress, ...same } = rest;
  const { remoteGid, ...path } = same.primaryPath;
  return { optionalParameterMask, same: { ...same, primaryPath: path } };
}

const gid = new Uint8Array(16).fill(0xfe);
const toInit = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 };
const initMask = M.IBV_QP_STATE | M.IBV_QP_PKEY_INDEX | M.IBV_QP_PORT | M.IBV_QP_ACCESS_FLAGS;
const toRtr = {
  qpState: IBV_QPS_RTR,
  pathMtu: 3,
  destQpNum: 0x209,
  rqPsn: 0x3f6d44,
  maxDestRdAtomic: 1,
  minRnrTimer: 12,
  ahAttr: {
    isGlobal: 1,
    dlid: 1,
    sl: 0,
    srcPathBits: 0,
    portNum: 1,
    grh: { dgid: gid, flowLabel: 0, sgidIndex: 0, hopLimit: 1, trafficClass: 0 },
  },
} as const;
const rtrMask =
  M.IBV_QP_STATE |
  M.IBV_QP_AV |
  M.IBV_QP_PATH_MTU |
  M.IBV_QP_DEST_QPN |
  M.IBV_QP_RQ_PSN |
  M.IBV_QP_MAX_DEST_RD_ATOMIC |
  M.IBV_QP_MIN_RNR_TIMER;
const toRts = { qpState: IBV_QPS_RTS, timeout: 14, retryCnt: 7, rnrRetry: 7, sqPsn: 1, maxRdAtomic: 1 };
const rtsMask =
  M.IBV_QP_STATE |
  M.IBV_QP_TIMEOUT |
  M.IBV_QP_RETRY_CNT |
  M.IBV_QP_RNR_RETRY |
  M.IBV_QP_SQ_PSN |
  M.IBV_QP_MAX_QP_RD_ATOMIC;

async function connected(): Promise<number> {
  const { handle } = await createQp();
  await context.modifyQp(machine.cpu, handle, toInit, initMask);
  await context.modifyQp(machine.cpu, handle, toRtr, rtrMask);
  await context.modifyQp(machine.cpu, handle, toRts, rtsMask);
  return handle;
}

describe('queue pairs', () => {
  it('go through INIT, RTR and RTS with the mailboxes of Linux (rc_pingpong)', async () => {
    await connected();
    for (const op of ['RST2INIT_QP', 'INIT2RTR_QP', 'RTR2RTS_QP'] as const) {
      const expected = inputOf(captured('b-rc-pingpong', op), 0x100);
      expect(comparable(machine.last(op).input), op).toEqual(comparable(expected));
    }
    expect(machine.last('INIT2RTR_QP').inputModifier).toBe(0x208);
  });

  it('carry remote rights and read resources as ib_write_bw, ib_read_bw and ib_atomic_lat set them', async () => {
    const cases = [
      ['d-write-bw-64', AccessFlag.IBV_ACCESS_REMOTE_WRITE, 0, 0],
      ['f-read-bw-4096', AccessFlag.IBV_ACCESS_REMOTE_READ, 16, 16],
      ['h-atomic-lat-cmp-swap', AccessFlag.IBV_ACCESS_REMOTE_ATOMIC, 16, 16],
    ] as const;
    for (const [file, qpAccessFlags, maxDestRdAtomic, maxRdAtomic] of cases) {
      const { handle } = await createQp({ receiveWqes: 1 });
      await context.modifyQp(machine.cpu, handle, { ...toInit, qpAccessFlags }, initMask);
      const ahAttr = { dlid: 1, isGlobal: 0, portNum: 1 };
      const rtr = { ...toRtr, pathMtu: 4, maxDestRdAtomic, ahAttr } as const;
      await context.modifyQp(machine.cpu, handle, rtr, rtrMask);
      await context.modifyQp(machine.cpu, handle, { ...toRts, maxRdAtomic }, rtsMask);
      for (const op of ['RST2INIT_QP', 'INIT2RTR_QP', 'RTR2RTS_QP'] as const) {
        const expected = comparable(inputOf(captured(file, op), 0x100));
        expect(comparable(machine.last(op).input), `${file} ${op}`).toEqual(expected);
      }
    }
  });

  it('of type UD carry the Q_Key, the largest MTU and the port (ud_pingpong)', async () => {
    const { handle } = await createQp({ type: IBV_QPT_UD, logSendWqes: 5, logSendStride: 7 });
    const attr = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qkey: 0x1111_1111 };
    const mask = M.IBV_QP_STATE | M.IBV_QP_PKEY_INDEX | M.IBV_QP_PORT | M.IBV_QP_QKEY;
    await context.modifyQp(machine.cpu, handle, attr, mask);
    await context.modifyQp(machine.cpu, handle, { qpState: IBV_QPS_RTR }, M.IBV_QP_STATE);
    const rts = { qpState: IBV_QPS_RTS, sqPsn: 5 };
    await context.modifyQp(machine.cpu, handle, rts, M.IBV_QP_STATE | M.IBV_QP_SQ_PSN);
    for (const op of ['RST2INIT_QP', 'INIT2RTR_QP', 'RTR2RTS_QP'] as const) {
      const expected = comparable(inputOf(captured('i-ud-pingpong', op), 0x100));
      expect(comparable(machine.last(op).input), op).toEqual(expected);
    }
  });

  it('on a shared queue name it and have no receive queue (srq_pingpong)', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const srq = await context.createSrq(machine.cpu, {
      pd,
      wqeCount: 512,
      wqeStrideBytes: 32,
      bufferAddress: process.map(512 * 32),
      doorbellRecordAddress: process.map(4096),
    });
    const expectedSrq = srqc.decode(inputOf(captured('i-srq-pingpong', 'SW2HW_SRQ')));
    const own = { srqn: 0, pd: 0, mttAddress: 0, doorbellRecordAddress: 0n, logPageSize4k: 0 };
    const actualSrq = srqc.decode(machine.last('SW2HW_SRQ').input);
    expect({ ...actualSrq, ...own }).toEqual({ ...expectedSrq, ...own });
    const { handle } = await createQp({ pd, srq: srq.handle, receiveWqes: 0, doorbellRecordAddress: -1 });
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
    await context.modifyQp(machine.cpu, handle, toRtr, rtrMask);
    for (const op of ['RST2INIT_QP', 'INIT2RTR_QP'] as const) {
      const expected = comparable(inputOf(captured('i-srq-pingpong', op), 0x100));
      expect(comparable(machine.last(op).input), op).toEqual(expected);
    }
    expect(qpMailbox.decode(machine.last('RST2INIT_QP').input).context.srqn).toBe(srq.srqn);
    await expect(context.destroySrq(machine.cpu, srq.handle)).rejects.toMatchObject({ code: 'EBUSY' });
  });

  it.each([
    ['a transition that does not exist', { qpState: IBV_QPS_RTS }, rtsMask],
    ['a required attribute that is missing', toInit, initMask & ~M.IBV_QP_PORT],
    ['an attribute the transition does not take', { ...toInit, sqPsn: 1 }, initMask | M.IBV_QP_SQ_PSN],
    ['a port that is not there', { ...toInit, portNum: 3 }, initMask],
    ['a P_Key index beyond the table', { ...toInit, pkeyIndex: 500 }, initMask],
  ])('refuse %s, without a command and without a change', async (_what, attr, mask) => {
    const { handle } = await createQp();
    const before = machine.commands.length;
    await expect(context.modifyQp(machine.cpu, handle, attr, mask)).rejects.toMatchObject({ code: 'EINVAL' });
    expect(machine.commands).toHaveLength(before);
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
  });

  it.each([
    ['more reads than the device serves', { maxDestRdAtomic: 17 }],
    ['an MTU that does not exist', { pathMtu: 6 }],
    ['a PSN of 25 bits', { rqPsn: 2 ** 24 }],
  ])('refuse %s on the way to RTR', async (_what, wrong) => {
    const { handle } = await createQp();
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
    const attr = { ...toRtr, ...wrong } as typeof toRtr;
    await expect(context.modifyQp(machine.cpu, handle, attr, rtrMask)).rejects.toMatchObject({
      code: 'EINVAL',
    });
  });

  it('drain and come back, and ask for the event only when told to', async () => {
    const handle = await connected();
    const drain = { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 1 };
    const mask = M.IBV_QP_STATE | M.IBV_QP_EN_SQD_ASYNC_NOTIFY;
    await context.modifyQp(machine.cpu, handle, drain, mask);
    expect(machine.last('RTS2SQD_QP').inputModifier).toBe(0x8000_0208);
    await context.modifyQp(machine.cpu, handle, { qpState: IBV_QPS_RTS }, M.IBV_QP_STATE);
    expect(machine.names().at(-1)).toBe('SQD2RTS_QP');
  });

  it('go to ERR and to RESET from anywhere', async () => {
    const handle = await connected();
    await context.modifyQp(machine.cpu, handle, { qpState: IBV_QPS_ERR }, M.IBV_QP_STATE);
    await context.modifyQp(machine.cpu, handle, { qpState: IBV_QPS_RESET }, M.IBV_QP_STATE);
    expect(machine.names().slice(-2)).toEqual(['2ERR_QP', '2RST_QP']);
    expect(machine.last('2RST_QP')).toMatchObject({ opcodeModifier: 2, inParam: 0n });
  });

  it('keep their state when the device refuses a transition', async () => {
    const { handle } = await createQp();
    machine.script = (command) => (command.name === 'RST2INIT_QP' ? { status: 0x10 } : goldenDevice(command));
    await expect(context.modifyQp(machine.cpu, handle, toInit, initMask)).rejects.toMatchObject({
      code: 'EINVAL',
      status: 0x10,
    });
    machine.script = goldenDevice;
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
  });

  it('report what the device has', async () => {
    const handle = await connected();
    const output = qpMailbox.encode({
      context: {
        state: 6,
        nextSendPsn: 0x77,
        remoteQpn: 0x209,
        primaryPath: { remoteLid: 9, scheduleQueue: 0x83 },
      },
    });
    machine.script = (command) => (command.name === 'QUERY_QP' ? { output } : goldenDevice(command));
    const attr = await context.queryQp(machine.cpu, handle);
    expect(attr).toMatchObject({
      qpState: IBV_QPS_ERR,
      sqPsn: 0x77,
      destQpNum: 0x209,
      ahAttr: { dlid: 9, portNum: 1 },
    });
  });

  it('map 256 KiB of every table on demand, and unmap it with the last one', async () => {
    // 1024 QPs of 256 bytes fill one chunk of QPC; RDMARC has 512 bytes per QP, so 512 QPs a chunk.
    const chunks = driver.device.icm.rdmarc.mappedChunks;
    const first = await createQp();
    expect(driver.device.icm.rdmarc.mappedChunks).toBe(chunks + 1);
    expect(machine.last('MAP_ICM').inputModifier).toBe(1);
    await context.destroyQp(machine.cpu, first.handle);
    expect(driver.device.icm.rdmarc.mappedChunks).toBe(chunks);
    expect(machine.last('UNMAP_ICM')).toMatchObject({ inputModifier: 64 });
  });
});

describe('shared receive queues', () => {
  it('arm their limit and report what is left of it', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const srq = await context.createSrq(machine.cpu, {
      pd,
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
  it('reach the context whose QP it is, and no other', async () => {
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

  it('of a QP that is gone are dropped and counted', async () => {
    await machine.raise(machine.asyncEq, (at, owner) =>
      qpEqe.encodeInto({ type: EventType.WQ_ACCESS_ERROR, qpn: 0x999, owner }, machine.memory, at),
    );
    expect(driver.device.router.droppedEvents).toBe(1);
  });
});

describe('the end of a process', () => {
  it('destroys what is left, users before what they use, and gives all numbers and pages back', async () => {
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
    // What the specs' process has mapped for itself is all that is left of the host's frames.
    expect(machine.icmPageCount).toBe(0);
  });
});

describe('queries', () => {
  it('read port, GID and P_Key from the management agent', async () => {
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

/** What is left after removal with a QP open: frames of the process itself, that nobody gives back in this bench. */
async function framesLeftBy(answer: Answer | undefined): Promise<number> {
  const { handle } = await createQp();
  const mask = M.IBV_QP_STATE | M.IBV_QP_PKEY_INDEX | M.IBV_QP_PORT | M.IBV_QP_ACCESS_FLAGS;
  const attr = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 };
  await context.modifyQp(machine.cpu, handle, attr, mask);
  const script = machine.script;
  machine.script = (command) => answer ?? script(command);
  // Some step of the device's own bring-down cannot succeed, and says so; what was taken is given back all the same.
  await driver.remove(machine.cpu).catch(() => undefined);
  expect(Object.values(driver.resourceCounts()).every((count) => count === 0)).toBe(true);
  expect(process.pinnedPages).toBe(0);
  return machine.framesTaken;
}

describe('a device that is gone', () => {
  it.each<[string, Answer]>([
    ['does not answer any more', { isLost: true }],
    ['was reset', { status: CommandStatus.BAD_SYS_STATE }],
  ])('that %s keeps nothing: as much is given back as by one that is well', async (_what, answer) => {
    const left = await framesLeftBy(answer);
    machine = new TestMachine();
    machine.script = goldenDevice;
    driver = new Driver(machine.platform, { ...defaultsOf(driverParameters), completionEqEntries: 128 });
    await driver.probe(machine.cpu);
    process = machine.newProcess();
    context = await driver.openDevice(machine.cpu, process);
    expect(left).toBe(await framesLeftBy(undefined));
  });

  it('that refuses to give something back is reset and probed again, as the sheet has it (3.3)', async () => {
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
