/** Queue pairs: the mailboxes of Linux for the same requests, the transitions that are legal, and the resources that are released. */
import { beforeEach, describe, expect, it } from 'vitest';
import { qpMailbox } from '../abi/qpc.ts';
import { srqc } from '../abi/srqc.ts';
import type { Driver } from './driver.ts';
import type { CreateQp, KernelContext } from './kernel-verbs.ts';
import type { TestMachine } from './testing.ts';
import { goldenDevice, inputOf } from './testing-answers.ts';
import {
  captured,
  initMask,
  rtrMask,
  rtsMask,
  TestContext,
  toInit,
  toRtr,
  toRts,
} from './testing-context.ts';
import type { TestProcess } from './testing-process.ts';
import { AccessFlag, QpAttrMask as M, QpStateVerb, QpTypeVerb } from './uapi.ts';

const { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR } = QpStateVerb;
const { IBV_QPT_UD } = QpTypeVerb;

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

const createQp = (overrides?: Partial<CreateQp>): ReturnType<TestContext['createQp']> =>
  opened.createQp(overrides);
const connected = (): Promise<number> => opened.connected();

/** Fields of a QP mailbox that belong to the run: addresses, numbers, PSNs. */
function comparable(bytes: Uint8Array): unknown {
  const { optionalParameterMask, context: fields } = qpMailbox.decode(bytes);
  const { pd, uarPage, localQpn, remoteQpn, sendCqn, receiveCqn, srqn, ...rest } = fields;
  const { nextSendPsn, nextReceivePsn, mttAddress, logPageSize4k, doorbellRecordAddress, ...same } = rest;
  const { remoteGid, ...path } = same.primaryPath;
  return { optionalParameterMask, same: { ...same, primaryPath: path } };
}

describe('queue pairs', () => {
  it('golden captures: go through INIT, RTR and RTS with the mailboxes of Linux (rc_pingpong)', async () => {
    await connected();
    for (const op of ['RST2INIT_QP', 'INIT2RTR_QP', 'RTR2RTS_QP'] as const) {
      const expected = inputOf(captured('b-rc-pingpong', op), 0x100);
      expect(comparable(machine.last(op).input), op).toEqual(comparable(expected));
    }
    expect(machine.last('INIT2RTR_QP').inputModifier).toBe(0x208);
  });

  it('golden captures: carry the remote rights and read resources of ib_write_bw, ib_read_bw and ib_atomic_lat', async () => {
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

  it('golden captures: of type UD carry the Q_Key, the largest MTU and the port (ud_pingpong)', async () => {
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

  it('golden captures, observation 3: on a shared queue, refer to it and have no receive queue (srq_pingpong)', async () => {
    const pd = (await context.allocPd(machine.cpu)).handle;
    const srq = await context.createSrq(machine.cpu, {
      pd,
      xrcd: -1,
      cq: -1,
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
  ])('IBTA 11.2.5.2: reject %s, without a command and without a change', async (_what, attr, mask) => {
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
  ])('reject %s on the way to RTR', async (_what, wrong) => {
    const { handle } = await createQp();
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
    const attr = { ...toRtr, ...wrong } as typeof toRtr;
    await expect(context.modifyQp(machine.cpu, handle, attr, rtrMask)).rejects.toMatchObject({
      code: 'EINVAL',
    });
  });

  it('sheet 3.17: drain and resume, and request the event only when the caller wants it', async () => {
    const handle = await connected();
    const drain = { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 1 };
    const mask = M.IBV_QP_STATE | M.IBV_QP_EN_SQD_ASYNC_NOTIFY;
    await context.modifyQp(machine.cpu, handle, drain, mask);
    expect(machine.last('RTS2SQD_QP').inputModifier).toBe(0x8000_0208);
    await context.modifyQp(machine.cpu, handle, { qpState: IBV_QPS_RTS }, M.IBV_QP_STATE);
    expect(machine.names().at(-1)).toBe('SQD2RTS_QP');
  });

  it('golden captures, observation 4: enter ERR and RESET from any state', async () => {
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

  it('report the device’s state', async () => {
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

  it('Linux, mlx4_ib: sets the bit of inline receive when requested, for a size that a list may have', async () => {
    const bitOf = async (overrides: Partial<CreateQp>): Promise<number> => {
      const { handle } = await createQp(overrides);
      await context.modifyQp(
        machine.cpu,
        handle,
        { qpState: 1, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 },
        0x39,
      );
      return qpMailbox.decode(machine.last('RST2INIT_QP').input).context.inlineReceive;
    };
    expect(await bitOf({})).toBe(0);
    expect(await bitOf({ inlineReceiveBytes: 16 })).toBe(1);
    const most = driver.device.limits.maxReceiveScatterGather * 16;
    for (const wrong of [
      { inlineReceiveBytes: most + 1, logReceiveStride: 11 },
      { inlineReceiveBytes: 17, logReceiveStride: 4 },
      { inlineReceiveBytes: 16, receiveWqes: 0 },
    ])
      await expect(createQp(wrong)).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('sheet 4.2: map 256 KiB of every table on demand, and unmap it with the last one', async () => {
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
