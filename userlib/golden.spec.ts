/** The bytes of libmlx4: work requests decoded from the golden captures must produce the same WQEs. */
import { describe, expect, it } from 'vitest';
import { linesOf, placeOf, readGolden, type WqeLine } from '../abi/testing/golden.ts';
import {
  addressVector,
  atomicSegment,
  bindSegment,
  controlSegment,
  datagramSegment,
  dataPointer,
  inlineHeader,
  localInvalidateSegment,
  remoteAddressSegment,
} from '../abi/wqe.ts';
import { WqeOpcode } from '../abi/wqe-opcodes.ts';
import { fromHex, toHex, viewOf } from '../base/bytes.ts';
import { AccessFlag, MwType, QpStateVerb, QpTypeVerb } from '../driver/uapi.ts';
import { SendFlag, WrOpcode } from './constants.ts';
import { createCq } from './cq.ts';
import { getDeviceList, openDevice } from './device.ts';
import { allocPd } from './memory.ts';
import type { IbvAh, IbvPd, IbvQp, IbvSendWr, IbvSge } from './objects.ts';
import { postRecv, postSrqRecv } from './post-recv.ts';
import { postSend } from './post-send.ts';
import { createQp } from './qp.ts';
import { QueueMemory } from './queue-memory.ts';
import { SendRing, type SendSizes } from './send-ring.ts';
import { createSrq } from './srq.ts';
import { blueFlameBusAddress, TestProcess, uarBusAddress, userOffset } from './testing.ts';

const golden = readGolden();
/** QP types by service type. */
const types: Readonly<Record<number, Exclude<QpTypeVerb, typeof QpTypeVerb.IBV_QPT_XRC_RECV>>> = {
  0: QpTypeVerb.IBV_QPT_RC,
  1: QpTypeVerb.IBV_QPT_UC,
  3: QpTypeVerb.IBV_QPT_UD,
  6: QpTypeVerb.IBV_QPT_XRC_SEND,
};
const wrOpcodes = new Map<number, number>([
  [WqeOpcode.RDMA_WRITE, WrOpcode.IBV_WR_RDMA_WRITE],
  [WqeOpcode.RDMA_WRITE_IMM, WrOpcode.IBV_WR_RDMA_WRITE_WITH_IMM],
  [WqeOpcode.SEND, WrOpcode.IBV_WR_SEND],
  [WqeOpcode.SEND_IMM, WrOpcode.IBV_WR_SEND_WITH_IMM],
  [WqeOpcode.RDMA_READ, WrOpcode.IBV_WR_RDMA_READ],
  [WqeOpcode.ATOMIC_CS, WrOpcode.IBV_WR_ATOMIC_CMP_AND_SWP],
  [WqeOpcode.ATOMIC_FA, WrOpcode.IBV_WR_ATOMIC_FETCH_AND_ADD],
  [WqeOpcode.LOCAL_INVAL, WrOpcode.IBV_WR_LOCAL_INV],
  [WqeOpcode.BIND_MW, WrOpcode.IBV_WR_BIND_MW],
  [WqeOpcode.SEND_INVAL, WrOpcode.IBV_WR_SEND_WITH_INV],
]);

/** WQEs of libmlx4 with opcodes that this library implements; kernel QPs (MLX, IPoIB) are excluded. */
const wqes = linesOf(golden, 'wqe').filter(
  (line) =>
    types[line.qp_type] !== undefined &&
    wrOpcodes.has(Number(line.opcode)) &&
    !line.file.startsWith('x-ipoib'),
);

interface Setup {
  readonly process: TestProcess;
  readonly pd: IbvPd;
  readonly qp: IbvQp;
}

/** A QP in RTS whose send queue has the captured stride and count, at the captured counter. */
async function setupFor(line: WqeLine, logCount: number): Promise<Setup> {
  const process = new TestProcess();
  const context = await openDevice(getDeviceList(process.platform)[0]!);
  const pd = await allocPd(context);
  const cq = await createCq(context, 15);
  process.nextQpn = line.qpn;
  const qpType = types[line.qp_type]!;
  const made = await createQp(pd, { sendCq: cq, recvCq: cq, qpType, cap: { maxSendWr: 1, maxSendSge: 1 } });
  const sizes: SendSizes = {
    logStride: Math.log2(line.slot_size),
    logCount,
    spareWqes: 1,
    maxPost: 2 ** logCount - 1,
    maxSge: 31,
    maxInline: 1024,
  };
  const buffer = QueueMemory.map(process.platform.memory, 2 ** logCount * line.slot_size)!;
  const sendRing = new SendRing(sizes, qpType, buffer, 0, line.qpn);
  sendRing.head = line.index;
  sendRing.tail = line.index;
  return { process, pd, qp: { ...made, sendRing, state: QpStateVerb.IBV_QPS_RTS } };
}

/** The work request from which a WQE was built; inline data are written to the process's memory. */
function requestOf(bytes: Uint8Array, { process, pd }: Setup, type: QpTypeVerb): IbvSendWr {
  const control = controlSegment.decode(bytes);
  let at = controlSegment.sizeBytes;
  let flags = control.completion === 3 ? SendFlag.IBV_SEND_SIGNALED : 0;
  if (control.fence === 1) flags |= SendFlag.IBV_SEND_FENCE;
  if (control.solicited === 1) flags |= SendFlag.IBV_SEND_SOLICITED;
  const wr: IbvSendWr['wr'] = {};
  if (type === QpTypeVerb.IBV_QPT_UD) {
    const datagram = datagramSegment.decode(bytes, at);
    const vector = bytes.slice(at, at + addressVector.sizeBytes);
    const ah = { context: pd.context, pd, attr: { dlid: 1, portNum: 1 }, addressVector: vector } as IbvAh;
    wr.ud = { ah, remoteQpn: datagram.destinationQpn, remoteQkey: datagram.qkey };
    at += datagramSegment.sizeBytes;
  }
  if (control.opcode === WqeOpcode.LOCAL_INVAL || control.opcode === WqeOpcode.BIND_MW)
    return keyRequestOf(bytes, control.opcode, flags, pd);
  const isSend =
    control.opcode === WqeOpcode.SEND_INVAL ||
    control.opcode === WqeOpcode.SEND ||
    control.opcode === WqeOpcode.SEND_IMM;
  const isAtomic = control.opcode === WqeOpcode.ATOMIC_CS || control.opcode === WqeOpcode.ATOMIC_FA;
  if (!isSend) {
    const { address, rkey } = remoteAddressSegment.decode(bytes, at);
    wr.rdma = { remoteAddr: Number(address), rkey };
    at += remoteAddressSegment.sizeBytes;
    if (isAtomic) {
      const { swapOrAdd, compare } = atomicSegment.decode(bytes, at);
      const isSwap = control.opcode === WqeOpcode.ATOMIC_CS;
      const compareAdd = isSwap ? compare : swapOrAdd;
      wr.atomic = { remoteAddr: Number(address), rkey, compareAdd, swap: isSwap ? swapOrAdd : 0n };
      at += atomicSegment.sizeBytes;
    }
  }
  const sgList: IbvSge[] = [];
  const inline: number[] = [];
  while (at < bytes.length) {
    const header = inlineHeader.decode(bytes, at);
    if (header.isInline === 0) {
      const { byteCount, lkey, address } = dataPointer.decode(bytes, at);
      sgList.push({ addr: Number(address), length: byteCount, lkey });
      at += dataPointer.sizeBytes;
    } else if (header.byteCount === 0) {
      at += dataPointer.sizeBytes;
    } else {
      const start = at + inlineHeader.sizeBytes;
      inline.push(...bytes.slice(start, start + header.byteCount));
      at = start + header.byteCount;
      if (at % 64 !== 0) at = bytes.length;
    }
  }
  if (inline.length > 0) {
    flags |= SendFlag.IBV_SEND_INLINE;
    const addr = process.map(inline.length);
    process.bytes.set(inline, addr - userOffset);
    sgList.push({ addr, length: inline.length, lkey: 0 });
  }
  return {
    wrId: 1,
    sgList,
    numSge: sgList.length,
    opcode: wrOpcodes.get(control.opcode)!,
    sendFlags: flags,
    immData: control.immediate,
    invalidateRkey: control.immediate,
    qpType: { xrc: { remoteSrqn: control.remoteSrqn } },
    wr,
  };
}

/** A local invalidate, or a bind to a region with this lkey. */
function keyRequestOf(bytes: Uint8Array, opcode: number, sendFlags: number, pd: IbvPd): IbvSendWr {
  const at = controlSegment.sizeBytes;
  const request = { wrId: 1, sgList: [], numSge: 0, opcode: wrOpcodes.get(opcode)!, sendFlags };
  if (opcode === WqeOpcode.LOCAL_INVAL)
    return { ...request, invalidateRkey: localInvalidateSegment.decode(bytes, at).key };
  const bind = bindSegment.decode(bytes, at);
  const { context } = pd;
  const type = bind.isType2 === 1 ? MwType.IBV_MW_TYPE_2 : MwType.IBV_MW_TYPE_1;
  const mwAccessFlags =
    bind.remoteReadEnabled * AccessFlag.IBV_ACCESS_REMOTE_READ +
    bind.remoteWriteEnabled * AccessFlag.IBV_ACCESS_REMOTE_WRITE +
    bind.atomicEnabled * AccessFlag.IBV_ACCESS_REMOTE_ATOMIC +
    bind.zeroBased * AccessFlag.IBV_ACCESS_ZERO_BASED;
  const [addr, length] = [Number(bind.address), Number(bind.lengthBytes)];
  const mr = { context, pd, addr, length, handle: 1, lkey: bind.lkey, rkey: bind.lkey };
  const mw = { context, pd, handle: 1, type, rkey: 0 };
  return { ...request, bindMw: { mw, rkey: bind.newRkey, bindInfo: { mr, addr, length, mwAccessFlags } } };
}

const geometryOf = (line: WqeLine): number => {
  const qp = linesOf(golden, 'mtt').find(
    ({ file, object, num }) => file === line.file && object === 'qp' && num === line.qpn,
  );
  return qp?.sq_log_count ?? 6;
};

describe('a posted work request', () => {
  it('golden captures: has the bytes that libmlx4 wrote, for every captured WQE', async () => {
    expect(wqes.length).toBeGreaterThan(200);
    for (const line of wqes) {
      const setup = await setupFor(line, geometryOf(line));
      const expected = fromHex(line.bytes);
      const request = requestOf(expected, setup, setup.qp.qpType);
      expect(postSend(setup.qp, request), placeOf(line)).toBe(0);
      const slot = setup.qp.sendRing.slotAt(line.index).address;
      // A WQE posted in a list rang the doorbell; a WQE posted alone may use BlueFlame and carry its counter.
      const wentByDoorbell = controlSegment.fields.qpn.get(viewOf(expected), 0) === 0;
      const actual = setup.process.bytes.slice(slot, slot + expected.length);
      if (wentByDoorbell || line.file === 'f-read-bw-4096') {
        for (const bytes of [actual, expected]) {
          controlSegment.fields.wqeCounter.set(viewOf(bytes), 0, 0);
          controlSegment.fields.qpn.set(viewOf(bytes), 0, 0);
        }
      }
      if (setup.qp.qpType === QpTypeVerb.IBV_QPT_UD) {
        // VLAN and MAC have no meaning on InfiniBand; libmlx4 sends the previous contents of its address handle's memory.
        const from = controlSegment.sizeBytes + datagramSegment.fields.vlan.wordOffset;
        expected.fill(0, from, controlSegment.sizeBytes + datagramSegment.sizeBytes);
      }
      expect(toHex(actual), placeOf(line)).toBe(toHex(expected));
    }
  });

  it('golden captures, observation 1: goes through BlueFlame with register half, rounded length, counter and QPN', async () => {
    const posts = linesOf(golden, 'blueflame');
    expect(posts.length).toBeGreaterThan(30);
    for (const post of posts) {
      const expected = fromHex(post.bytes);
      const qpn = controlSegment.fields.qpn.get(viewOf(expected), 0);
      const line = wqes.find(
        (wqe) => wqe.file === post.file && wqe.qpn === qpn && post.bytes.startsWith(wqe.bytes.slice(0, 16)),
      )!;
      const setup = await setupFor(line, geometryOf(line));
      setup.qp.context.blueFlameHalf = post.offset === '0x100' ? 1 : 0;
      const wqeBytes = controlSegment.fields.ds.get(viewOf(expected), 0) * 16;
      // BlueFlame also copies the bytes after the WQE in its slot: restores the captured ones there.
      const slot = setup.qp.sendRing.slotAt(line.index).address;
      setup.process.bytes.set(expected.slice(wqeBytes), slot + wqeBytes);
      postSend(setup.qp, requestOf(expected.slice(0, wqeBytes), setup, setup.qp.qpType));
      const stores = setup.process.takeDeviceStores();
      expect(stores).toHaveLength(1);
      expect(stores[0]).toMatchObject({
        kind: 'writeCombining',
        address: blueFlameBusAddress + Number(post.offset),
      });
      expect(toHex(stores[0]!.bytes), placeOf(post)).toBe(post.bytes);
      expect(setup.qp.context.blueFlameHalf).toBe(post.offset === '0x100' ? 0 : 1);
    }
  });

  it('golden captures: rings the doorbell with the bytes captured', async () => {
    for (const doorbell of linesOf(golden, 'send_doorbell')) {
      const line = wqes.find((wqe) => wqe.file === doorbell.file && wqe.qpn === doorbell.qpn);
      if (line === undefined) continue;
      const setup = await setupFor(line, geometryOf(line));
      const request = requestOf(fromHex(line.bytes), setup, setup.qp.qpType);
      postSend(setup.qp, { ...request, next: { ...request } });
      const stores = setup.process.takeDeviceStores();
      expect(stores).toHaveLength(1);
      expect(stores[0]!.address).toBe(uarBusAddress + Number(doorbell.offset));
      expect(toHex(stores[0]!.bytes), placeOf(doorbell)).toBe(doorbell.bytes);
    }
  });
});

describe('a posted receive', () => {
  it('golden captures: has the bytes that libmlx4 wrote, on QPs and on shared queues', async () => {
    const lines = linesOf(golden, 'rq_wqe').filter(({ file }) => !file.startsWith('x-ipoib'));
    expect(lines.length).toBeGreaterThan(60);
    for (const line of lines) {
      const process = new TestProcess();
      const context = await openDevice(getDeviceList(process.platform)[0]!);
      const pd = await allocPd(context);
      const expected = fromHex(line.bytes);
      const start = line.srqn === undefined ? 0 : 16;
      const { byteCount, lkey, address } = dataPointer.decode(expected, start);
      const wr = { wrId: 1, sgList: [{ addr: Number(address), length: byteCount, lkey }], numSge: 1 };
      if (line.srqn === undefined) {
        const cq = await createCq(context, 15);
        const cap = { maxSendWr: 1, maxSendSge: 1, maxRecvWr: 512, maxRecvSge: line.stride / 16 };
        const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: QpTypeVerb.IBV_QPT_RC, cap });
        qp.state = QpStateVerb.IBV_QPS_INIT;
        const ring = qp.receiveRing!;
        ring.head = line.index;
        ring.tail = line.index;
        expect(postRecv(qp, wr)).toBe(0);
        const at = ring.slots[line.index & (ring.wqeCount - 1)]!;
        expect(toHex(process.bytes.slice(at, at + line.stride)), placeOf(line)).toBe(line.bytes);
      } else {
        const srq = await createSrq(pd, { attr: { maxWr: 500, maxSge: 1 } });
        for (let posted = 0; posted <= line.index; posted++) expect(postSrqRecv(srq, wr)).toBe(0);
        const at = srq.ring.slots[line.index]!;
        expect(toHex(process.bytes.slice(at, at + line.stride)), placeOf(line)).toBe(line.bytes);
      }
    }
  });
});
