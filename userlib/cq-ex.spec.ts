/** Extended CQs: entry by entry, with the cost and the stores of ibv_poll_cq. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CqeOpcode, CqeSyndrome, errorCqe, ReceiveOpcode } from '../abi/cqe.ts';
import { WqeOpcode } from '../abi/wqe-opcodes.ts';
import { QpStateVerb, QpTypeVerb } from '../driver/uapi.ts';
import * as c from './constants.ts';
import { createCq } from './cq.ts';
import * as ex from './cq-ex.ts';
import { getDeviceList, openDevice } from './device.ts';
import { allocPd } from './memory.ts';
import { type IbvContext, type IbvCq, type IbvCqEx, type IbvQp, IbvWc } from './objects.ts';
import { pollCq } from './poll-cq.ts';
import { postRecv } from './post-recv.ts';
import { postSend } from './post-send.ts';
import { createQp } from './qp.ts';
import { TestProcess } from './testing.ts';
import { EINVAL, ENOENT } from './verbs-error.ts';

let process: TestProcess;
let context: IbvContext;
let cq: IbvCqEx;
let plain: IbvCq;

beforeEach(async () => {
  process = new TestProcess({}, true);
  context = await openDevice(getDeviceList(process.platform)[0]!);
  cq = await ex.createCqEx(context, { cqe: 7, wcFlags: c.IBV_WC_STANDARD_FLAGS, cqContext: 'mine' });
  plain = await createCq(context, 7);
  for (const each of [cq, plain]) process.initialise(each);
});

async function qpOn(on: IbvCq): Promise<IbvQp> {
  const cap = { maxSendWr: 16, maxSendSge: 1, maxRecvWr: 8, maxRecvSge: 1 };
  const pd = await allocPd(context);
  const qp = await createQp(pd, { sendCq: on, recvCq: on, qpType: QpTypeVerb.IBV_QPT_RC, cap });
  qp.state = QpStateVerb.IBV_QPS_RTS;
  return qp;
}

const post = (qp: IbvQp, wrId: number): number =>
  postSend(qp, {
    wrId,
    sgList: [],
    numSge: 0,
    opcode: c.IBV_WR_RDMA_WRITE,
    sendFlags: c.IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: 0, rkey: 0 } },
  });

/** Three completed WRITEs. */
async function completed(on: IbvCq): Promise<void> {
  const qp = await qpOn(on);
  for (const [counter, wrId] of [21, 22, 23].entries()) {
    post(qp, wrId);
    process.complete(on, counter, {
      qpn: qp.qpNum,
      isSend: 1,
      wqeCounter: counter,
      opcode: WqeOpcode.RDMA_WRITE,
    });
  }
  process.stores.length = 0;
  process.charged.poll = 0;
}

describe('startPoll, nextPoll and endPoll', () => {
  it('verbs.h: take entries in order, end with ENOENT, and store the consumer record once, in endPoll', async () => {
    await completed(cq);
    const taken: number[] = [];
    for (let result = await ex.startPoll(cq); result === 0; result = ex.nextPoll(cq)) {
      expect([cq.status, ex.wcReadOpcode(cq), ex.wcReadVendorErr(cq)]).toEqual([
        0,
        c.WcOpcode.IBV_WC_RDMA_WRITE,
        0,
      ]);
      taken.push(cq.wrId);
    }
    expect(taken).toEqual([21, 22, 23]);
    expect(process.stores).toEqual([]);
    ex.endPoll(cq);
    const [record] = process.stores;
    expect(process.stores).toHaveLength(1);
    expect([record!.kind, [...record!.bytes]]).toEqual(['memory', [0, 0, 0, 3]]);
    expect(record!.address).toBe(cq.ring.record.physicalAddress);
  });

  it('cost the same as ibv_poll_cq for the same number of entries', async () => {
    await completed(plain);
    await pollCq(plain, 3, [new IbvWc(), new IbvWc(), new IbvWc()]);
    const cycles = process.charged.poll;
    await completed(cq);
    for (let result = await ex.startPoll(cq); result === 0; result = ex.nextPoll(cq));
    ex.endPoll(cq);
    expect(process.charged.poll).toBe(cycles);
    expect(process.taps.filter(({ what }) => what === 'completed')).toHaveLength(6);
  });

  it('an empty queue returns ENOENT at once, costs an empty poll and needs no end', async () => {
    process.charged.poll = 0;
    expect(await ex.startPoll(cq)).toBe(ENOENT);
    expect(process.charged.poll).toBe(20);
    ex.endPoll(cq);
    expect([process.stores, ex.nextPoll(cq)]).toEqual([[], EINVAL]);
  });

  it('one poll at a time; remaining entries are found by the next, also by ibv_poll_cq', async () => {
    await completed(cq);
    expect([await ex.startPoll(cq), await ex.startPoll(cq)]).toEqual([0, EINVAL]);
    ex.endPoll(cq);
    expect(ex.nextPoll(cq)).toBe(EINVAL);
    // Two that begin at the same time.
    const both = await Promise.all([ex.startPoll(cq), ex.startPoll(cq)]);
    expect([both, cq.wrId]).toEqual([[0, EINVAL], 22]);
    ex.endPoll(cq);
    const wc = [new IbvWc(), new IbvWc()];
    expect([await pollCq(cq, 2, wc), wc[0]!.wrId]).toEqual([1, 23]);
  });

  it('sheet 6.6: read the fields of a receive from its entry', async () => {
    const qp = await qpOn(cq);
    postRecv(qp, { wrId: 9, sgList: [], numSge: 0 });
    process.complete(cq, 0, {
      qpn: qp.qpNum,
      isSend: 0,
      opcode: ReceiveOpcode.SEND_IMM,
      immediate: 0x1234_5678,
      byteCount: 77,
      sourceQpn: 0x4321,
      sourceLid: 0x17,
      serviceLevel: 5,
      destinationPathBits: 3,
      grhPresent: 1,
    });
    expect(await ex.startPoll(cq)).toBe(0);
    expect([cq.wrId, ex.wcReadOpcode(cq), ex.wcReadWcFlags(cq)]).toEqual([9, c.WcOpcode.IBV_WC_RECV, 3]);
    expect([ex.wcReadByteLen(cq), ex.wcReadImmData(cq), ex.wcReadQpNum(cq)]).toEqual([
      77,
      0x1234_5678,
      qp.qpNum,
    ]);
    expect([ex.wcReadSrcQp(cq), ex.wcReadSlid(cq)]).toEqual([0x4321, 0x17]);
    expect([ex.wcReadSl(cq), ex.wcReadDlidPathBits(cq)]).toEqual([5, 3]);
  });

  it('sheet 6.7: a failed request has its status and vendor error', async () => {
    const qp = await qpOn(cq);
    post(qp, 5);
    const failed = {
      qpn: qp.qpNum,
      isSend: 1,
      opcode: CqeOpcode.ERROR,
      syndrome: CqeSyndrome.REMOTE_ACCESS_ERR,
    };
    errorCqe.encodeInto({ ...failed, vendorSyndrome: 0x88 }, process.bytes, cq.ring.slots[0]!);
    expect(await ex.startPoll(cq)).toBe(0);
    expect([cq.wrId, cq.status, ex.wcReadVendorErr(cq)]).toEqual([5, c.WcStatus.IBV_WC_REM_ACCESS_ERR, 0x88]);
  });
});

it('libmlx4, MLX4_CREATE_QP_SUP_COMP_MASK: creates no QP with operations of ibv_wr_…', async () => {
  const pd = await allocPd(context);
  const init = { sendCq: plain, recvCq: plain, qpType: QpTypeVerb.IBV_QPT_RC, cap: {}, sendOpsFlags: 1 };
  await expect(createQp(pd, init)).rejects.toMatchObject({ code: 'EOPNOTSUPP' });
});

describe('createCqEx', () => {
  it('creates a CQ with its context, which events identify', () => {
    expect([cq.cqContext, cq.cqe, context.cqs.get(cq.handle) === cq]).toEqual(['mine', 7, true]);
  });

  it.each([
    ['a field that completions do not have', { cqe: 4, wcFlags: 1 << 8 }],
    ['an unknown mask', { cqe: 4, compMask: 2 }],
    ['a flag that is not for mlx4', { cqe: 4, compMask: c.IBV_CQ_INIT_ATTR_MASK_FLAGS, flags: 2 }],
  ])('rejects %s with EOPNOTSUPP', async (_what, attr) => {
    await expect(ex.createCqEx(context, attr)).rejects.toMatchObject({
      code: 'EOPNOTSUPP',
      verb: 'ibv_create_cq_ex',
    });
  });

  it('ignores flags without their mask, and accepts the one that mlx4 has', async () => {
    await ex.createCqEx(context, { cqe: 4, flags: 2 });
    const attr = { cqe: 4, compMask: 1, flags: c.IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
    expect((await ex.createCqEx(context, attr)).cqe).toBe(7);
  });
});
