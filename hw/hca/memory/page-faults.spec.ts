import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { AethKind, syndromeKind } from '../../../wire/aeth.ts';
import { Opcode } from '../../../wire/opcodes.ts';
import { type BenchOptions, type DataPathNode, tightest } from '../testing/data-path-bench.ts';
import { pattern, Region, type SendRequest } from '../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf } from '../testing/scenario.ts';

const PAGE = 4096;
const PAGES = 4;
const BYTES = 3 * PAGE;

const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

const onDemand = (node: DataPathNode): Region =>
  new Region(node, PAGES * PAGE, { isOnDemand: true, holes: [0, 1, 2, 3] });

/** Answers every page request of a node as a driver would, `pagesAtOnce` pages each; @returns requests answered */
async function serve(
  { bench }: Scene,
  node: DataPathNode,
  region: Region,
  isDone: () => boolean,
  pagesAtOnce = PAGES,
): Promise<number> {
  let served = 0;
  await bench.until(() => {
    const token = node.events.pageTokens[served];
    if (token === undefined) return isDone();
    const line = node.events.lines.filter((text) => text.startsWith('page '))[served++]!;
    const first = Math.floor((Number(/at (0x[0-9a-f]+)/.exec(line)![1]) - region.address) / PAGE);
    for (let page = first; page < Math.min(PAGES, first + pagesAtOnce); page++) region.setPresent(page, true);
    node.act(() => expect(node.dataPath.control.pagesResumed(token, false)).toBe(true));
    return false;
  });
  return served;
}

const rnrNaksTo = ({ bench }: Scene): number =>
  bench.a.port.packets.filter(
    ({ opcode, syndrome }) => opcode === Opcode.RC_ACKNOWLEDGE && syndromeKind(syndrome) === AethKind.RNR_NAK,
  ).length;

describe('a page that is not there', () => {
  for (const [where, options] of sizes) {
    it(`parks the sending QP until it comes, and no other QP${where}`, async () => {
      const given = await scene(options);
      const { bench, a, aCq, remote, target, checkBystanders } = given;
      const region = onDemand(bench.a);
      region.fill(7);
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [region.part(0, BYTES)], remote: target });
      await bench.run(20);
      await checkBystanders();
      expect(bench.a.events.lines.at(-1)).toContain(`page requester read qp 0x${a.qpn.toString(16)}`);
      expect(bench.a.events.pageTokens).toHaveLength(1);
      const done: string[] = [];
      const requests = await serve(given, bench.a, region, () => done.push(...summaryOf(aCq.drain())) > 0, 1);
      expect([done, requests]).toEqual([['send 0: 0x0'], 3]);
      expect(remote.read(0, BYTES)).toEqual(pattern(7, PAGES * PAGE).subarray(0, BYTES));
      const { requestCount, waitCycles } = bench.a.dataPath.blocks.pageFaults;
      expect([...requestCount]).toEqual([3, 0, 0]);
      expect(waitCycles[0]).toBeGreaterThan(20 * 427);
    });

    it(`IBTA 9.7.5.2.8: has the responder answer RNR NAK, and the packet taken when it comes again${where}`, async () => {
      const given = await scene({ ...options, b: { fields: { minRnrNak: 1 } } });
      const { bench, a, b, aCq, bCq, local } = given;
      const region = onDemand(bench.b);
      b.receive([region.part(0, PAGES * PAGE)]);
      const segments = [local.part(0, BYTES)];
      const remote = { address: region.address, key: region.key };
      a.post({ opcode: WqeOpcode.RDMA_WRITE, segments, remote });
      a.post({ opcode: WqeOpcode.SEND, segments });
      a.post({ opcode: WqeOpcode.ATOMIC_FA, segments: [local.part(0, 8)], remote, swapOrAdd: 3n });
      a.ring();
      const done: string[] = [];
      await serve(given, bench.b, region, () => done.push(...summaryOf(aCq.drain())) >= 3, 1);
      expect(done).toEqual(['send 0: 0x0', 'send 1: 0x0', 'send 2: 0x0']);
      expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x0']);
      const { requestCount, rnrNakCount } = bench.b.dataPath.blocks.pageFaults;
      expect(requestCount[1]).toBe(3);
      expect(rnrNaksTo(given)).toBeGreaterThanOrEqual(3);
      expect(rnrNakCount).toBe(rnrNaksTo(given));
      const expected = pattern(1, 16_384).subarray(0, BYTES).slice();
      expect(region.read(8, BYTES - 8)).toEqual(expected.subarray(8));
    });

    it(`pauses the answers of its QP when a READ has begun${where}`, async () => {
      const given = await scene(options);
      const { bench, a, aCq, local, checkBystanders } = given;
      const region = onDemand(bench.b);
      region.fill(33);
      region.setPresent(0, true);
      const remote = { address: region.address, key: region.key };
      a.send({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, BYTES)], remote });
      await bench.run(10);
      await checkBystanders();
      expect(bench.b.events.lines.at(-1)).toContain('page response read');
      const done: string[] = [];
      await serve(given, bench.b, region, () => done.push(...summaryOf(aCq.drain())) > 0, 1);
      expect(done).toEqual(['send 0: 0x0']);
      expect(local.read(0, BYTES)).toEqual(pattern(33, PAGES * PAGE).subarray(0, BYTES));
      expect([...bench.b.dataPath.blocks.pageFaults.requestCount]).toEqual([0, 0, 2]);
      expect(rnrNaksTo(given)).toBe(0);
    });

    it(`has answers of a READ dropped and asked for again${where}`, async () => {
      const given = await scene(options);
      const { bench, a, aCq, remote, target, checkBystanders } = given;
      const region = onDemand(bench.a);
      const segments = [region.part(0, BYTES)];
      const read: SendRequest = { opcode: WqeOpcode.RDMA_READ, segments, remote: target };
      a.post(read);
      const counter = { ...target, address: target.address + BYTES };
      const result = [region.part(BYTES, 8)];
      a.post({ opcode: WqeOpcode.ATOMIC_FA, segments: result, remote: counter, swapOrAdd: 9n });
      a.ring();
      await bench.run(20);
      await checkBystanders();
      const done: string[] = [];
      await serve(given, bench.a, region, () => done.push(...summaryOf(aCq.drain())) >= 2, 1);
      expect(done).toEqual(['send 0: 0x0', 'send 1: 0x0']);
      // The atomic is executed once, however often its answer was dropped.
      const before = pattern(101, 16_384);
      expect(region.read(0, BYTES + 8)).toEqual(before.subarray(0, BYTES + 8));
      expect(remote.read(BYTES, 1)[0]).toBe((before[BYTES]! + 9) & 0xff);
      expect(bench.a.dataPath.parts.violations.report()).toEqual({});
    });

    it(`fails the packet when the driver refuses it${where}`, async () => {
      const given = await scene({ ...options, b: { fields: { minRnrNak: 1 } } });
      const { bench, a, b, aCq, local } = given;
      const region = onDemand(bench.b);
      const remote = { address: region.address, key: region.key };
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, BYTES)], remote });
      await bench.until(() => bench.b.events.pageTokens.length === 1);
      const [token] = bench.b.events.pageTokens;
      bench.b.act(() => expect(bench.b.dataPath.control.pagesResumed(token! + 2 ** 20, true)).toBe(false));
      bench.b.act(() => expect(bench.b.dataPath.control.pagesResumed(token!, true)).toBe(true));
      bench.b.act(() => expect(bench.b.dataPath.control.pagesResumed(token!, true)).toBe(false));
      await bench.run(100);
      expect(summaryOf(aCq.drain())).toEqual([`send 0: 0x${CqeSyndrome.REMOTE_ACCESS_ERR.toString(16)}`]);
      expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
      expect(bench.b.events.lines.at(-1)).toContain('qp 0x11');
    });
  }

  it('is asked for once, however often its QP begins anew before there is room for the event', async () => {
    const { bench } = await scene();
    const { pageFaults } = bench.a.dataPath.parts;
    const { requestCount } = pageFaults;
    bench.a.act(() => {
      const { cycle } = bench.a.domain;
      const wanted = { side: 0, key: 7, address: 4096, addressTop: 0, lengthBytes: 4096, isWrite: false };
      for (let generation = 0; generation < 100_000; generation++) {
        pageFaults.forget(0);
        pageFaults.raise(0, wanted, cycle);
      }
    });
    await bench.run(5);
    expect(requestCount[0]).toBe(100_000);
    expect(bench.a.events.pageTokens).toHaveLength(1);
  });

  it('is not asked for in a region that is pinned', async () => {
    const { bench, a, aCq, target } = await scene();
    const region = new Region(bench.a, PAGE, { holes: [0] });
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [region.part(0, 64)], remote: target });
    await bench.run(20);
    expect(summaryOf(aCq.drain())).toEqual([`send 0: 0x${CqeSyndrome.LOCAL_PROT_ERR.toString(16)}`]);
    expect(bench.a.events.pageTokens).toEqual([]);
  });

  it('is found again when its entry came while the cache held it as absent', async () => {
    const { bench, a, aCq, target } = await scene();
    const region = onDemand(bench.a);
    region.setPresent(0, true);
    const request: SendRequest = {
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [region.part(0, 64)],
      remote: target,
    };
    a.send(request);
    await bench.run(20);
    region.setPresent(1, true);
    a.send({ ...request, segments: [region.part(PAGE, 64)] });
    await bench.run(20);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x0']);
    expect(bench.a.events.pageTokens).toEqual([]);
  });
});

describe('invalidating pages', () => {
  it('ends when what was begun has reached memory, and what follows is translated anew', async () => {
    const given = await scene();
    const { bench, a, aCq, remote, target } = given;
    const region = onDemand(bench.a);
    for (let page = 0; page < PAGES; page++) region.setPresent(page, true);
    region.fill(5);
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [region.part(0, BYTES)], remote: target });
    await bench.until(
      () => bench.a.dataPath.blocks.transmitter.requests.rows.some(({ pendingReads }) => pendingReads > 0),
      50,
    );
    const seen: boolean[] = [];
    bench.a.act(() => {
      bench.a.dataPath.control.pagesChanged();
      bench.a.dataPath.control.beginFence();
    });
    bench.a.act(() => seen.push(bench.a.dataPath.control.isFencePassed()));
    await bench.until(() => {
      bench.a.act(() => seen.push(bench.a.dataPath.control.isFencePassed()));
      return seen.at(-1) === true;
    }, 50);
    expect(seen[0]).toBe(false);
    await bench.until(() => aCq.drain().length > 0);
    expect(remote.read(0, BYTES)).toEqual(region.read(0, BYTES));
    for (let page = 0; page < PAGES; page++) region.setPresent(page, false);
    bench.a.store(0x840, new Uint8Array(4));
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [region.part(0, 64)], remote: target });
    await bench.run(20);
    expect(bench.a.events.pageTokens).toHaveLength(1);
    expect(bench.a.dataPath.blocks.doorbells.invalidateCount).toBe(1);
  });
});
