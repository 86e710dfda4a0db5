/** Fast registration, invalidation and windows, by two data paths and their WQEs. */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { MptStatus } from '../../../abi/mpt.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { oneLineCaches, tightest } from '../testing/data-path-bench.ts';
import { connectedPair, pattern, Region } from '../testing/data-path-verbs.ts';
import {
  bind,
  entryOf,
  freeRegion,
  localInvalidate,
  newWindow,
  register,
  variant,
} from '../testing/key-verbs.ts';
import { type SceneOptions, scene, syndromesOf } from '../testing/scenario.ts';

const { MW_BIND_ERR, LOCAL_PROT_ERR, LOCAL_QP_OP_ERR, REMOTE_ACCESS_ERR, WR_FLUSH_ERR } = CqeSyndrome;
const { REMOTE_INVAL_REQ_ERR, TRANSPORT_RETRY_EXC_ERR } = CqeSyndrome;

/** A QP as a kernel creates it: it may use the reserved key and register memory by work request. */
const ofKernel = { fields: { reservedLkeyEnabled: 1, fastRegisterEnabled: 1 } };

/** A connected pair; b, whose memory is registered, is a kernel. */
const kernelScene = (options: SceneOptions = {}) => scene({ a: ofKernel, b: ofKernel, ...options });
type KernelScene = Awaited<ReturnType<typeof kernelScene>>;

/** Executes b's work requests, given as bytes, and returns their completion statuses. */
async function outcomeOf({ bench, b, bCq }: KernelScene, ...wqes: readonly Uint8Array[]): Promise<number[]> {
  for (const bytes of wqes) b.sendBytes(bytes);
  await bench.run(40);
  return syndromesOf(bCq.drain());
}

/** Returns the completion status of a's WRITE of 100 bytes to b's memory. */
async function writeTo(
  { bench, a, aCq, local }: KernelScene,
  key: number,
  address: number,
): Promise<number[]> {
  a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 100)], remote: { address, key } });
  await bench.run(40);
  return syndromesOf(aCq.drain());
}

describe('fast registration (IBTA vol 1, 10.6.4.2)', () => {
  it.each([{}, oneLineCaches, tightest])(
    'gives a free region pages, range, rights and a variant: %o',
    async (hca) => {
      const s = await kernelScene({ hca });
      const memory = new Region(s.bench.b, 20_000, { pageOffset: 100 });
      const key = variant(freeRegion(s.bench.b, 8), 7);
      expect(await outcomeOf(s, register(s.bench.b, key, memory))).toEqual([0]);
      expect(entryOf(s.bench.b, key)).toMatchObject({ status: MptStatus.VALID, lengthBytes: 20_000n });
      expect(await writeTo(s, key, memory.address + 4000)).toEqual([0]);
      expect(memory.read(4000, 100)).toEqual(s.local.read(0, 100));
    },
  );

  it('IBTA 10.8.3.3: is over before the request that follows it begins, which may use the key', async () => {
    const s = await kernelScene();
    const { bench, b, bCq, aCq, a, local } = s;
    const memory = new Region(bench.b, 5000);
    const key = variant(freeRegion(bench.b, 4), 1);
    memory.write(pattern(3, 5000));
    a.receive([local.part(0, 5000)]);
    b.sendBytes(register(bench.b, key, memory));
    b.send({ opcode: WqeOpcode.SEND, segments: [{ address: memory.address, bytes: 5000, key }] });
    await bench.run(60);
    expect([syndromesOf(bCq.drain()), syndromesOf(aCq.drain())]).toEqual([[0, 0], [0]]);
    expect(local.read(0, 5000)).toEqual(memory.read());
  });

  it('does not wait for what went before it, and completes after it (10.8.3)', async () => {
    const s = await kernelScene();
    const { bench, b, bCq, a, aCq, remote, local } = s;
    const key = freeRegion(bench.b, 8);
    // The peer has no receive posted: the SEND waits for the end of RNR delays.
    b.send({ opcode: WqeOpcode.SEND, segments: [remote.part(0, 10)] });
    b.sendBytes(register(bench.b, key, new Region(bench.b, 5000)));
    await bench.run(8);
    expect(bCq.drain()).toEqual([]);
    expect(entryOf(bench.b, key).status).toBe(MptStatus.VALID);
    a.receive([local.part(0, 10)]);
    await bench.run(100);
    expect([syndromesOf(bCq.drain()), syndromesOf(aCq.drain())]).toEqual([[0, 0], [0]]);
  });

  const refusals: readonly [string, number, (s: KernelScene, memory: Region) => Uint8Array][] = [
    [
      'a region that is valid',
      MW_BIND_ERR,
      ({ bench, remote }, memory) => register(bench.b, remote.key, memory),
    ],
    [
      'one that was not allocated for it',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 8, { fastRegisterEnabled: 0 }), memory),
    ],
    [
      'another PD’s',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 8, { pd: 9 }), memory),
    ],
    [
      'more pages than there is room for',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 4), memory),
    ],
    [
      'remote rights where none were allocated',
      MW_BIND_ERR,
      ({ bench }, memory) =>
        register(bench.b, freeRegion(bench.b, 8, { fastRegisterRemoteAccess: 0 }), memory),
    ],
    [
      'no bytes',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 8), memory, { lengthBytes: 0n }),
    ],
    [
      'addresses beyond 2^64',
      MW_BIND_ERR,
      ({ bench }, memory) =>
        register(bench.b, freeRegion(bench.b, 8), memory, { startAddress: (1n << 64n) - 0x4000n }),
    ],
    [
      'pages too small',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 8), memory, { logPageSize: 11 }),
    ],
    [
      'pages too large',
      MW_BIND_ERR,
      ({ bench }, memory) => register(bench.b, freeRegion(bench.b, 8), memory, { logPageSize: 32 }),
    ],
    ['a key outside the table', MW_BIND_ERR, ({ bench }, memory) => register(bench.b, 0x1fff_0000, memory)],
    ['a window', MW_BIND_ERR, ({ bench }, memory) => register(bench.b, newWindow(bench.b, 2), memory)],
    [
      'a list that cannot be read',
      LOCAL_PROT_ERR,
      ({ bench }, memory) =>
        register(bench.b, freeRegion(bench.b, 8), memory, { pageListAddress: 1n << 40n }),
    ],
    [
      'a WQE that is too short',
      LOCAL_QP_OP_ERR,
      ({ bench }, memory) => {
        const wqe = register(bench.b, freeRegion(bench.b, 8), memory);
        wqe[7] = 3;
        return wqe;
      },
    ],
  ];
  it.each(refusals)('is refused for %s, and fails the QP', async (_name, syndrome, make) => {
    const s = await kernelScene();
    const memory = new Region(s.bench.b, 20_000);
    const wqe = make(s, memory);
    await s.bench.run(2);
    expect(await outcomeOf(s, wqe, localInvalidate(s.remote.key))).toEqual([syndrome, WR_FLUSH_ERR]);
    expect(s.b.state).toBe(QpState.ERR);
    await s.checkBystanders();
  });

  it('sheet 5.1: is refused to QPs that are not a kernel’s', async () => {
    const s = await scene();
    const wqe = register(s.bench.b, freeRegion(s.bench.b, 8), new Region(s.bench.b, 5000));
    expect(await outcomeOf(s, wqe)).toEqual([LOCAL_QP_OP_ERR]);
  });
});

describe('local invalidate (IBTA vol 1, 10.6.5)', () => {
  it('takes every right away from the key, and another variant can be registered', async () => {
    const s = await kernelScene();
    const memory = new Region(s.bench.b, 5000);
    const key = freeRegion(s.bench.b, 4);
    expect(await outcomeOf(s, register(s.bench.b, key, memory), localInvalidate(key))).toEqual([0, 0]);
    expect(entryOf(s.bench.b, key).status).toBe(MptStatus.FREE);
    const next = variant(key, 1);
    expect(await outcomeOf(s, register(s.bench.b, next, memory))).toEqual([0]);
    expect(await writeTo(s, next, memory.address)).toEqual([0]);
    expect(await writeTo(s, key, memory.address)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('waits for all requests of its QP that went before', async () => {
    const s = await kernelScene();
    const { bench, b, bCq, local, remote } = s;
    const remoteTarget = { address: local.address, key: local.key };
    for (let index = 0; index < 3; index++)
      b.send({
        opcode: WqeOpcode.RDMA_READ,
        segments: [remote.part(index * 4096, 4096)],
        remote: remoteTarget,
      });
    b.sendBytes(localInvalidate(remote.key));
    b.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [remote.part(0, 8)], remote: remoteTarget });
    await bench.run(60);
    expect(syndromesOf(bCq.drain())).toEqual([0, 0, 0, 0, LOCAL_PROT_ERR]);
    expect(remote.read(8192, 4096)).toEqual(local.read(0, 4096));
  });

  it('ends when no access under way can reach the memory', async () => {
    const s = await kernelScene();
    const { bench, a, b, bCq, aCq, local, remote, target } = s;
    const write = { opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 16_000)], remote: target };
    for (let index = 0; index < 6; index++) a.send(write);
    await bench.run(9);
    b.sendBytes(localInvalidate(remote.key));
    await bench.until(() => bCq.takenCount() > 0, 60);
    const atCompletion = new Uint8Array(16_384).fill(0xee);
    remote.write(atCompletion);
    await bench.run(60);
    expect(remote.read()).toEqual(atCompletion);
    expect(syndromesOf(aCq.drain())).toContain(REMOTE_ACCESS_ERR);
  });

  const refusals: readonly [string, (s: KernelScene) => number][] = [
    ['another variant', ({ remote }) => variant(remote.key, 1)],
    [
      'a region that may not be invalidated',
      ({ bench }) => new Region(bench.b, 64, { fields: { localInvalidateEnabled: 0 } }).key,
    ],
    ['another PD’s region', ({ bench }) => new Region(bench.b, 64, { pd: 8 }).key],
    [
      'a region with bound windows',
      ({ bench }) => new Region(bench.b, 64, { fields: { boundWindows: 1 } }).key,
    ],
    [
      'what software owns',
      ({ bench }) => new Region(bench.b, 64, { fields: { status: MptStatus.SOFTWARE } }).key,
    ],
    ['a window of type 1', ({ bench }) => newWindow(bench.b, 1, { localInvalidateEnabled: 1 })],
    ['a free window of another PD', ({ bench }) => newWindow(bench.b, 2, { pd: 8 })],
  ];
  it.each(refusals)('is refused for %s', async (_name, keyOf) => {
    const s = await kernelScene();
    const key = keyOf(s);
    await s.bench.run(2);
    expect(await outcomeOf(s, localInvalidate(key))).toEqual([MW_BIND_ERR]);
  });

  it('of a key that is free changes nothing', async () => {
    const s = await kernelScene();
    expect(await outcomeOf(s, localInvalidate(freeRegion(s.bench.b, 4)))).toEqual([0]);
  });
});

describe('SEND with Invalidate (IBTA vol 1, 9.4.1.1.3)', () => {
  const sendInvalidating = ({ a, local }: KernelScene, key: number, bytes = 3000): number =>
    a.send({ opcode: WqeOpcode.SEND_INVAL, segments: [local.part(0, bytes)], immediate: key });

  it.each([{}, oneLineCaches, tightest])(
    'invalidates the key before the receive completes, which names it: %o',
    async (hca) => {
      const s = await kernelScene({ hca });
      const { bench, b, bCq, remote } = s;
      const memory = new Region(bench.b, 4000);
      b.receive([remote.part(0, 4000)]);
      await bench.run(2);
      sendInvalidating(s, memory.key);
      await bench.until(() => bCq.takenCount() > 0, 60);
      expect(entryOf(bench.b, memory.key).status).toBe(MptStatus.FREE);
      expect(remote.read(0, 3000)).toEqual(s.local.read(0, 3000));
    },
  );

  it('has its own receive opcode and brings the key', async () => {
    const s = await kernelScene();
    const memory = new Region(s.bench.b, 4000);
    s.b.receive([s.remote.part(0, 4000)]);
    sendInvalidating(s, memory.key, 10);
    await s.bench.run(40);
    expect(s.bCq.drain()).toMatchObject([{ opcode: 3, immediate: memory.key, byteCount: 10, syndrome: 0 }]);
    expect(syndromesOf(s.aCq.drain())).toEqual([0]);
    expect(await writeTo(s, memory.key, memory.address)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('IBTA 9.9.3, class J: fails the receive when the key may not be invalidated, and is not answered', async () => {
    const s = await kernelScene({ ackTimeout: 1 });
    const memory = new Region(s.bench.b, 4000, { fields: { remoteInvalidateEnabled: 0 } });
    s.b.receive([s.remote.part(0, 4000)]);
    sendInvalidating(s, memory.key);
    await s.bench.run(300);
    expect(syndromesOf(s.bCq.drain())).toEqual([REMOTE_INVAL_REQ_ERR]);
    expect(s.b.state).toBe(QpState.ERR);
    expect(syndromesOf(s.aCq.drain())).toEqual([TRANSPORT_RETRY_EXC_ERR]);
    await s.checkBystanders();
  });

  it('is no request of an unreliable QP', async () => {
    const s = await kernelScene({ a: { fields: { serviceType: 1 } }, b: { fields: { serviceType: 1 } } });
    sendInvalidating(s, s.remote.key);
    await s.bench.run(40);
    expect(syndromesOf(s.aCq.drain())).toEqual([LOCAL_QP_OP_ERR]);
  });
});

describe('the reserved key', () => {
  it('sheet 7.1: reaches memory by DMA address, for both sides of a kernel’s QP', async () => {
    const s = await kernelScene();
    const [from, to] = [s.bench.a.allocate(64), s.bench.b.allocate(64)];
    s.bench.a.memory.bytes.set(pattern(5, 64), from);
    s.b.receive([{ address: to, bytes: 64, key: 0xff00 }]);
    s.a.send({ opcode: WqeOpcode.SEND, segments: [{ address: from, bytes: 64, key: 0xff00 }] });
    await s.bench.run(40);
    expect(syndromesOf([...s.aCq.drain(), ...s.bCq.drain()])).toEqual([0, 0]);
    expect(s.bench.b.memory.bytes.slice(to, to + 64)).toEqual(pattern(5, 64));
  });

  it('is refused to other QPs', async () => {
    const s = await scene();
    s.a.send({ opcode: WqeOpcode.SEND, segments: [{ address: 0, bytes: 64, key: 0xff00 }] });
    await s.bench.run(40);
    expect(syndromesOf(s.aCq.drain())).toEqual([LOCAL_PROT_ERR]);
  });

  it('is never a remote key', async () => {
    const s = await kernelScene();
    expect(await writeTo(s, 0xff00, s.bench.b.allocate(4096))).toEqual([REMOTE_ACCESS_ERR]);
  });
});

describe('memory windows (IBTA vol 1, 10.6.7)', () => {
  const bindable = (s: KernelScene, options = {}): Region =>
    new Region(s.bench.b, 12_000, {
      pageOffset: 500,
      isBindable: true,
      rights: { localRead: true, localWrite: true },
      ...options,
    });
  const binding = (of: Region, key: number, type: 1 | 2, first: number, bytes: number) => ({
    newRkey: key,
    lkey: of.key,
    address: BigInt(of.address + first),
    lengthBytes: BigInt(bytes),
    remoteWriteEnabled: 1,
    remoteReadEnabled: 1,
    isType2: type - 1,
  });

  it.each([1, 2] as const)('of type %i give access to a part of a region that gives none', async (type) => {
    const s = await kernelScene();
    const region = bindable(s);
    const key = variant(newWindow(s.bench.b, type), 3);
    expect(await outcomeOf(s, bind(binding(region, key, type, 5000, 1000)))).toEqual([0]);
    expect(entryOf(s.bench.b, region.key).boundWindows).toBe(1);
    expect(await writeTo(s, key, region.address + 5900)).toEqual([0]);
    expect(region.read(5900, 100)).toEqual(s.local.read(0, 100));
    expect(await writeTo(s, key, region.address + 5901)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('of type 2 may be zero-based, in a page of any size', async () => {
    const s = await kernelScene();
    const region = bindable(s, { logPageBytes: 13 });
    const key = variant(newWindow(s.bench.b, 2), 3);
    expect(await outcomeOf(s, bind({ ...binding(region, key, 2, 9000, 1000), zeroBased: 1 }))).toEqual([0]);
    expect(await writeTo(s, key, 300)).toEqual([0]);
    expect(region.read(9300, 100)).toEqual(s.local.read(0, 100));
  });

  it('of type 1 are bound anew and unbound by binds; the old key is dead at once', async () => {
    const s = await kernelScene();
    const [first, second] = [bindable(s), bindable(s)];
    const key = newWindow(s.bench.b, 1);
    const keys = [1, 2, 3].map((byte) => variant(key, byte));
    await outcomeOf(s, bind(binding(first, keys[0]!, 1, 0, 500)), bind(binding(second, keys[1]!, 1, 0, 500)));
    const countsOf = () => [first, second].map((region) => entryOf(s.bench.b, region.key).boundWindows);
    expect(countsOf()).toEqual([0, 1]);
    expect(await writeTo(s, keys[1]!, second.address)).toEqual([0]);
    expect(await outcomeOf(s, bind({ newRkey: keys[2]! }))).toEqual([0]);
    expect(countsOf()).toEqual([0, 0]);
    expect(await writeTo(s, keys[2]!, second.address)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('of type 2 are invalidated, by either side, and bound again', async () => {
    const s = await kernelScene();
    const region = bindable(s);
    const key = newWindow(s.bench.b, 2);
    const once = binding(region, variant(key, 1), 2, 0, 500);
    expect(await outcomeOf(s, bind(once), localInvalidate(variant(key, 1)))).toEqual([0, 0]);
    expect(entryOf(s.bench.b, region.key).boundWindows).toBe(0);
    const again = binding(region, variant(key, 2), 2, 0, 500);
    expect(await outcomeOf(s, bind(again))).toEqual([0]);
    s.b.receive([s.remote.part(0, 100)]);
    s.a.send({ opcode: WqeOpcode.SEND_INVAL, segments: [s.local.part(0, 10)], immediate: variant(key, 2) });
    await s.bench.run(40);
    expect(syndromesOf(s.bCq.drain())).toEqual([0]);
    expect(entryOf(s.bench.b, key).status).toBe(MptStatus.FREE);
    expect(entryOf(s.bench.b, region.key).boundWindows).toBe(0);
  });

  it('IBTA o10-37.2: of type 2 serve the QP they are bound to, of type 1 every QP of the PD', async () => {
    for (const type of [1, 2] as const) {
      const s = await kernelScene();
      const other = connectedPair(s.bench.a, s.bench.b);
      const region = bindable(s);
      const key = variant(newWindow(s.bench.b, type), 3);
      await outcomeOf(s, bind(binding(region, key, type, 0, 1000)));
      expect(await writeTo(s, key, region.address)).toEqual([0]);
      const through = { ...s, a: other.a, aCq: other.aCq };
      expect(await writeTo(through, key, region.address)).toEqual([type === 1 ? 0 : REMOTE_ACCESS_ERR]);
    }
  });

  it('are no local keys', async () => {
    const s = await kernelScene();
    const region = bindable(s);
    const key = variant(newWindow(s.bench.b, 1), 3);
    await outcomeOf(s, bind(binding(region, key, 1, 0, 1000)));
    s.b.send({ opcode: WqeOpcode.SEND, segments: [{ address: region.address, bytes: 8, key }] });
    await s.bench.run(40);
    expect(syndromesOf(s.bCq.drain())).toEqual([LOCAL_PROT_ERR]);
  });

  type Fields = Parameters<typeof bind>[0];
  const refusals: readonly [string, (s: KernelScene) => Fields][] = [
    [
      'C10-73: a region without the right to bind',
      (s) => binding(bindable(s, { isBindable: false }), newWindow(s.bench.b, 2), 2, 0, 8),
    ],
    [
      'C10-74: writing where the region is read-only',
      (s) => binding(bindable(s, { rights: { localRead: true } }), newWindow(s.bench.b, 2), 2, 0, 8),
    ],
    ['C10-75: bytes behind the region', (s) => binding(bindable(s), newWindow(s.bench.b, 2), 2, 11_995, 8)],
    ['bytes in front of it', (s) => binding(bindable(s), newWindow(s.bench.b, 2), 2, -1, 8)],
    [
      'another variant of the region’s key',
      (s) => ({ ...binding(bindable(s), newWindow(s.bench.b, 2), 2, 0, 8), lkey: 0x101 }),
    ],
    ['a region of another PD', (s) => binding(bindable(s, { pd: 9 }), newWindow(s.bench.b, 2), 2, 0, 8)],
    ['a window of another PD', (s) => binding(bindable(s), newWindow(s.bench.b, 2, { pd: 9 }), 2, 0, 8)],
    ['a window of type 1 as type 2', (s) => binding(bindable(s), newWindow(s.bench.b, 1), 2, 0, 8)],
    ['a window of type 2 as type 1', (s) => binding(bindable(s), newWindow(s.bench.b, 2), 1, 0, 8)],
    ['unbinding of a window of type 2', (s) => ({ newRkey: newWindow(s.bench.b, 2), isType2: 1 })],
    [
      'a zero-based window of type 1',
      (s) => ({ ...binding(bindable(s), newWindow(s.bench.b, 1), 1, 0, 8), zeroBased: 1 }),
    ],
    ['what is no window', (s) => binding(bindable(s), s.remote.key, 2, 0, 8)],
    [
      'a region on demand',
      (s) => binding(bindable(s, { isOnDemand: true }), newWindow(s.bench.b, 2), 2, 0, 8),
    ],
    [
      'a window that is bound',
      (s) => binding(bindable(s), newWindow(s.bench.b, 2, { status: MptStatus.VALID }), 2, 0, 8),
    ],
  ];
  it.each(refusals)('are not bound: %s', async (_name, fieldsOf) => {
    const s = await kernelScene();
    const wqe = bind(fieldsOf(s));
    await s.bench.run(2);
    expect(await outcomeOf(s, wqe)).toEqual([MW_BIND_ERR]);
  });
});
