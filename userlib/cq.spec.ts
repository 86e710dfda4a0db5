import { beforeEach, describe, expect, it } from 'vitest';
import { CqeOpcode, CqeSyndrome, errorCqe, ReceiveOpcode } from '../abi/cqe.ts';
import { linesOf, placeOf, readGolden } from '../abi/testing/golden.ts';
import { WqeOpcode } from '../abi/wqe-opcodes.ts';
import { toHex } from '../base/bytes.ts';
import { QpStateVerb, QpTypeVerb } from '../driver/uapi.ts';
import {
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  WcFlag,
  WcOpcode,
  WcStatus,
  wcStatusStr,
} from './constants.ts';
import { createCompChannel, createCq, destroyCq, resizeCq } from './cq.ts';
import { closeDevice, getDeviceList, openDevice } from './device.ts';
import { ackCqEvents, getAsyncEvent, getCqEvent } from './events.ts';
import { allocPd, regMr } from './memory.ts';
import { type IbvContext, type IbvCq, type IbvPd, type IbvQp, type IbvSrq, IbvWc } from './objects.ts';
import { pollCq, reqNotifyCq, spinCq } from './poll-cq.ts';
import { postRecv, postSrqRecv } from './post-recv.ts';
import { postSend } from './post-send.ts';
import { createQp, destroyQp, modifyQp } from './qp.ts';
import { createSrq } from './srq.ts';
import { TestProcess, uarBusAddress } from './testing.ts';
import { VerbsError } from './verbs-error.ts';

const { IBV_QPS_RESET, IBV_QPS_RTS } = QpStateVerb;

let process: TestProcess;
let context: IbvContext;
let pd: IbvPd;
let cq: IbvCq;
let qp: IbvQp;
const wc = Array.from({ length: 16 }, () => new IbvWc());

const newQp = async (srq: IbvSrq | null = null): Promise<IbvQp> => {
  const cap = { maxSendWr: 16, maxSendSge: 1, maxRecvWr: 8, maxRecvSge: 1 };
  const made = await createQp(pd, { sendCq: cq, recvCq: cq, srq, qpType: QpTypeVerb.IBV_QPT_RC, cap });
  made.state = IBV_QPS_RTS;
  return made;
};

beforeEach(async () => {
  process = new TestProcess({}, true);
  context = await openDevice(getDeviceList(process.platform)[0]!);
  pd = await allocPd(context);
  cq = await createCq(context, 7);
  process.initialise(cq);
  qp = await newQp();
});

const post = (wrId: number): number =>
  postSend(qp, {
    wrId,
    sgList: [],
    numSge: 0,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: 0, rkey: 0 } },
  });

const sent = (wqeCounter: number, opcode: number = WqeOpcode.RDMA_WRITE) => ({
  qpn: qp.qpNum,
  isSend: 1,
  wqeCounter,
  opcode,
});

describe('pollCq', () => {
  it('finds nothing in a fresh queue, and costs an empty poll', async () => {
    process.charged.poll = 0;
    expect(await pollCq(cq, 16, wc)).toBe(0);
    expect(process.charged.poll).toBe(20);
  });

  it('fills the completions in order and stores the consumer counter once', async () => {
    for (const wrId of [11, 12, 13]) post(wrId);
    for (const counter of [0, 1, 2]) process.complete(cq, counter, sent(counter));
    process.stores.length = 0;
    process.charged.poll = 0;
    expect(await pollCq(cq, 16, wc)).toBe(3);
    expect(wc.slice(0, 3).map(({ wrId }) => wrId)).toEqual([11, 12, 13]);
    expect(wc[0]).toMatchObject({
      status: 0,
      opcode: WcOpcode.IBV_WC_RDMA_WRITE,
      qpNum: qp.qpNum,
      wcFlags: 0,
    });
    expect(process.stores.map(({ bytes }) => toHex(bytes))).toEqual(['00000003']);
    // Three completions, each with the line that the device wrote: 3 × (60 + 90).
    expect(process.charged.poll).toBe(450);
  });

  describe('with a message in its receive WQE', () => {
    const init = async (lengths: readonly number[], inlRecvSz = 64) => {
      const cap = { maxSendWr: 16, maxSendSge: 1, maxRecvWr: 2, maxRecvSge: 2 };
      qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap, inlRecvSz });
      qp.state = IBV_QPS_RTS;
      const list = lengths.map((length) => ({ addr: process.map(5000) + 4090, length, lkey: 0x1100 }));
      postRecv(qp, { wrId: 5, sgList: list, numSge: list.length });
      return list;
    };
    /** The device overwrites the list, and reports this in bit 5 of the CQE's last byte. */
    const receive = (lengthBytes: number): void => {
      const message = Uint8Array.from({ length: lengthBytes }, (_, at) => at + 1);
      process.bytes.set(message, qp.receiveRing!.slots[0]!);
      process.complete(cq, 0, {
        qpn: qp.qpNum,
        opcode: ReceiveOpcode.SEND,
        byteCount: lengthBytes,
        inlineScatter: 1,
      });
    };
    const bytesAt = (address: number, length: number): number[] =>
      Array.from(
        { length },
        (_, at) => process.bytes[process.platform.memory.physicalAddress(address + at)]!,
      );

    it('MLNX_OFED, libmlx4: copies it to the buffers of the list, across a page, and charges the copy', async () => {
      const [first, second] = await init([10, 100]);
      receive(50);
      process.charged.copy = 0;
      expect(await pollCq(cq, 1, wc)).toBe(1);
      expect(wc[0]).toMatchObject({ wrId: 5, status: 0, opcode: WcOpcode.IBV_WC_RECV, byteLen: 50 });
      expect(bytesAt(first!.addr, 10)).toEqual(Array.from({ length: 10 }, (_, at) => at + 1));
      expect(bytesAt(second!.addr, 41)).toEqual([...Array.from({ length: 40 }, (_, at) => at + 11), 0]);
      expect(process.charged.copy).toBeGreaterThan(0);
    });

    it('MLNX_OFED, libmlx4: has a length error if the list is shorter', async () => {
      await init([10, 20]);
      receive(50);
      await pollCq(cq, 1, wc);
      expect(wc[0]).toMatchObject({ wrId: 5, status: WcStatus.IBV_WC_LOC_LEN_ERR });
    });

    it('ends every list, since a message may have overwritten the end of its data pointers', async () => {
      await init([10]);
      const { slots } = qp.receiveRing!;
      process.bytes.fill(0xaa, slots[1]!, slots[1]! + 64);
      postRecv(qp, { wrId: 6, sgList: [], numSge: 0 });
      expect(toHex(process.bytes.subarray(slots[1]!, slots[1]! + 8))).toBe('0000000000000100');
      expect(toHex(process.bytes.subarray(slots[0]! + 16, slots[0]! + 24))).toBe('0000000000000100');
    });

    it('sizes the WQEs for it, and rejects a size longer than the longest list, or without a receive queue', async () => {
      const { maxRecvSge } = context.info;
      const cap = { maxSendWr: 1, maxSendSge: 1, maxRecvWr: 1, maxRecvSge: 1 };
      const make = (inlRecvSz: number, srq: IbvSrq | null = null) =>
        createQp(pd, {
          sendCq: cq,
          recvCq: cq,
          srq,
          qpType: QpTypeVerb.IBV_QPT_RC,
          cap: { ...cap },
          inlRecvSz,
        });
      const made = await make(16 * maxRecvSge);
      expect(made.receiveRing!.pointersMax).toBeGreaterThanOrEqual(maxRecvSge);
      await expect(make(16 * maxRecvSge + 1)).rejects.toMatchObject({ code: 'EINVAL' });
      const srq = await createSrq(pd, { attr: { maxWr: 4, maxSge: 1 } });
      await expect(make(16, srq)).rejects.toMatchObject({ code: 'EINVAL' });
    });
  });

  it('takes no more than requested', async () => {
    for (const counter of [0, 1, 2]) {
      post(counter);
      process.complete(cq, counter, sent(counter));
    }
    expect(await pollCq(cq, 2, wc)).toBe(2);
    expect(await pollCq(cq, 2, wc)).toBe(1);
  });

  it('sheet 6.6: wraps the ring with the owner bit of each pass', async () => {
    for (let counter = 0; counter < 3 * cq.ring.entries + 1; counter++) {
      expect(post(counter)).toBe(0);
      expect(await pollCq(cq, 1, wc)).toBe(0);
      process.complete(cq, counter, sent(counter));
      expect(await pollCq(cq, 1, wc)).toBe(1);
      expect(wc[0]!.wrId).toBe(counter);
    }
  });

  it('completes unsignalled requests with the signalled one after them', async () => {
    for (const wrId of [1, 2, 3]) post(wrId);
    process.complete(cq, 0, sent(2));
    expect(await pollCq(cq, 16, wc)).toBe(1);
    expect(wc[0]!.wrId).toBe(3);
    expect(qp.sendRing.tail).toBe(3);
  });

  it.each([
    [WqeOpcode.SEND, WcOpcode.IBV_WC_SEND, 0],
    [WqeOpcode.RDMA_READ, WcOpcode.IBV_WC_RDMA_READ, 4096],
    [WqeOpcode.ATOMIC_CS, WcOpcode.IBV_WC_COMP_SWAP, 8],
    [WqeOpcode.ATOMIC_FA, WcOpcode.IBV_WC_FETCH_ADD, 8],
    [WqeOpcode.MASKED_ATOMIC_CS, WcOpcode.IBV_WC_MASKED_COMP_SWAP, 8],
    [WqeOpcode.MASKED_ATOMIC_FA, WcOpcode.IBV_WC_MASKED_FETCH_ADD, 8],
  ])('sheet 6.6: reports the send opcode 0x%s as %i with %i bytes', async (opcode, expected, byteLen) => {
    post(1);
    process.complete(cq, 0, { ...sent(0, opcode), byteCount: 4096 });
    await pollCq(cq, 1, wc);
    expect(wc[0]).toMatchObject({ opcode: expected, byteLen });
  });

  it.each([
    [ReceiveOpcode.SEND, WcOpcode.IBV_WC_RECV, 0],
    [ReceiveOpcode.SEND_IMM, WcOpcode.IBV_WC_RECV, WcFlag.IBV_WC_WITH_IMM],
    [ReceiveOpcode.RDMA_WRITE_IMM, WcOpcode.IBV_WC_RECV_RDMA_WITH_IMM, WcFlag.IBV_WC_WITH_IMM],
  ])('sheet 6.6: reports the receive opcode %i as %i with flags %i', async (opcode, expected, wcFlags) => {
    postRecv(qp, { wrId: 5, sgList: [], numSge: 0 });
    process.complete(cq, 0, { qpn: qp.qpNum, opcode, byteCount: 77, immediate: 0xdead_beef, sourceLid: 3 });
    await pollCq(cq, 1, wc);
    expect(wc[0]).toMatchObject({
      wrId: 5,
      opcode: expected,
      wcFlags,
      byteLen: 77,
      immData: 0xdead_beef,
      slid: 3,
    });
    expect(qp.receiveRing!.tail).toBe(1);
  });

  it('sheet 6.5: returns the WQE of a shared queue to its list', async () => {
    const srq = await createSrq(pd, { attr: { maxWr: 3, maxSge: 1 } });
    qp = await newQp(srq);
    for (const wrId of [1, 2, 3]) postSrqRecv(srq, { wrId, sgList: [], numSge: 0 });
    process.complete(cq, 0, { qpn: qp.qpNum, opcode: ReceiveOpcode.SEND, wqeCounter: 1 });
    await pollCq(cq, 1, wc);
    expect(wc[0]!.wrId).toBe(2);
    // The old tail, WQE 3, now links to the freed WQE 1.
    expect(process.view.getUint16(srq.ring.slots[3]! + 2)).toBe(1);
    expect(postSrqRecv(srq, { wrId: 4, sgList: [], numSge: 0 })).toBe(0);
  });

  it.each(Object.entries(CqeSyndrome))(
    'sheet 6.6: turns syndrome %s into a status',
    async (name, syndrome) => {
      post(9);
      const at = cq.ring.slots[0]!;
      errorCqe.encodeInto(
        { qpn: qp.qpNum, wqeCounter: 0, syndrome, vendorSyndrome: 0x55, isSend: 1, opcode: CqeOpcode.ERROR },
        process.bytes,
        at,
      );
      await pollCq(cq, 1, wc);
      expect(wc[0]).toMatchObject({ wrId: 9, vendorErr: 0x55 });
      expect(wc[0]!.status).not.toBe(WcStatus.IBV_WC_SUCCESS);
      expect(wcStatusStr(wc[0]!.status), name).not.toMatch(/^status/);
    },
  );

  it('reports an unknown syndrome as a general error', async () => {
    post(9);
    const values = { qpn: qp.qpNum, syndrome: 0x77, isSend: 1, opcode: CqeOpcode.ERROR };
    errorCqe.encodeInto(values, process.bytes, cq.ring.slots[0]!);
    await pollCq(cq, 1, wc);
    expect(wc[0]!.status).toBe(WcStatus.IBV_WC_GENERAL_ERR);
  });

  it('tells the tap which posted request has completed', async () => {
    post(1);
    process.complete(cq, 0, sent(0));
    process.taps.length = 0;
    await pollCq(cq, 1, wc);
    expect(process.taps).toEqual([{ what: 'completed', args: [qp.qpNum, 0, process.time] }]);
  });
});

describe('spinCq', () => {
  it('costs the same as polling in a loop, and returns with the first completion', async () => {
    post(4);
    let rounds = 0;
    process.whileSpinning = () => {
      if (++rounds === 3) process.complete(cq, 0, sent(0));
    };
    process.charged.poll = 0;
    expect(await spinCq(cq, 16, wc)).toBe(1);
    // Three empty rounds of 20, then one completion of 150.
    expect(process.charged.poll).toBe(210);
  });

  it('returns at once if a completion is present', async () => {
    post(4);
    process.complete(cq, 0, sent(0));
    expect(await spinCq(cq, 16, wc)).toBe(1);
  });
});

describe('resizing', () => {
  it('sheet 3.16: moves remaining entries to the new ring and continues there', async () => {
    for (let counter = 0; counter < 4; counter++) {
      post(counter);
      process.complete(cq, counter, sent(counter));
    }
    await pollCq(cq, 1, wc);
    // The device ends the old ring with its mark; entries 1 to 3 are still in it.
    process.complete(cq, 4, { opcode: CqeOpcode.RESIZE });
    await resizeCq(cq, 20);
    expect(cq.cqe).toBe(31);
    expect(cq.ring.entries).toBe(32);
    expect(await pollCq(cq, 16, wc)).toBe(3);
    expect(wc.slice(0, 3).map(({ wrId }) => wrId)).toEqual([1, 2, 3]);
    // The mark used number 4: the device's next entry is 5.
    post(4);
    process.complete(cq, 5, sent(4));
    expect(await pollCq(cq, 1, wc)).toBe(1);
  });

  it('takes nothing from the slot that the number of the mark would have had', async () => {
    process.complete(cq, 0, { opcode: CqeOpcode.RESIZE });
    await resizeCq(cq, 3);
    for (const counter of [1, 2, 3]) {
      post(counter);
      process.complete(cq, counter, sent(counter - 1));
    }
    expect(await pollCq(cq, 16, wc)).toBe(3);
    expect(cq.ring.consumerCounter).toBe(4);
  });

  it('rejects a ring that cannot hold the completions', async () => {
    for (let counter = 0; counter < 5; counter++) {
      post(counter);
      process.complete(cq, counter, sent(counter));
    }
    await expect(resizeCq(cq, 3)).rejects.toMatchObject({ code: 'EINVAL', verb: 'ibv_resize_cq' });
    expect(await pollCq(cq, 16, wc)).toBe(5);
  });

  it('keeps the old ring when the kernel refuses', async () => {
    process.failing = { name: 'resizeCq', code: 'ENOMEM' };
    const pages = process.mappedPages;
    await expect(resizeCq(cq, 100)).rejects.toMatchObject({ errno: 12 });
    expect(process.mappedPages).toBe(pages);
    expect(cq.ring.entries).toBe(8);
  });
});

describe('arming', () => {
  it('golden captures: stores the record before the doorbell, with the bytes of libmlx4', async () => {
    const lines = linesOf(readGolden(), 'cq_arm').filter(({ file }) => file === 'c-rc-pingpong-events');
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) {
      cq.ring.armSequence = line.sn;
      cq.ring.consumerCounter = line.ci;
      process.stores.length = 0;
      expect(reqNotifyCq(cq, 0)).toBe(0);
      const [record, doorbell] = process.stores;
      const own = cq.ring.cqn.toString(16).padStart(6, '0');
      const theirs = line.cqn.toString(16).padStart(6, '0');
      expect(doorbell!.address).toBe(uarBusAddress + Number(line.offset));
      expect(toHex(doorbell!.bytes), placeOf(line)).toBe(line.bytes.replace(theirs, own));
      // Captured record: the consumer counter instead of the CQN.
      const counter = line.ci.toString(16).padStart(6, '0');
      expect(toHex(record!.bytes)).toBe(line.bytes.slice(0, 2) + counter);
    }
  });

  it('sheet 6.8: requests solicited events with command 1', () => {
    process.stores.length = 0;
    reqNotifyCq(cq, 1);
    expect(toHex(process.stores[0]!.bytes)).toBe('11000000');
  });

  it('sheet 6.10: advances the sequence number with every delivered event', async () => {
    const channel = await createCompChannel(context);
    const own = await createCq(context, 7, 'mine', channel);
    process.answers.set('getCqEvent', own.handle);
    const event = await getCqEvent(channel);
    expect(event).toBe(own);
    expect(event!.cqContext).toBe('mine');
    expect(own.ring.armSequence).toBe(2);
    await expect(destroyCq(own)).rejects.toMatchObject({ code: 'EBUSY' });
    ackCqEvents(own, 1);
    await destroyCq(own);
  });
});

describe('a QP that is reset or destroyed', () => {
  it('removes its completions and leaves those of others in order', async () => {
    const other = await newQp();
    for (const wrId of [1, 2]) post(wrId);
    const mine = { qpn: qp.qpNum, isSend: 1, opcode: WqeOpcode.RDMA_WRITE };
    const theirs = { qpn: other.qpNum, isSend: 1, opcode: WqeOpcode.RDMA_WRITE };
    [other.sendRing.slotAt(0).wrId, other.sendRing.slotAt(1).wrId] = [71, 72];
    other.sendRing.head = 2;
    process.complete(cq, 0, { ...mine, wqeCounter: 0 });
    process.complete(cq, 1, { ...theirs, wqeCounter: 0 });
    process.complete(cq, 2, { ...mine, wqeCounter: 1 });
    process.complete(cq, 3, { ...theirs, wqeCounter: 1 });
    await modifyQp(qp, { qpState: IBV_QPS_RESET }, 1);
    expect(qp.sendRing.head).toBe(0);
    expect(await pollCq(cq, 16, wc)).toBe(2);
    expect(wc.slice(0, 2).map(({ wrId }) => wrId)).toEqual([71, 72]);
    await destroyQp(other);
    expect(context.qpTable.get(other.qpNum)).toBeUndefined();
  });
});

describe('control verbs', () => {
  it('reject with the errno and the name of the verb', async () => {
    process.failing = { name: 'regMr', code: 'ENOMEM' };
    const failed = regMr(pd, 0x1000, 10, 1);
    await expect(failed).rejects.toBeInstanceOf(VerbsError);
    await expect(failed).rejects.toMatchObject({ verb: 'ibv_reg_mr', errno: 12, code: 'ENOMEM' });
  });

  it.each([
    ['createCq', () => createCq(context, 100)],
    ['createQp', () => newQp()],
    ['createSrq', () => createSrq(pd, { attr: { maxWr: 7, maxSge: 1 } })],
  ])('give memory back when the kernel refuses %s', async (name, make) => {
    const pages = process.mappedPages;
    process.failing = { name, code: 'ENOMEM' };
    await expect(make()).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(process.mappedPages).toBe(pages);
  });

  it.each([
    ['createCq', () => createCq(context, 100_000)],
    ['createQp', () => newQp()],
  ])('%s is ENOMEM when the process can map no more', async (_name, make) => {
    process.pagesMax = process.mappedPages;
    await expect(make()).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(process.mappedPages).toBe(process.pagesMax);
  });

  it.each([
    ['a CQ of 0 entries', () => createCq(context, 0)],
    ['a CQ beyond the limit', () => createCq(context, 2 ** 22)],
    ['an SRQ of too many buffers', () => createSrq(pd, { attr: { maxWr: 7, maxSge: 99 } })],
    [
      'a QP with too long inline data',
      () =>
        createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap: { maxInlineData: 2000 } }),
    ],
  ])('refuse %s with EINVAL', async (_what, make) => {
    await expect(make()).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('free all memory at the end', async () => {
    const fresh = new TestProcess();
    const opened = await openDevice(getDeviceList(fresh.platform)[0]!);
    const domain = await allocPd(opened);
    const queue = await createCq(opened, 7);
    const init = {
      sendCq: queue,
      recvCq: queue,
      qpType: QpTypeVerb.IBV_QPT_RC,
      cap: { maxSendWr: 4 },
    } as const;
    await destroyQp(await createQp(domain, { ...init }));
    await destroyCq(queue);
    await closeDevice(opened);
    expect(fresh.mappedPages).toBe(0);
    expect(fresh.calls.map(({ name }) => name).at(-1)).toBe('close');
  });

  it('deliver asynchronous events with their object', async () => {
    process.answers.set('getAsyncEvent', { eventType: 3, element: 'qp', handle: qp.handle });
    expect(await getAsyncEvent(context)).toEqual({ eventType: 3, qp });
    process.answers.set('getAsyncEvent', { eventType: 9, element: 'port', handle: 1 });
    expect(await getAsyncEvent(context)).toEqual({ eventType: 9, portNum: 1 });
  });
});
