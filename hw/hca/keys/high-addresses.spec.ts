/**
 * Virtual addresses of 64 bits, of which a number holds 53: Linux's NFS client registers memory by work request at
 * addresses that hold the number of a remote procedure call in bits 63 to 32 (xprtrdma, frwr_map). Every kind of
 * request reaches them, and no other address does.
 */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../wire/index.ts';
import { oneLineCaches, tightest } from '../testing/data-path-bench.ts';
import { pattern, Region } from '../testing/data-path-verbs.ts';
import { bind, freeRegion, newWindow, register, variant } from '../testing/key-verbs.ts';
import { type SceneOptions, scene, syndromesOf } from '../testing/scenario.ts';

const { LOCAL_PROT_ERR, MW_BIND_ERR, REMOTE_ACCESS_ERR } = CqeSyndrome;
const ofKernel = { fields: { reservedLkeyEnabled: 1, fastRegisterEnabled: 1 } };
const BYTES = 20_000;
const END = 1n << 64n;

/** Start addresses of the region, to which the page offset of its memory is added. */
const places: readonly [string, bigint][] = [
  ['a call’s number above 2^53', 0xa1b2_c3d4_0000_0000n],
  ['across 2^52', (1n << 52n) - 0x2000n],
  ['across 2^53', (1n << 53n) - 0x2000n],
  ['across 2^63', (1n << 63n) - 0x2000n],
  ['across a multiple of 2^52', (0xabcn << 52n) - 0x1000n],
  ['up to 2^64', END - 0x6000n],
];

/** A connected pair of kernels; b's memory registered at `base` and its place in the page. */
async function highScene(base: bigint, options: SceneOptions = {}) {
  const s = await scene({ a: ofKernel, b: ofKernel, ...options });
  const memory = new Region(s.bench.b, BYTES, { pageOffset: 200 });
  memory.fill(7);
  const start = base + 200n;
  const key = variant(freeRegion(s.bench.b, 8), 7);
  s.b.sendBytes(register(s.bench.b, key, memory, { startAddress: start }));
  await s.bench.run(40);
  expect(syndromesOf(s.bCq.drain())).toEqual([0]);
  const at = (offset: number) => ({ address: BigInt.asUintN(64, start + BigInt(offset)), key });
  const outcome = async (): Promise<number[]> => {
    await s.bench.run(80);
    return syndromesOf(s.aCq.drain());
  };
  return { ...s, memory, start, key, at, outcome };
}
type HighScene = Awaited<ReturnType<typeof highScene>>;

/** The address that a packet brought. */
const whole = ({ address, addressTop }: { address: number; addressTop: number }): bigint =>
  (BigInt(addressTop) << 52n) + BigInt(address);

describe.each(places)('a region %s', (_name, base) => {
  it.each([{}, oneLineCaches, tightest])('is written, read and changed by the peer: %o', async (hca) => {
    const { a, b, bench, local, memory, at, outcome } = await highScene(base, { hca });
    const { RDMA_WRITE, RDMA_READ, ATOMIC_FA } = WqeOpcode;
    a.send({ opcode: RDMA_WRITE, segments: [local.part(0, 9000)], remote: at(3001) });
    expect(await outcome()).toEqual([0]);
    expect(memory.read(3001, 9000)).toEqual(local.read(0, 9000));
    expect([memory.read(0, 3001), memory.read(12_001)]).toEqual([
      pattern(7, BYTES).slice(0, 3001),
      pattern(7, BYTES).slice(12_001),
    ]);
    const received = bench.b.port.packets.filter(({ qpn }) => qpn === b.qpn);
    expect(whole(received[0]!)).toBe(at(3001).address);
    a.send({ opcode: RDMA_READ, segments: [local.part(0, 12_000)], remote: at(5000) });
    expect(await outcome()).toEqual([0]);
    expect(local.read(0, 12_000)).toEqual(memory.read(5000, 12_000));
    // Eight bytes on a multiple of 8.
    const before = new DataView(memory.read(8000, 8).buffer).getBigUint64(0, true);
    a.send({ opcode: ATOMIC_FA, segments: [local.part(0, 8)], remote: at(8000), swapOrAdd: 5n });
    expect(await outcome()).toEqual([0]);
    expect(new DataView(memory.read(8000, 8).buffer).getBigUint64(0, true)).toBe(before + 5n);
  });

  it('is where a work request of its own side sends from, reads into and receives', async () => {
    const s = await highScene(base);
    const { a, b, bench, aCq, bCq, local, memory, key, at } = s;
    const part = (offset: number, bytes: number) => ({ ...at(offset), bytes });
    a.receive([local.part(0, 10_000)]);
    b.send({ opcode: WqeOpcode.SEND, segments: [part(100, 4000), part(7000, 5000)] });
    await bench.run(60);
    expect([syndromesOf(aCq.drain()), syndromesOf(bCq.drain())]).toEqual([[0], [0]]);
    expect(local.read(0, 9000)).toEqual(Uint8Array.of(...memory.read(100, 4000), ...memory.read(7000, 5000)));
    local.fill(99);
    const remote = { address: local.address, key: local.key };
    b.send({ opcode: WqeOpcode.RDMA_READ, segments: [part(2000, 9000)], remote });
    b.receive([part(12_000, 100), part(13_000, 4000)]);
    a.send({ opcode: WqeOpcode.SEND, segments: [local.part(500, 3000)] });
    await bench.run(80);
    expect([syndromesOf(aCq.drain()), syndromesOf(bCq.drain())]).toEqual([[0], [0, 0]]);
    expect(memory.read(2000, 9000)).toEqual(local.read(0, 9000));
    expect(memory.read(12_000, 100)).toEqual(local.read(500, 100));
    expect(memory.read(13_000, 2900)).toEqual(local.read(600, 2900));
    expect(key).toBe(part(0, 1).key);
  });

  it('IBTA 9.7.5.1.4: goes on where a READ lost its answers', async () => {
    const { a, b, bench, local, memory, at, outcome } = await highScene(base, { ackTimeout: 1 });
    let responses = 0;
    bench.a.port.drops = ({ opcode, qpn }) =>
      qpn === a.qpn && opcode >= Opcode.RC_RDMA_READ_RESPONSE_FIRST && responses++ === 7;
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 16_000)], remote: at(1000) });
    await bench.run(200);
    expect(await outcome()).toEqual([0]);
    expect(local.read(0, 16_000)).toEqual(memory.read(1000, 16_000));
    const asked = bench.b.port.packets.filter(
      ({ qpn, opcode }) => qpn === b.qpn && opcode === Opcode.RC_RDMA_READ_REQUEST,
    );
    // Seven responses of 1024 bytes had arrived.
    expect(asked.map(whole)).toEqual([at(1000).address, at(1000 + 7 * 1024).address]);
  });

  it.each([
    ['READ', WqeOpcode.RDMA_READ],
    ['WRITE', WqeOpcode.RDMA_WRITE],
    ['atomic', WqeOpcode.ATOMIC_FA],
  ] as const)(
    'IBTA 9.9.3: is not reached by a %s of an address of which other bits differ',
    async (_request, opcode) => {
      for (const bit of [31n, 32n, 51n, 52n, 53n, 54n, 63n]) {
        const { a, local, memory, at, outcome } = await highScene(base);
        const remote = { ...at(8000), address: at(8000).address ^ (1n << bit) };
        const atomic = opcode === WqeOpcode.ATOMIC_FA ? { swapOrAdd: 1n } : {};
        a.send({ opcode, segments: [local.part(0, 8)], remote, ...atomic });
        expect(await outcome(), `bit ${bit}`).toEqual([REMOTE_ACCESS_ERR]);
        expect(memory.read()).toEqual(pattern(7, BYTES));
      }
    },
  );

  it('is not reached in front of its first byte nor behind its last', async () => {
    for (const [offset, bytes] of [
      [-1, 1],
      [-1, 100],
      [BYTES - 99, 100],
      [BYTES, 1],
    ] as const) {
      const { a, local, memory, at, outcome } = await highScene(base);
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, bytes)], remote: at(offset) });
      expect(await outcome(), `${offset}`).toEqual([REMOTE_ACCESS_ERR]);
      expect(memory.read()).toEqual(pattern(7, BYTES));
    }
  });
});

/** Returns the completion status of a's WRITE of 100 bytes to an address under a key. */
async function writeTo({ a, local, outcome }: HighScene, key: number, address: bigint): Promise<number[]> {
  a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 100)], remote: { address, key } });
  return outcome();
}

describe('addresses of 64 bits', () => {
  it.each([1, 2] as const)('are those of a window of type %i', async (type) => {
    const base = (1n << 53n) - 0x2000n;
    const s = await highScene(base);
    const { bench, b, bCq, local } = s;
    const region = new Region(bench.b, 12_000, {
      pageOffset: 500,
      isBindable: true,
      fields: { startAddress: base + 500n },
    });
    const key = variant(newWindow(bench.b, type), 3);
    const address = base + 500n + 5000n;
    b.sendBytes(
      bind({
        newRkey: key,
        lkey: region.key,
        address,
        lengthBytes: 4000n,
        remoteWriteEnabled: 1,
        isType2: type - 1,
      }),
    );
    await bench.run(40);
    expect(syndromesOf(bCq.drain())).toEqual([0]);
    expect(await writeTo(s, key, address + 3900n)).toEqual([0]);
    expect(region.read(8900, 100)).toEqual(local.read(0, 100));
    expect(await writeTo(s, key, address + 3901n)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('are no place of a zero-based window', async () => {
    const base = (1n << 53n) - 0x2000n;
    const s = await highScene(base);
    const { bench, b, bCq, local } = s;
    const region = new Region(bench.b, 12_000, { isBindable: true, fields: { startAddress: base } });
    const key = variant(newWindow(bench.b, 2), 3);
    const range = { address: base + 9000n, lengthBytes: 1000n };
    b.sendBytes(
      bind({ newRkey: key, lkey: region.key, ...range, remoteWriteEnabled: 1, isType2: 1, zeroBased: 1 }),
    );
    await bench.run(40);
    expect(syndromesOf(bCq.drain())).toEqual([0]);
    expect(await writeTo(s, key, 300n)).toEqual([0]);
    expect(region.read(9300, 100)).toEqual(local.read(0, 100));
    expect(await writeTo(s, key, (1n << 52n) + 300n)).toEqual([REMOTE_ACCESS_ERR]);
  });

  it('of which other bits differ are out of the region that a window is bound in', async () => {
    for (const bit of [52n, 53n, 63n]) {
      const s = await highScene(1n << 60n);
      const { bench, b, bCq } = s;
      const region = new Region(bench.b, 4096, { isBindable: true, fields: { startAddress: 1n << 61n } });
      const address = (1n << 61n) ^ (1n << bit);
      b.sendBytes(
        bind({ newRkey: newWindow(bench.b, 2), lkey: region.key, address, lengthBytes: 8n, isType2: 1 }),
      );
      await bench.run(40);
      expect(syndromesOf(bCq.drain()), `bit ${bit}`).toEqual([MW_BIND_ERR]);
    }
  });

  it('IBTA 9.7.5.1.4: are those of a READ that is asked for again, whatever address it had before', async () => {
    const base = 0xa1b2_c3d4_0000_0000n;
    const { a, b, bench, local, memory, at, outcome } = await highScene(base, { ackTimeout: 1 });
    let responses = 0;
    bench.a.port.drops = ({ opcode, qpn }) =>
      qpn === a.qpn && opcode === Opcode.RC_RDMA_READ_RESPONSE_ONLY && responses++ === 0;
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 100)], remote: at(1000) });
    await bench.run(200);
    expect(await outcome()).toEqual([0]);
    expect(responses).toBe(2);
    expect(local.read(0, 100)).toEqual(memory.read(1000, 100));
    expect(b.qpn).not.toBe(a.qpn);
  });

  it('sheet 7.1: as bus addresses of the reserved key are not answered', async () => {
    for (const address of [1n << 52n, 1n << 53n, (1n << 53n) + 1n, 1n << 63n, END - 64n]) {
      const s = await scene({ a: ofKernel });
      s.a.send({ opcode: WqeOpcode.SEND, segments: [{ address, bytes: 64, key: 0xff00 }] });
      await s.bench.run(60);
      expect(syndromesOf(s.aCq.drain()), `${address}`).toEqual([LOCAL_PROT_ERR]);
    }
  });

  it('are asked for page by page in a region on demand', async () => {
    const base = (1n << 53n) - 0x1000n;
    const s = await highScene(1n << 60n);
    const { a, bench, local } = s;
    const region = new Region(bench.b, 12_000, {
      isOnDemand: true,
      holes: [1],
      fields: { startAddress: base },
    });
    const remote = { address: base + 2000n, key: region.key };
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 4000)], remote });
    await bench.run(30);
    const wanted = `at 0x${(base + 4096n).toString(16)} bytes ${4000 - 2096}`;
    expect(bench.b.events.lines.filter((line) => line.includes(wanted))).toHaveLength(1);
  });
});
