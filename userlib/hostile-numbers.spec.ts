/**
 * Every numeric argument of every verb, with values that its C type cannot hold. BigInt computes these values here from the
 * structures of libibverbs' verbs.h; the lengths from 2^31 on are the interface's (sheet 6.3: the byte count of a data pointer
 * has 31 bits).
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { QpStateVerb, QpTypeVerb } from '../driver/uapi.ts';
import {
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_AV,
  IBV_QP_CUR_STATE,
  IBV_QP_PORT,
  IBV_QP_QKEY,
  IBV_QP_STATE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_SRQ_LIMIT,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
} from './constants.ts';
import { createCq, modifyCq, resizeCq } from './cq.ts';
import { getDeviceList, openDevice, queryGid, queryPkey, queryPort } from './device.ts';
import { ackCqEvents, getAsyncEvent } from './events.ts';
import { allocPd, createAh, regMr } from './memory.ts';
import { MessageChannel, type MessagingConfig, messagingParameters } from './messaging/index.ts';
import {
  type BadWr,
  type IbvContext,
  type IbvCq,
  type IbvPd,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSrq,
  IbvWc,
} from './objects.ts';
import { pollCq, reqNotifyCq, spinCq } from './poll-cq.ts';
import { postRecv, postSrqRecv } from './post-recv.ts';
import { postSend } from './post-send.ts';
import { createQp, modifyQp } from './qp.ts';
import { createSrq, modifySrq } from './srq.ts';
import { TestProcess, userOffset } from './testing.ts';
import { EFAULT, EINVAL } from './verbs-error.ts';

const { IBV_QPS_INIT, IBV_QPS_RTS } = QpStateVerb;
const hostile = [
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e300, -1e300, 0.5, -0.5],
  ...[Number.MIN_VALUE, 1 + Number.EPSILON, 2 ** 20 + 0.5, 2 ** 31 + 0.5, -1, -(2 ** 31), -(2 ** 53)],
  ...[7, 16, 100, 2 ** 7, 2 ** 8, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 31, 2 ** 31 + 64, 2 ** 32 - 1, 2 ** 32],
  ...[2 ** 32 + 1, 2 ** 32 + 64, 2 ** 53, 2 ** 64],
];
/** Values of the list that are not whole numbers from 0 to `max`. */
const outside = (max: number | bigint): number[] =>
  hostile.filter((value) => {
    if (!Number.isFinite(value) || value % 1 !== 0) return true;
    return BigInt(value) < 0n || BigInt(value) > BigInt(max);
  });
const uint8 = 0xff;
const uint16 = 0xffff;
const uint32 = 0xffff_ffff;
const address = 2n ** 53n - 1n;
const length = 2 ** 31 - 1;

let process: TestProcess;
let context: IbvContext;
let pd: IbvPd;
let cq: IbvCq;
let qp: IbvQp;
let datagrams: IbvQp;
let srq: IbvSrq;

beforeEach(async () => {
  process = new TestProcess({ maxRecvSge: 8, maxSendSge: 8 }, true);
  context = await openDevice(getDeviceList(process.platform)[0]!);
  pd = await allocPd(context);
  cq = await createCq(context, 63);
  const cap = { maxSendWr: 16, maxSendSge: 2, maxRecvWr: 4, maxRecvSge: 2, maxInlineData: 64 };
  qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap: { ...cap } });
  datagrams = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_UD, cap: { ...cap } });
  srq = await createSrq(pd, { attr: { maxWr: 8, maxSge: 2 } });
  for (const each of [qp, datagrams]) {
    await modifyQp(each, { qpState: IBV_QPS_INIT }, IBV_QP_STATE);
    each.state = IBV_QPS_RTS;
  }
});

const sge = { addr: 0x1000, length: 64, lkey: 0x1100 };
const base: IbvSendWr = {
  wrId: 7,
  sgList: [sge, sge],
  numSge: 1,
  opcode: IBV_WR_RDMA_WRITE,
  sendFlags: IBV_SEND_SIGNALED,
  wr: { rdma: { remoteAddr: 0x5000, rkey: 0x1000 } },
};
const receive: IbvRecvWr = { wrId: 7, sgList: [sge, sge], numSge: 1 };
const rdma = { remoteAddr: 0x5000, rkey: 0x1000 };
const atomic = { remoteAddr: 0x5000, rkey: 0x1000, compareAdd: 1n, swap: 2n };

const sendFields: readonly (readonly [string, readonly number[], (value: number) => Partial<IbvSendWr>])[] = [
  ['numSge', outside(2), (numSge) => ({ numSge })],
  ['opcode', outside(6), (opcode) => ({ opcode, wr: { rdma, atomic } })],
  ['sendFlags', outside(uint32), (sendFlags) => ({ sendFlags })],
  ['addr', outside(address), (addr) => ({ sgList: [{ ...sge, addr }] })],
  ['length', outside(length), (bytes) => ({ sgList: [{ ...sge, length: bytes }] })],
  ['lkey', outside(uint32), (lkey) => ({ sgList: [{ ...sge, lkey }] })],
  [
    'length of the second buffer',
    outside(length),
    (bytes) => ({
      sgList: [sge, { ...sge, length: bytes }],
      numSge: 2,
    }),
  ],
  [
    'length of inline data',
    outside(64),
    (bytes) => ({
      sgList: [{ ...sge, addr: userOffset + 4096, length: bytes }],
      sendFlags: IBV_SEND_INLINE,
    }),
  ],
  [
    'address of inline data',
    outside(address),
    (addr) => ({
      sgList: [{ ...sge, addr }],
      sendFlags: IBV_SEND_INLINE,
    }),
  ],
  ['number of inline buffers', outside(2), (numSge) => ({ numSge, sendFlags: IBV_SEND_INLINE })],
  ['remoteAddr', outside(address), (remoteAddr) => ({ wr: { rdma: { ...rdma, remoteAddr } } })],
  ['rkey', outside(uint32), (rkey) => ({ wr: { rdma: { ...rdma, rkey } } })],
  ['immData', outside(uint32), (immData) => ({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM, immData })],
  [
    'rkey of a READ',
    outside(uint32),
    (rkey) => ({
      opcode: IBV_WR_RDMA_READ,
      wr: { rdma: { ...rdma, rkey } },
    }),
  ],
  [
    'remoteAddr of an atomic',
    outside(address),
    (remoteAddr) => ({
      opcode: IBV_WR_ATOMIC_CMP_AND_SWP,
      wr: { atomic: { ...atomic, remoteAddr } },
    }),
  ],
  [
    'rkey of an atomic',
    outside(uint32),
    (rkey) => ({
      opcode: IBV_WR_ATOMIC_CMP_AND_SWP,
      wr: { atomic: { ...atomic, rkey } },
    }),
  ],
];

/** State that a refused post must not change. */
const trace = (): unknown => [
  process.stores.length,
  process.taps.length,
  [qp, datagrams].map(({ sendRing, receiveRing }) => [sendRing.head, receiveRing!.head]),
  [srq.ring.head, srq.ring.counter],
];

describe('postSend rejects with EINVAL, and has posted nothing,', () => {
  it.each(sendFields)('%s that does not fit', (_name, values, change) => {
    expect(postSend(qp, { ...base })).toBe(0);
    expect(values.length).toBeGreaterThan(10);
    for (const value of values) {
      const before = trace();
      const bad = { ...base, ...change(value) };
      const found: BadWr<IbvSendWr> = { wr: null, index: -1 };
      expect(postSend(qp, bad, found), String(value)).toBe(EINVAL);
      expect(found).toEqual({ wr: bad, index: 0 });
      expect(trace()).toEqual(before);
    }
  });

  it('the numbers of a datagram that do not fit', async () => {
    const ah = await createAh(pd, { dlid: 1, portNum: 1 });
    const ud = { ah, remoteQpn: 5, remoteQkey: 0x1111 };
    const request = (changed: Partial<typeof ud>): IbvSendWr => ({
      ...{ ...base, opcode: IBV_WR_SEND },
      wr: { ud: { ...ud, ...changed } },
    });
    expect(postSend(datagrams, request({}))).toBe(0);
    const before = trace();
    for (const remoteQpn of outside(2 ** 24 - 1))
      expect(postSend(datagrams, request({ remoteQpn }))).toBe(EINVAL);
    for (const remoteQkey of outside(uint32))
      expect(postSend(datagrams, request({ remoteQkey }))).toBe(EINVAL);
    expect(trace()).toEqual(before);
  });

  it('operands of an atomic that have no 64 bits', () => {
    const before = trace();
    const operands: unknown[] = [-1n, 2n ** 64n, -(2n ** 63n), 2n ** 200n, 1, Number.NaN, undefined];
    for (const operand of operands) {
      for (const name of ['compareAdd', 'swap']) {
        const request = { ...atomic, [name]: operand as bigint };
        const wr: IbvSendWr = { ...base, opcode: IBV_WR_ATOMIC_CMP_AND_SWP, wr: { atomic: request } };
        expect(postSend(qp, wr), `${name} ${String(operand)}`).toBe(EINVAL);
      }
      const masks = { compareAddMask: 1n, swapMask: 1n };
      for (const name of ['compareAdd', 'swap', 'compareAddMask', 'swapMask']) {
        const request = { ...atomic, ...masks, [name]: operand as bigint };
        const wr: IbvSendWr = { ...base, opcode: IBV_WR_MASKED_ATOMIC_CMP_AND_SWP, wr: { atomic: request } };
        expect(postSend(qp, wr), `masked: ${name} ${String(operand)}`).toBe(EINVAL);
      }
    }
    expect(trace()).toEqual(before);
  });

  it('a peer’s address, as a bigint, that has more than 64 bits', () => {
    const before = trace();
    for (const remoteAddr of [-1n, 2n ** 64n]) {
      expect(postSend(qp, { ...base, wr: { rdma: { ...rdma, remoteAddr } } })).toBe(EINVAL);
      const wr = { atomic: { ...atomic, remoteAddr } };
      expect(postSend(qp, { ...base, opcode: IBV_WR_ATOMIC_CMP_AND_SWP, wr })).toBe(EINVAL);
    }
    expect(trace()).toEqual(before);
  });

  it.each([1, 2, 3])('the rest of a list after %i good ones, and names the bad one', (good) => {
    for (const [, values, change] of sendFields) {
      const bad: IbvSendWr = { ...base, ...change(values[0]!), next: { ...base } };
      let list = bad;
      for (let count = 0; count < good; count++) list = { ...base, wrId: count, next: list };
      const { head } = qp.sendRing;
      qp.sendRing.tail = head;
      const found: BadWr<IbvSendWr> = { wr: null, index: -1 };
      expect(postSend(qp, list, found)).toBe(EINVAL);
      expect(found.index).toBe(good);
      expect(found.wr).toBe(bad);
      expect(qp.sendRing.head - head).toBe(good);
    }
  });
});

describe('postSend accepts', () => {
  it.each([
    ['length', [0, 1, length], (bytes: number) => ({ sgList: [{ ...sge, length: bytes }] })],
    ['lkey', [0, 2 ** 31, uint32], (lkey: number) => ({ sgList: [{ ...sge, lkey }] })],
    ['addr', [0, 2 ** 31, 2 ** 32, 2 ** 53 - 1], (addr: number) => ({ sgList: [{ ...sge, addr }] })],
    ['rkey', [0, 2 ** 31, uint32], (rkey: number) => ({ wr: { rdma: { ...rdma, rkey } } })],
    ['immData', [0, 2 ** 31, uint32], (immData: number) => ({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM, immData })],
  ])('every %s that fits', (_name, values, change) => {
    for (const value of values) expect(postSend(qp, { ...base, ...change(value) })).toBe(0);
  });

  it.each([0xffff_8880_3e74_9f80n, 2n ** 64n - 1n, 0x5000n])(
    'sheet 6.3: a peer’s address of 64 bits, as of the memory of its kernel: %#x',
    (remoteAddr) => {
      for (const more of [
        { wr: { rdma: { ...rdma, remoteAddr } } },
        { opcode: IBV_WR_ATOMIC_CMP_AND_SWP, wr: { atomic: { ...atomic, remoteAddr } } },
      ]) {
        const { address: at } = qp.sendRing.slotAt(qp.sendRing.head);
        expect(postSend(qp, { ...base, ...more })).toBe(0);
        expect(process.view.getBigUint64(at + 16)).toBe(remoteAddr);
      }
    },
  );

  it('sheet 6.3: a buffer of length 0 as libmlx4 does, as an empty inline segment', () => {
    postSend(qp, { ...base, sgList: [{ ...sge, length: 0 }] });
    const { address: at } = qp.sendRing.slotAt(0);
    expect(process.view.getUint32(at + 32)).toBe(0x8000_0000);
  });

  it('any number as wrId, and returns it unchanged', async () => {
    for (const wrId of hostile) {
      expect(postRecv(qp, { ...receive, wrId })).toBe(0);
      const { head, tail, wqeCount } = qp.receiveRing!;
      expect(qp.receiveRing!.wrIds[(head - 1) & (wqeCount - 1)]).toBe(wrId);
      qp.receiveRing!.tail = tail + 1;
    }
  });

  it('inline data only from mapped memory: otherwise EFAULT, and nothing is posted', () => {
    const { memory } = process.platform;
    const translate = memory.physicalAddress;
    const mapped = process.map(4096);
    memory.physicalAddress = (at) => (at < mapped || at >= mapped + 4096 ? -1 : translate(at));
    const wr = (addr: number, bytes: number): IbvSendWr => ({
      ...{ ...base, sendFlags: IBV_SEND_INLINE },
      sgList: [{ addr, length: bytes, lkey: 0 }],
    });
    expect(postSend(qp, wr(mapped, 20))).toBe(0);
    const before = trace();
    expect(postSend(qp, wr(mapped - 1, 20))).toBe(EFAULT);
    expect(postSend(qp, wr(mapped + 4090, 20))).toBe(EFAULT);
    expect(postSend(qp, wr(0, 20))).toBe(EFAULT);
    expect(trace()).toEqual(before);
  });
});

describe('receives reject with EINVAL, and have posted nothing,', () => {
  const fields: readonly (readonly [string, readonly number[], (value: number) => Partial<IbvRecvWr>])[] = [
    ['numSge', outside(2), (numSge) => ({ numSge })],
    ['addr', outside(address), (addr) => ({ sgList: [{ ...sge, addr }] })],
    ['length', outside(length), (bytes) => ({ sgList: [{ ...sge, length: bytes }] })],
    ['lkey', outside(uint32), (lkey) => ({ sgList: [{ ...sge, lkey }] })],
  ];
  it.each(fields)('%s that does not fit, on QPs and shared queues', (_name, values, change) => {
    const before = trace();
    for (const value of values) {
      const bad = { ...receive, ...change(value) };
      for (const post of [postRecv.bind(undefined, qp), postSrqRecv.bind(undefined, srq)]) {
        const found: BadWr<IbvRecvWr> = { wr: null, index: -1 };
        expect(post(bad, found), String(value)).toBe(EINVAL);
        expect(found).toEqual({ wr: bad, index: 0 });
      }
    }
    expect(trace()).toEqual(before);
  });
});

describe('control verbs reject with EINVAL, without a kernel call,', () => {
  const ah = { dlid: 1, portNum: 1 };
  const grh = { dgid: new Uint8Array(16), flowLabel: 0, sgidIndex: 0, hopLimit: 1, trafficClass: 0 };
  const route = (changed: Partial<typeof grh>) =>
    createAh(pd, { ...ah, isGlobal: 1, grh: { ...grh, ...changed } });
  const modify = (attr: Parameters<typeof modifyQp>[1], mask: number) => modifyQp(qp, attr, mask);
  const cap = (changed: object) =>
    createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap: changed });
  const any = (value: number) => value as never;

  const calls: readonly (readonly [string, readonly number[], (value: number) => unknown])[] = [
    ['regMr addr', outside(address), (value) => regMr(pd, value, 4096, 1)],
    ['regMr length', [...outside(address), 0], (value) => regMr(pd, 4096, value, 1)],
    ['regMr access', outside(uint32), (value) => regMr(pd, 4096, 4096, value)],
    ['createCq cqe', outside(2 ** 22 - 1), (value) => createCq(context, value)],
    ['createCq compVector', outside(1), (value) => createCq(context, 8, null, null, value)],
    ['resizeCq cqe', outside(2 ** 22 - 1), (value) => resizeCq(cq, value)],
    ['modifyCq count', outside(uint16), (value) => modifyCq(cq, value, 1)],
    ['modifyCq period', outside(uint16), (value) => modifyCq(cq, 1, value)],
    ['createSrq maxWr', outside(16_383), (maxWr) => createSrq(pd, { attr: { maxWr, maxSge: 1 } })],
    ['createSrq maxSge', outside(31), (maxSge) => createSrq(pd, { attr: { maxWr: 4, maxSge } })],
    ['modifySrq limit', outside(uint32), (srqLimit) => modifySrq(srq, { srqLimit }, IBV_SRQ_LIMIT)],
    ['modifySrq mask', outside(uint32), (value) => modifySrq(srq, { srqLimit: 1 }, value)],
    ['createQp maxSendWr', outside(16_351), (maxSendWr) => cap({ maxSendWr })],
    ['createQp maxRecvWr', outside(16_351), (maxRecvWr) => cap({ maxRecvWr })],
    ['createQp maxSendSge', outside(8), (maxSendSge) => cap({ maxSendSge })],
    ['createQp maxRecvSge', outside(8), (maxRecvSge) => cap({ maxRecvSge })],
    ['createQp maxInlineData', outside(1024), (maxInlineData) => cap({ maxInlineData })],
    [
      'createQp type',
      outside(4),
      (value) => createQp(pd, { sendCq: cq, recvCq: cq, qpType: any(value), cap: {} }),
    ],
    [
      'createQp sqSigAll',
      outside(uint32),
      (sqSigAll) =>
        createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap: {}, sqSigAll }),
    ],
    ['modifyQp mask', outside(uint32), (value) => modify({ qpState: IBV_QPS_RTS }, value)],
    ['modifyQp state', outside(6), (value) => modify({ qpState: any(value) }, IBV_QP_STATE)],
    ['modifyQp current state', outside(6), (value) => modify({ curQpState: any(value) }, IBV_QP_CUR_STATE)],
    ['modifyQp access', outside(uint32), (qpAccessFlags) => modify({ qpAccessFlags }, IBV_QP_ACCESS_FLAGS)],
    ['modifyQp port', outside(uint8), (portNum) => modify({ portNum }, IBV_QP_PORT)],
    ['modifyQp Q_Key', outside(uint32), (qkey) => modify({ qkey }, IBV_QP_QKEY)],
    ['modifyQp dlid', outside(uint16), (dlid) => modify({ ahAttr: { ...ah, dlid } }, IBV_QP_AV)],
    ['modifyQp sl', outside(15), (sl) => modify({ ahAttr: { ...ah, sl } }, IBV_QP_AV)],
    ['createAh dlid', outside(uint16), (dlid) => createAh(pd, { ...ah, dlid })],
    ['createAh sl', outside(15), (sl) => createAh(pd, { ...ah, sl })],
    ['createAh path bits', outside(127), (srcPathBits) => createAh(pd, { ...ah, srcPathBits })],
    ['createAh rate', outside(uint8), (staticRate) => createAh(pd, { ...ah, staticRate })],
    ['createAh isGlobal', outside(1), (isGlobal) => createAh(pd, { ...ah, isGlobal, grh })],
    ['createAh port', outside(2), (portNum) => createAh(pd, { ...ah, portNum })],
    ['createAh flow label', outside(2 ** 20 - 1), (flowLabel) => route({ flowLabel })],
    ['createAh GID index', outside(127), (sgidIndex) => route({ sgidIndex })],
    ['createAh hop limit', outside(uint8), (hopLimit) => route({ hopLimit })],
    ['createAh traffic class', outside(uint8), (trafficClass) => route({ trafficClass })],
    ['queryPort port', outside(uint8), (value) => queryPort(context, value)],
    ['queryGid index', outside(uint16), (value) => queryGid(context, 1, value)],
    ['queryPkey index', outside(uint16), (value) => queryPkey(context, 1, value)],
    ['getAsyncEvent time', outside(address), (value) => getAsyncEvent(context, value)],
    ['ackCqEvents count', outside(uint32), (value) => ackCqEvents(cq, value)],
    [
      'pollCq max',
      outside(length).filter((value) => value >= 0 || value % 1 !== 0),
      (value) => pollCq(cq, value, [new IbvWc()]),
    ],
    ['spinCq max', [0, ...outside(1)], (value) => spinCq(cq, value, [new IbvWc()])],
  ];

  it.each(calls)('for %s that does not fit', async (_name, values, call) => {
    expect(values.length).toBeGreaterThan(8);
    process.calls.length = 0;
    const pages = process.mappedPages;
    for (const value of values) {
      const attempt = async () => call(value);
      await expect(attempt(), String(value)).rejects.toMatchObject({ name: 'VerbsError', code: 'EINVAL' });
    }
    expect(process.calls).toEqual([]);
    expect(process.mappedPages).toBe(pages);
  });

  it('reqNotifyCq returns EINVAL for a flag that is not an int, and arms nothing', () => {
    process.stores.length = 0;
    for (const value of [Number.NaN, 0.5, 2 ** 32, 1e300]) expect(reqNotifyCq(cq, value)).toBe(EINVAL);
    expect(process.stores).toEqual([]);
  });
});

describe('a message channel rejects with EINVAL, and has begun nothing,', () => {
  const config = Object.fromEntries(
    Object.entries(messagingParameters).map(([name, parameter]) => [name, parameter.default]),
  ) as unknown as MessagingConfig;

  it('an address or a length that is not a whole number', async () => {
    const channel = await MessageChannel.create(pd, { ...config, cutoffBytes: 1024 });
    const { head } = channel.qp.sendRing;
    process.calls.length = 0;
    const bad = outside(address);
    for (const value of bad) {
      for (const [at, bytes] of [
        [value, 8],
        [8, value],
      ] as const) {
        await expect(channel.send(at, bytes)).rejects.toMatchObject({ code: 'EINVAL' });
        await expect(channel.receive(at, bytes)).rejects.toMatchObject({ code: 'EINVAL' });
        await expect(channel.cache.acquire(at, bytes)).rejects.toMatchObject({ code: 'EINVAL' });
      }
    }
    await expect(channel.send(8, 2 ** 30 + 1)).rejects.toMatchObject({ code: 'EMSGSIZE' });
    expect(channel.counts).toEqual({ eager: 0, rendezvous: 0, received: 0 });
    expect([channel.qp.sendRing.head, process.calls]).toEqual([head, []]);
  });
});
