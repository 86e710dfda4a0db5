import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { controlSegment, inlineHeader, wqeStamp } from '../abi/wqe.ts';
import { inlineBytes, inlinePieces } from '../abi/wqe-inline.ts';
import { viewOf } from '../base/bytes.ts';
import { QpStateVerb, QpTypeVerb } from '../driver/uapi.ts';
import {
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
  IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
} from './constants.ts';
import { createCq } from './cq.ts';
import { getDeviceList, openDevice } from './device.ts';
import { allocPd } from './memory.ts';
import type { BadWr, IbvContext, IbvCq, IbvPd, IbvQp, IbvRecvWr, IbvSendWr } from './objects.ts';
import { postRecv, postSrqRecv } from './post-recv.ts';
import { postSend } from './post-send.ts';
import { createQp, type IbvQpInitAttr, modifyQp } from './qp.ts';
import { sendSizesOf } from './send-ring.ts';
import { createSrq } from './srq.ts';
import { TestProcess, uarBusAddress, userOffset } from './testing.ts';
import { EINVAL, ENOMEM } from './verbs-error.ts';

const { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTS } = QpStateVerb;
const { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND } = QpTypeVerb;

let process: TestProcess;
let context: IbvContext;
let pd: IbvPd;
let cq: IbvCq;

beforeEach(async () => {
  process = new TestProcess({}, true);
  context = await openDevice(getDeviceList(process.platform)[0]!);
  pd = await allocPd(context);
  cq = await createCq(context, 63);
});

async function newQp(cap: IbvQpInitAttr['cap'] = {}, qpType: QpTypeVerb = IBV_QPT_RC): Promise<IbvQp> {
  const full = { maxSendWr: 16, maxSendSge: 4, maxRecvWr: 4, maxRecvSge: 2, ...cap };
  const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType, cap: full });
  await modifyQp(qp, { qpState: IBV_QPS_INIT }, 1);
  qp.state = IBV_QPS_RTS;
  return qp;
}

const write = (overrides: Partial<IbvSendWr> = {}): IbvSendWr => ({
  wrId: 7,
  sgList: [{ addr: 0x1000, length: 64, lkey: 0x1100 }],
  numSge: 1,
  opcode: IBV_WR_RDMA_WRITE,
  sendFlags: IBV_SEND_SIGNALED,
  wr: { rdma: { remoteAddr: 0x5000, rkey: 0x1000 } },
  ...overrides,
});

/** A list of requests, each a copy with its own ID. */
function list(
  count: number,
  make: (index: number) => IbvSendWr = (index) => write({ wrId: index }),
): IbvSendWr {
  let head: IbvSendWr | null = null;
  for (let index = count - 1; index >= 0; index--) head = { ...make(index), next: head };
  return head!;
}

const wqeAt = (qp: IbvQp, counter: number): ReturnType<typeof controlSegment.decode> =>
  controlSegment.decode(process.bytes, qp.sendRing.slotAt(counter).address);

describe('sizes', () => {
  it.each([
    // Captured: stride and count of the send queue for the sizes that the tools request.
    ['ibv_rc_pingpong', IBV_QPT_RC, 1, 1, 0, 6, 6],
    ['ibv_ud_pingpong', IBV_QPT_UD, 1, 1, 0, 7, 5],
    ['ib_send_lat with 236 bytes inline', IBV_QPT_RC, 1, 1, 236, 9, 3],
    ['ib_write_lat with 220 bytes inline', IBV_QPT_RC, 1, 1, 220, 9, 3],
  ])('of %s are those of libmlx4', (_tool, type, wr, sge, inline, logStride, logCount) => {
    expect(sendSizesOf(type, wr, sge, inline)).toMatchObject({ logStride, logCount });
  });

  it('grants no more buffers than a WQE has units for: 63 of 16 bytes, including control and address segment', () => {
    expect(sendSizesOf(IBV_QPT_RC, 1, 32, 0)).toMatchObject({ logStride: 10, maxSge: 63 - 2 });
    expect(sendSizesOf(IBV_QPT_RC, 1, 30, 0)).toMatchObject({ logStride: 9, maxSge: 32 - 2 });
  });

  it.each([
    // 63 units are 1,008 bytes. RC: a SEND has 16 before the data, and 16 inline segments, of 4 each; UD: 64, and 15 segments.
    ['RC', IBV_QPT_RC, 1008 - 16 - 16 * 4],
    ['UC', IBV_QPT_UC, 1008 - 16 - 16 * 4],
    ['XRC', IBV_QPT_XRC_SEND, 1008 - 16 - 16 * 4],
    ['UD', IBV_QPT_UD, 1008 - 64 - 15 * 4],
  ])(
    'grants no more inline data than a WQE of %s has units for, and rejects one byte more',
    async (_name, type, bytes) => {
      expect(sendSizesOf(type, 1, 1, bytes)).toMatchObject({ logStride: 10, maxInline: bytes });
      await expect(newQp({ maxInlineData: bytes + 1 }, type)).rejects.toMatchObject({ code: 'EINVAL' });
    },
  );

  it.each([
    ['RC', IBV_QPT_RC, 63 - 2],
    ['UD', IBV_QPT_UD, 63 - 4],
  ])(
    'takes max_sge of the device, 32, as buffers of a request of %s, and no more',
    async (_name, type, granted) => {
      // libmlx4 compares both directions with the smaller limit, although the longest WQE has room for 61 and 59.
      const { sendRing } = await newQp({ maxSendSge: 32 }, type);
      // A WQE of 34 or 36 units takes 64.
      expect(sendRing.maxSge).toBe(granted);
      await expect(newQp({ maxSendSge: 33 }, type)).rejects.toThrow('maxSendSge is 33, expected 0 to 32');
    },
  );

  it('sheet 6.1: leave 2 KiB and one WQE unused, and report it', () => {
    // 64-byte WQEs: 32 + 1 spare; 128 requested + 33 spare need 256, of which 223 are usable.
    expect(sendSizesOf(IBV_QPT_RC, 128, 1, 0)).toMatchObject({
      spareWqes: 33,
      maxPost: 223,
      maxSge: 2,
      maxInline: 28,
    });
  });

  it('grant at least the requested sizes, and WQEs that hold them', () => {
    const wr = fc.integer({ min: 1, max: 16_000 });
    const sge = fc.integer({ min: 1, max: 30 });
    const inline = fc.integer({ min: 0, max: 884 });
    fc.assert(
      fc.property(
        fc.constantFrom(IBV_QPT_RC, IBV_QPT_UD),
        wr,
        sge,
        inline,
        (type, maxWr, maxSge, maxInline) => {
          const sizes = sendSizesOf(type, maxWr, maxSge, maxInline);
          expect(sizes.maxPost).toBeGreaterThanOrEqual(maxWr);
          expect(sizes.maxSge).toBeGreaterThanOrEqual(maxSge);
          expect(sizes.maxInline).toBeGreaterThanOrEqual(maxInline);
          const start = type === IBV_QPT_UD ? 64 : 32;
          expect(start + inlineBytes(start, sizes.maxInline)).toBeLessThanOrEqual(2 ** sizes.logStride);
          const ofSend = type === IBV_QPT_UD ? 64 : 16;
          expect(ofSend + inlineBytes(ofSend, sizes.maxInline)).toBeLessThanOrEqual(63 * 16);
        },
      ),
    );
  });
});

describe('postSend', () => {
  it('rings one doorbell for a list and keeps every ID', async () => {
    const qp = await newQp();
    process.stores.length = 0;
    expect(postSend(qp, list(4))).toBe(0);
    const device = process.takeDeviceStores();
    expect(device).toHaveLength(1);
    expect(device[0]!.address).toBe(uarBusAddress + 0x14);
    expect([0, 1, 2, 3].map((counter) => qp.sendRing.slotAt(counter).wrId)).toEqual([0, 1, 2, 3]);
  });

  it('makes the doorbell visible after the WQEs', async () => {
    const qp = await newQp();
    process.stores.length = 0;
    postSend(qp, list(2));
    // WQE, stamp, WQE, doorbell, stamp: the last stamp does not delay the doorbell.
    const kinds = process.stores.map(({ kind }) => kind);
    expect(kinds).toEqual(['memory', 'memory', 'memory', 'uncached', 'memory']);
  });

  it('charges the post, its segments, its inline data and the stores to the device', async () => {
    const qp = await newQp({ maxInlineData: 200 });
    process.charged.post = 0;
    postSend(qp, list(2));
    // 100 fixed + 2 segments × 10 + one doorbell of 30.
    expect(process.charged.post).toBe(150);
    process.charged.post = 0;
    const sgList = [{ addr: process.map(200), length: 200, lkey: 0 }];
    postSend(qp, write({ sgList, sendFlags: IBV_SEND_INLINE }));
    // 100 + 10 + ceil(200 / 64) × 8 + BlueFlame: 32 + 16 × 14 = 256 bytes, in four buffers of 64: 4 × 30.
    expect(process.charged.post).toBe(100 + 10 + 4 * 8 + 120);
  });

  it('sheet 6.2: sets the owner bit in every second pass over the queue', async () => {
    const qp = await newQp();
    const { wqeCount } = qp.sendRing;
    for (let counter = 0; counter < 2 * wqeCount + 3; counter++) {
      expect(postSend(qp, write())).toBe(0);
      expect(wqeAt(qp, counter).owner).toBe(Math.floor(counter / wqeCount) % 2);
      qp.sendRing.tail++;
    }
  });

  it('sheet 6.2: marks all WQEs as not valid before the first one is posted', async () => {
    const qp = await newQp();
    for (let slot = 0; slot < qp.sendRing.wqeCount; slot++) expect(wqeAt(qp, slot).owner).toBe(1);
  });

  it('sheet 6.2: stamps the WQE after the headroom beyond its first 64 bytes', async () => {
    const qp = await newQp({ maxInlineData: 220 });
    const { sendRing: ring } = qp;
    process.view.setUint32(ring.slotAt(ring.spareWqes).address + 64, 0);
    postSend(qp, write());
    expect(process.view.getUint32(ring.slotAt(ring.spareWqes).address + 64)).toBe(wqeStamp);
    expect(process.view.getUint32(ring.slotAt(ring.spareWqes).address)).not.toBe(wqeStamp);
  });

  it('leaves the requests of a list longer than the headroom intact', async () => {
    const qp = await newQp({ maxSendWr: 16, maxInlineData: 400 });
    const { sendRing: ring } = qp;
    const length = 200;
    const addr = process.map(length);
    const sgList = [{ addr, length, lkey: 0 }];
    const inline = { sgList, numSge: 1, sendFlags: IBV_SEND_INLINE };
    expect(ring.spareWqes).toBeLessThan(12);
    expect(
      postSend(
        qp,
        list(12, (index) => write({ wrId: index, ...inline })),
      ),
    ).toBe(0);
    for (let counter = 0; counter < 12; counter++) {
      const { address } = ring.slotAt(counter);
      const counts = inlinePieces(32, length).map(
        ({ headerOffset }) => inlineHeader.decode(process.bytes, address + headerOffset).byteCount,
      );
      expect(counts).toEqual(inlinePieces(32, length).map(({ byteCount }) => byteCount));
    }
  });

  it('sheet 6.9: alternates the halves of the BlueFlame register over all QPs of the process', async () => {
    const [one, two] = [await newQp(), await newQp()];
    const sgList = [{ addr: process.map(8), length: 8, lkey: 0 }];
    const short = write({ sgList, sendFlags: IBV_SEND_INLINE });
    process.stores.length = 0;
    for (const qp of [one, two, one]) postSend(qp, short);
    const offsets = process.takeDeviceStores().map(({ address }) => address & 0xfff);
    expect(offsets).toEqual([0, 0x100, 0]);
  });

  it('sheet 6.9: posts every single request by BlueFlame where the library does, lists by the doorbell', async () => {
    const all = new TestProcess({ isBlueFlameForAll: true });
    const opened = await openDevice(getDeviceList(all.platform)[0]!);
    const own = await createCq(opened, 7);
    const cap = { maxSendWr: 4, maxSendSge: 1 } as const;
    const qp = await createQp(await allocPd(opened), { sendCq: own, recvCq: own, qpType: IBV_QPT_RC, cap });
    qp.state = IBV_QPS_RTS;
    const sgList = [{ addr: all.map(8), length: 8, lkey: 0 }];
    postSend(qp, write({ opcode: IBV_WR_RDMA_READ, sgList }));
    expect(all.takeDeviceStores()[0]!.kind).toBe('writeCombining');
    postSend(qp, write({ sgList, next: write({ sgList }) }));
    expect(all.takeDeviceStores()[0]!.kind).toBe('uncached');
  });

  it('sheet 6.9: rings the doorbell for inline data too long for half a register, and without BlueFlame', async () => {
    const qp = await newQp({ maxInlineData: 400 });
    const sgList = [{ addr: process.map(400), length: 400, lkey: 0 }];
    process.stores.length = 0;
    postSend(qp, write({ sgList, sendFlags: IBV_SEND_INLINE }));
    expect(process.takeDeviceStores()[0]!.kind).toBe('uncached');
    const plain = new TestProcess({ blueFlameRegisterBytes: 0 });
    const opened = await openDevice(getDeviceList(plain.platform)[0]!);
    const own = await createCq(opened, 7);
    const init = {
      sendCq: own,
      recvCq: own,
      qpType: IBV_QPT_RC,
      cap: { maxSendWr: 1, maxSendSge: 1 },
    } as const;
    const other = await createQp(await allocPd(opened), init);
    other.state = IBV_QPS_RTS;
    postSend(other, write({ opcode: IBV_WR_RDMA_READ }));
    expect(plain.takeDeviceStores()[0]!.kind).toBe('uncached');
  });

  it.each([
    ['SEND', IBV_WR_SEND, 928],
    ['WRITE', IBV_WR_RDMA_WRITE, 1008 - 32 - 16 * 4],
  ])(
    'writes the longest WQE of a %s with its size of 63 units and no fence, and none that is longer',
    async (_name, opcode, length) => {
      const qp = await newQp({ maxInlineData: 928 });
      const addr = process.map(1024);
      const inline = (bytes: number): IbvSendWr =>
        write({ opcode, sgList: [{ addr, length: bytes, lkey: 0 }], sendFlags: IBV_SEND_INLINE });
      expect(postSend(qp, inline(length + 1))).toBe(EINVAL);
      expect(postSend(qp, inline(length))).toBe(0);
      expect(wqeAt(qp, 0)).toMatchObject({ ds: 63, fence: 0 });
    },
  );

  it('sheet 6.3: cuts inline data at 64-byte boundaries, for any buffers', async () => {
    const qp = await newQp({ maxInlineData: 400, maxSendSge: 4 });
    const lengths = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(lengths, (sizes) => {
        const sgList = sizes.map((length, at) => {
          const addr = process.map(Math.max(1, length));
          process.bytes.fill(at + 1, addr - userOffset, addr - userOffset + length);
          return { addr, length, lkey: 0 };
        });
        qp.sendRing.head = 0;
        qp.sendRing.tail = 0;
        postSend(qp, write({ sgList, numSge: sgList.length, sendFlags: IBV_SEND_INLINE }));
        const total = sizes.reduce((sum, size) => sum + size, 0);
        const slot = qp.sendRing.slotAt(0).address;
        const pieces = inlinePieces(32, total);
        const data = pieces.flatMap(({ headerOffset, byteCount }) => {
          const header = inlineHeader.decode(process.bytes, slot + headerOffset);
          expect(header).toMatchObject({ isInline: 1, byteCount });
          const start = slot + headerOffset + 4;
          return [...process.bytes.slice(start, start + byteCount)];
        });
        expect(data).toEqual(sizes.flatMap((size, at) => new Array<number>(size).fill(at + 1)));
        expect(wqeAt(qp, 0).ds * 16).toBe(32 + inlineBytes(32, total));
      }),
    );
  });

  it('tells the tap how many requests of a new queue can be outstanding: fewer than it has WQEs', async () => {
    process.taps.length = 0;
    const { qpNum, sendRing } = await newQp({ maxSendWr: 1, maxSendSge: 1, maxInlineData: 0 });
    expect([sendRing.wqeCount, sendRing.maxPost]).toEqual([64, 31]);
    expect(process.taps).toEqual([{ what: 'opened', args: [qpNum, 32] }]);
  });

  it('notifies the tap when something was posted, with the counters', async () => {
    const qp = await newQp();
    process.taps.length = 0;
    postSend(qp, list(2));
    expect(process.taps).toEqual([
      { what: 'posted', args: [qp.qpNum, 0, 0x08, process.time] },
      { what: 'posted', args: [qp.qpNum, 1, 0x08, process.time] },
    ]);
  });
});

describe('masked atomics', () => {
  const atomic = {
    remoteAddr: 0x1_0000_5000,
    rkey: 0x1234,
    compareAdd: 0x0102_0304_0506_0708n,
    swap: 0x1112_1314_1516_1718n,
    compareAddMask: 0x2122_2324_2526_2728n,
    swapMask: 0x3132_3334_3536_3738n,
  };
  const request = (opcode: number) =>
    write({ opcode, wr: { atomic }, sgList: [{ addr: 0x1000, length: 8, lkey: 0x1100 }] });
  const bytesOf = (qp: IbvQp, units: number): string => {
    const { address } = qp.sendRing.slotAt(0);
    return Buffer.from(process.bytes.slice(address + 16, address + 16 * units)).toString('hex');
  };
  const remote = '0000000100005000' + '0000123400000000';
  const result = '0000000800001100' + '0000000000001000';

  it('sheet 6.3: have swap, compare and the masks of both after the remote address, or addend and boundaries', async () => {
    const swapping = await newQp({ maxSendSge: 4 });
    expect(postSend(swapping, request(IBV_WR_MASKED_ATOMIC_CMP_AND_SWP))).toBe(0);
    expect(wqeAt(swapping, 0)).toMatchObject({ opcode: 0x14, ds: 5 });
    expect(bytesOf(swapping, 5)).toBe(
      `${remote}1112131415161718010203040506070831323334353637382122232425262728${result}`,
    );
    const adding = await newQp({ maxSendSge: 1 });
    expect(postSend(adding, request(IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD))).toBe(0);
    expect(wqeAt(adding, 0)).toMatchObject({ opcode: 0x15, ds: 4 });
    expect(bytesOf(adding, 4)).toBe(`${remote}01020304050607082122232425262728${result}`);
  });

  it('need room for the masks, which a queue has only on request, and a service that carries them', async () => {
    const cap = { maxSendWr: 4, maxSendSge: 1 } as const;
    const make = async (hasMaskedAtomics: boolean, qpType: QpTypeVerb = IBV_QPT_RC): Promise<IbvQp> => {
      const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType, cap: { ...cap }, hasMaskedAtomics });
      qp.state = IBV_QPS_RTS;
      return qp;
    };
    expect(postSend(await make(false), request(IBV_WR_MASKED_ATOMIC_CMP_AND_SWP))).toBe(EINVAL);
    expect(postSend(await make(true), request(IBV_WR_MASKED_ATOMIC_CMP_AND_SWP))).toBe(0);
    for (const type of [IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND])
      for (const opcode of [IBV_WR_MASKED_ATOMIC_CMP_AND_SWP, IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD])
        expect(
          postSend(await make(true, type), { ...request(opcode), qpType: { xrc: { remoteSrqn: 1 } } }),
        ).toBe(EINVAL);
  });
});

describe('postSend rejects', () => {
  it('a full queue with ENOMEM, and posts the earlier requests of the list', async () => {
    const qp = await newQp({ maxSendWr: 16 });
    const { maxPost } = qp.sendRing;
    const bad: BadWr<IbvSendWr> = { wr: null, index: -1 };
    process.stores.length = 0;
    expect(postSend(qp, list(maxPost + 2), bad)).toBe(ENOMEM);
    expect(bad.index).toBe(maxPost);
    expect(bad.wr!.wrId).toBe(maxPost);
    expect(qp.sendRing.head).toBe(maxPost);
    expect(process.takeDeviceStores()).toHaveLength(1);
  });

  it.each([
    ['too many buffers', { sgList: new Array(40).fill({ addr: 0, length: 1, lkey: 0 }), numSge: 40 }],
    ['more buffers than the list has', { numSge: 3 }],
    ['an unknown opcode', { opcode: 99 }],
    ['a write without an address', { wr: {} }],
    ['an inline read', { opcode: IBV_WR_RDMA_READ, sendFlags: IBV_SEND_INLINE }],
    ['an atomic of two buffers', { opcode: 5, numSge: 0 }],
    [
      'a masked atomic without masks',
      {
        opcode: IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
        wr: { atomic: { remoteAddr: 8, rkey: 1, compareAdd: 1n, swap: 0n } },
      },
    ],
  ])('%s with EINVAL, and half-posts nothing', async (_what, wrong) => {
    const qp = await newQp();
    process.stores.length = 0;
    const bad: BadWr<IbvSendWr> = { wr: null, index: -1 };
    const first = write({ wrId: 1 });
    const second = write({ wrId: 2, ...wrong });
    expect(postSend(qp, { ...first, next: second }, bad)).toBe(EINVAL);
    expect(bad).toEqual({ wr: second, index: 1 });
    expect(qp.sendRing.head).toBe(1);
    // The single WQE, the stamp before the failed one, the doorbell, the last stamp.
    expect(process.stores.map(({ kind }) => kind)).toEqual(['memory', 'memory', 'uncached', 'memory']);
    expect(postSend(qp, second, bad)).toBe(EINVAL);
    expect(qp.sendRing.head).toBe(1);
  });

  it('inline data longer than granted with EINVAL', async () => {
    const qp = await newQp({ maxInlineData: 28 });
    const { maxInline } = qp.sendRing;
    const addr = process.map(1000);
    const send = (length: number): number =>
      postSend(qp, write({ sgList: [{ addr, length, lkey: 0 }], sendFlags: IBV_SEND_INLINE }));
    expect(send(maxInline)).toBe(0);
    expect(send(maxInline + 1)).toBe(EINVAL);
  });

  it('states before RTS with EINVAL', async () => {
    const qp = await newQp();
    for (const state of [IBV_QPS_RESET, IBV_QPS_INIT, QpStateVerb.IBV_QPS_RTR]) {
      qp.state = state;
      expect(postSend(qp, write())).toBe(EINVAL);
    }
    for (const state of [QpStateVerb.IBV_QPS_SQD, QpStateVerb.IBV_QPS_ERR]) {
      qp.state = state;
      expect(postSend(qp, write())).toBe(0);
    }
  });

  it('sheet 6.4: writes on UD, and sends without an address handle', async () => {
    const qp = await newQp({}, IBV_QPT_UD);
    expect(postSend(qp, write())).toBe(EINVAL);
    expect(postSend(qp, write({ opcode: IBV_WR_SEND, wr: {} }))).toBe(EINVAL);
  });
});

describe('receives', () => {
  const receive = (wrId: number, numSge = 1): IbvRecvWr => ({
    wrId,
    sgList: new Array(numSge).fill({ addr: 0x1000, length: 64, lkey: 0x1100 }),
    numSge,
  });

  it('sheet 6.8: count in the doorbell record, without any store to the device', async () => {
    const qp = await newQp();
    process.stores.length = 0;
    expect(postRecv(qp, { ...receive(1), next: receive(2) })).toBe(0);
    expect(process.stores.every(({ kind }) => kind === 'memory')).toBe(true);
    expect(process.view.getUint32(qp.receiveRing!.record.physicalAddress)).toBe(2);
  });

  it('are rejected when the queue is full, the list too long or the QP in RESET', async () => {
    const qp = await newQp();
    const bad: BadWr<IbvRecvWr> = { wr: null, index: -1 };
    for (let posted = 0; posted < 4; posted++) expect(postRecv(qp, receive(posted))).toBe(0);
    expect(postRecv(qp, receive(4), bad)).toBe(ENOMEM);
    expect(bad.wr!.wrId).toBe(4);
    qp.receiveRing!.tail = 4;
    expect(postRecv(qp, receive(5, 3))).toBe(EINVAL);
    qp.state = IBV_QPS_RESET;
    expect(postRecv(qp, receive(5))).toBe(EINVAL);
  });

  it('sheet 6.5: of a shared queue use the free list in order and leave its last WQE', async () => {
    const srq = await createSrq(pd, { attr: { maxWr: 7, maxSge: 1 } });
    const posted = Array.from({ length: 7 }, (_, index) => postSrqRecv(srq, receive(index)));
    expect(posted).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(postSrqRecv(srq, receive(7))).toBe(ENOMEM);
    expect(process.view.getUint32(srq.ring.record.physicalAddress)).toBe(7);
    expect(postSrqRecv(srq, receive(8, 2))).toBe(EINVAL);
  });

  it('sheet 6.4: end a list that is shorter than the longest with the invalid key', async () => {
    const qp = await newQp();
    postRecv(qp, receive(1));
    const view = viewOf(process.bytes.subarray(qp.receiveRing!.slots[0]!));
    expect([view.getUint32(16), view.getUint32(20)]).toEqual([0, 0x100]);
  });
});
