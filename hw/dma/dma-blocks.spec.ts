/** Contracts of every block of the DMA engines: a new block is checked by adding it to the list. */
import { describe, expect, it } from 'vitest';
import { LogicalProcess } from '../../sim/logical-process.ts';
import { Random } from '../../sim/random.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { NON_POSTED, POSTED } from '../pcie/index.ts';
import { Arbiter } from './arbiter.ts';
import { BusInterface, busWires } from './bus-interface.ts';
import { benchSlot, idleTarget } from './bus-interface-bench.ts';
import { DmaBench, type SentRead } from './dma-bench.ts';
import { DmaReadEngine } from './dma-read-engine.ts';
import { DmaWriteEngine } from './dma-write-engine.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';
import type { DmaConfig } from './parameters.ts';
import { TAG_ABANDONED, TAG_ACTIVE, TagPool } from './tag-pool.ts';

it('the wires of a bus interface lead to existing blocks, and each port is connected once', () => {
  const make = () => {
    const lp = new LogicalProcess('device');
    const domain = lp.addClockDomain(427);
    const sram = new Uint8Array(64);
    const bus = new BusInterface({ ...benchSlot(), lp, domain, sram, messageFifoDepth: 2 });
    bus.connect({ target: idleTarget });
    return bus.blocks;
  };
  checkWires(busWires, make, ['target']);
});

const DEPTH = 4;
const SLOT_BYTES = 2048;
const POLICIES = ['roundRobin', 'strictPriority', 'weighted', 'wholeRequest'] as const;

/** Requesters of both engines that request random transfers at every edge until `stop`, and a link that is randomly full and slow. */
class RandomTraffic {
  readonly bench: DmaBench;
  readonly reports: string[] = [];
  asked = 0;
  readonly #random: Random;
  readonly #places: boolean;
  #isStopped = false;

  constructor(seed: number, config: Partial<DmaConfig> = {}) {
    const random = new Random(seed);
    this.#random = random;
    this.#places = random.chance(0.5);
    this.bench = new DmaBench({
      tagCount: 1 + random.below(4),
      readArbitration: POLICIES[random.below(POLICIES.length)]!,
      dataPathBytes: random.chance(0.5) ? 4 : 32,
      readIssueCycles: 1 + random.below(4),
      writeIssueCycles: 1 + random.below(4),
      ...config,
    });
    this.addRequesters();
  }

  addRequesters(): void {
    for (const name of ['r0', 'r1']) {
      const options = { name, trafficClass: 3, fifoDepth: DEPTH, weight: 2, placesEarly: this.#places };
      this.bench.reads.addRequester(options, {
        done: (cookie, status) => this.reports.push(`${name} ${cookie} ${status}`),
      });
      this.bench.writes.addRequester(
        { name, trafficClass: 4, fifoDepth: DEPTH },
        { done: (cookie) => this.reports.push(`w${name} ${cookie}`) },
      );
    }
  }

  start(): this {
    const random = this.#random;
    const { bench } = this;
    const { link } = bench;
    const isShort = random.chance(0.5);
    if (isShort) link.room.fill(1);
    bench.pcieFunction.completionTimeoutPs = 3_000_000;
    link.onRead = (read) => this.#answerSoon(read);
    bench.everyCycle(1, () => {
      const flow = random.below(2);
      if (isShort && link.room[flow] === 0 && random.chance(0.05)) link.makeRoom(flow, 1);
      if (!this.#isStopped && random.chance(0.4)) this.#ask(random.below(2));
      return bench.domain.cycle < 8000;
    });
    return this;
  }

  stop(): void {
    this.#isStopped = true;
  }

  #ask(requester: number): void {
    const { reads, writes, sram } = this.bench;
    const random = this.#random;
    const bytes = 1 + random.below(SLOT_BYTES);
    const slot = random.below(16) * SLOT_BYTES;
    if (random.chance(0.5) && reads.canRequest(requester))
      reads.request(requester, random.below(16_000), bytes, slot, this.asked++);
    else if (writes.canRequest(requester))
      writes.request(requester, random.below(16_000), bytes, sram, slot, this.asked++);
  }

  /** Answers the read in one or two completions, with an error, or never. */
  #answerSoon(read: SentRead): void {
    const { bench } = this;
    const random = this.#random;
    const atPs = bench.lp.nowPs + 1 + random.below(200_000);
    const chance = random.below(20);
    if (chance === 0) return;
    if (chance === 1) return bench.atPs(atPs, () => bench.link.refuse(read, 1));
    const first = chance < 10 ? read.bytes >> 1 : 0;
    if (first > 0) bench.atPs(atPs, () => bench.link.answer(read, first));
    bench.atPs(atPs + 1 + random.below(90_000), () => bench.link.answer(read));
  }
}

const stateOf = ({ reads, writes }: DmaBench) => ({ reads: reads.inspect(), writes: writes.inspect() });
const accountsOf = ({ reads, writes }: DmaBench) => [reads.account, reads.returnAccount, writes.account];

/** Changes a block, and resets it. */
const parts = {
  ...Object.fromEntries(
    POLICIES.map((policy) => [
      `arbiter, ${policy}`,
      () => {
        const arbiter = new Arbiter(policy);
        for (let requester = 0; requester < 4; requester++) arbiter.addRequester(3);
        const grants = (): number[] => Array.from({ length: 9 }, () => arbiter.grant(0b1011));
        return { block: arbiter, use: grants, reset: () => arbiter.reset() };
      },
    ]),
  ),
  'tag pool': () => {
    const pool = new TagPool(4);
    const use = (): number[] => {
      const tags = Array.from({ length: 3 }, () => pool.take(100));
      for (const tag of tags) tag.remainingBytes = 64;
      pool.expire(tags[2]!, 200);
      for (const tag of [tags[2]!, tags[0]!, tags[1]!]) pool.release(tag);
      return tags.map(({ number }) => number);
    };
    return { block: pool, use, reset: () => pool.abandonAll() };
  },
};

describe('every block of the DMA engines', () => {
  it('shows its state, if a reset clears it', () => {
    for (const { prototype } of [DmaReadEngine, DmaWriteEngine, Arbiter])
      expect(['inspect' in prototype, 'reset' in prototype]).toEqual([true, true]);
    expect('inspect' in TagPool.prototype).toBe(true);
  });

  it.each(Object.entries(parts))('does after a reset what it did when it was made: %s', (_, make) => {
    const { block, use, reset } = make();
    const fresh = block.inspect();
    const first = use();
    use();
    reset();
    expect(block.inspect()).toEqual(fresh);
    expect(use()).toEqual(first);
  });

  it('PCIe 6.6.2: has no state left after a reset, from any state, except tags whose completions may still arrive', () => {
    let abandonedCount = 0;
    const waits = new Set<unknown>();
    for (let seed = 1; seed <= 60; seed++) {
      const traffic = new RandomTraffic(seed);
      const { bench } = traffic;
      const fresh = stateOf(bench);
      traffic.start();
      const cycle = 20 + new Random(seed).below(2000);
      bench.runTo(cycle);
      const before = stateOf(bench);
      waits.add(`read ${before.reads['waitsFor']}`).add(`write ${before.writes['waitsFor']}`);
      expect(before, `seed ${seed}`).not.toEqual(fresh);
      bench.atCycle(cycle, () => {
        traffic.stop();
        bench.reads.reset(cycle);
        bench.writes.reset(cycle);
      });
      bench.runTo(cycle + 1);
      const { length } = traffic.reports;
      const { reads, writes } = stateOf(bench);
      const abandoned = Object.values(reads['tags']!) as { state: number }[];
      abandonedCount += abandoned.length;
      expect({ reads: { ...reads, tags: {} }, writes }, `seed ${seed}`).toEqual(fresh);
      expect(abandoned.filter(({ state }) => state !== TAG_ABANDONED)).toEqual([]);
      expect(accountsOf(bench).filter(({ isResting }) => !isResting)).toEqual([]);
      bench.runTo(9000);
      expect(stateOf(bench), `seed ${seed}`).toEqual(fresh);
      expect([bench.link.heldRecords, bench.reads.isIdle, bench.writes.isIdle]).toEqual([0, true, true]);
      expect(traffic.reports.length).toBe(length);
    }
    expect(abandonedCount).toBeGreaterThan(20);
    expect([...waits].sort()).toEqual([
      'read link',
      'read nothing',
      'read tags',
      'write link',
      'write nothing',
    ]);
  });

  it('accounts for each of its cycles once, at whatever instant it is asked', () => {
    for (let seed = 100; seed < 120; seed++) {
      const { bench } = new RandomTraffic(seed).start();
      for (let stop = 1; stop < 40; stop++) {
        bench.lp.advance(stop * 33_331);
        const elapsed = bench.domain.clock.cyclesElapsed(bench.lp.nowPs);
        for (const account of accountsOf(bench)) {
          const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(elapsed);
          const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
          expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, elapsed, 0]);
        }
      }
    }
  });
});

interface Bottleneck {
  readonly name: string;
  readonly config?: Partial<DmaConfig>;
  /** Number of TLPs that each flow of the link accepts at first. */
  readonly room?: number;
}

const bottlenecks: readonly Bottleneck[] = [
  { name: 'one tag', config: { tagCount: 1 } },
  { name: 'a link without room', room: 0 },
];

/** Each requester requests as much as it may until it has had `count` transfers, none of which fails. */
function playTo(bottleneck: Bottleneck, count: number): DmaBench {
  const bench = new DmaBench(bottleneck.config);
  const { link, reads, writes, sram } = bench;
  const done: number[][] = [[], []];
  reads.addRequester(
    { name: 'r', trafficClass: 3, fifoDepth: DEPTH, weight: 1 },
    {
      done: (cookie, status) => {
        expect(status).toBe(DmaStatus.ok);
        done[0]!.push(cookie);
      },
    },
  );
  writes.addRequester(
    { name: 'w', trafficClass: 4, fifoDepth: DEPTH },
    { done: (cookie) => done[1]!.push(cookie) },
  );
  bench.answerAll(50_000);
  if (bottleneck.room !== undefined) link.room.fill(bottleneck.room);
  const asked = [0, 0];
  sram.subarray(1 << 15).fill(7);
  bench.everyCycle(1, () => {
    if (bench.domain.cycle % 10 === 0) for (const flow of [POSTED, NON_POSTED]) link.makeRoom(flow, 1);
    if (asked[0]! < count && reads.canRequest(0)) {
      const at = asked[0]!++ * 64;
      reads.request(0, at, 64, at, at);
    }
    if (asked[1]! < count && writes.canRequest(0)) {
      const at = (1 << 15) + asked[1]!++ * 64;
      writes.request(0, at, 64, sram, at, at);
    }
    return bench.domain.cycle < 3000;
  });
  bench.runTo(3100);
  const inOrder = (from: number): number[] => Array.from({ length: count }, (_, index) => from + index * 64);
  expect(done, bottleneck.name).toEqual([inOrder(0), inOrder(1 << 15)]);
  expect(sram.subarray(0, count * 64)).toEqual(link.memory.subarray(0, count * 64));
  expect(link.memory.subarray(1 << 15, (1 << 15) + count * 64)).toEqual(new Uint8Array(count * 64).fill(7));
  return bench;
}

describe('a stalled DMA engine', () => {
  it('stalls for each of the reasons that it declares, shows the reason meanwhile, and loses nothing', () => {
    const declared = new Set<string>();
    const counted = new Set<string>();
    for (const bottleneck of bottlenecks)
      for (const { name, stallReasons, stalledCycles } of accountsOf(playTo(bottleneck, 40)))
        for (const [index, reason] of stallReasons.entries()) {
          declared.add(`${name}: ${reason}`);
          if (stalledCycles[index]! > 0) counted.add(`${name}: ${reason}`);
        }
    expect([...declared].filter((reason) => !counted.has(reason))).toEqual([]);
    expect([...declared].sort()).toEqual(['dmaRead: link', 'dmaRead: tags', 'dmaWrite: link']);
  });

  it('shows why it waits, and for which bytes', () => {
    const bench = new DmaBench({ tagCount: 1 });
    const done = (): void => {};
    bench.reads.addRequester({ name: 'r', trafficClass: 3, fifoDepth: DEPTH, weight: 1 }, { done });
    bench.writes.addRequester({ name: 'w', trafficClass: 4, fifoDepth: DEPTH });
    bench.link.room[POSTED] = 0;
    bench.atCycle(1, () => {
      bench.reads.request(0, 0, 1024, 0, 5);
      bench.writes.request(0, 0, 64, bench.sram, 0, 6);
    });
    bench.runTo(10);
    expect(stateOf(bench)).toEqual({
      reads: {
        requesters: { r: { requests: [{ unsentBytes: 512, status: DmaStatus.ok, cookie: 5 }] } },
        waitsFor: 'tags',
        arbiter: { last: 0, turnsLeft: 0 },
        tags: { 0: { state: TAG_ACTIVE, bytesToCome: 512 } },
      },
      writes: { requests: [{ owner: 'w', remainingBytes: 64, cookie: 6 }], waitsFor: 'link' },
    });
  });

  it('stalls its requesters: each holds as many requests as its fifo is deep, and is called when room is free', () => {
    const bench = new DmaBench();
    const { reads, writes, sram } = bench;
    const heard = [0, 0];
    const spaceOf = (engine: 0 | 1) => (): void => {
      heard[engine]!++;
      expect(engines[engine].engine.canRequest(0)).toBe(true);
    };
    const reader = { name: 'r', trafficClass: 3, fifoDepth: DEPTH, weight: 1 };
    reads.addRequester(reader, { done: () => {}, space: spaceOf(0) });
    writes.addRequester({ name: 'w', trafficClass: 4, fifoDepth: DEPTH }, { space: spaceOf(1) });
    const engines = [
      { engine: reads, ask: () => reads.request(0, 0, 64, 0, 0) },
      { engine: writes, ask: () => writes.request(0, 0, 64, sram, 0, 0) },
    ] as const;
    bench.link.room.fill(0);
    bench.answerAll(10_000);
    for (const { engine, ask } of engines) {
      bench.atCycle(1, () => {
        for (let request = 0; request < DEPTH; request++) ask();
        expect(engine.canRequest(0)).toBe(false);
        expect(ask).toThrow(DmaRequestError);
      });
    }
    bench.runTo(100);
    expect(heard).toEqual([0, 0]);
    for (const flow of [POSTED, NON_POSTED]) bench.link.makeRoom(flow, DEPTH);
    bench.runTo(200);
    expect(heard).toEqual([1, 1]);
    expect([reads.isIdle, writes.isIdle]).toEqual([true, true]);
  });
});
