/** Contracts of every block of the card: a new block is checked by adding it to the table. */
import { describe, expect, it } from 'vitest';
import { type BlockAccount, listWires, Random } from '../../sim/index.ts';
import { nicWires } from './nic-blocks.ts';
import { NicBench, type NicBenchOptions, type NicMachine, US } from './testing/nic-bench.ts';
import { RingTraffic } from './testing/ring-traffic.ts';

const RING = 8;
const LONGEST_BYTES = 9014;

const wires = listWires(nicWires);

describe('the wires of the card', () => {
  it('lead to existing blocks', () => {
    const { blocks } = new NicBench().a.nic;
    const places = new Set(Object.keys(blocks));
    expect(wires.filter(({ to }) => !places.has(to.split('.')[0]!))).toEqual([]);
    expect(wires.length).toBeGreaterThan(10);
  });
});

const trafficOf = ({ a, b }: NicBench, frames: number, seed: number, longestBytes?: number): RingTraffic[] =>
  [a, b].map(
    (machine, node) =>
      new RingTraffic(machine, node, RING, frames, new Random(seed, `frames${node}`), longestBytes),
  );

const statesOf = ({ a, b }: NicBench): string[] =>
  [a, b].map(({ nic }) => JSON.stringify(nic.inspect(), null, 1));

/** Two machines with rings and buffers of random sizes. */
function benchOf(seed: number): NicBench {
  const random = new Random(seed);
  return new NicBench({
    seed,
    nic: {
      ...(random.chance(0.5) ? { burstBytes: 16, burstsOutstanding: 1 } : {}),
      ...(random.chance(0.5) ? { descriptorCacheEntries: 2, writeBackDepth: 1 } : {}),
      ...(random.chance(0.5) ? { transmitBufferKib: 16, receiveBufferKib: 16 } : {}),
    },
    ...(random.chance(0.5) ? { dma: { tagCount: 1 } } : {}),
  });
}

/** The same, after they have exchanged frames for a random time. */
async function interrupted(seed: number): Promise<NicBench> {
  const random = new Random(seed, 'traffic');
  const bench = benchOf(seed);
  await bench.bringUp(RING);
  const traffic = trafficOf(bench, 100, seed);
  if (random.chance(0.3)) traffic[1]!.takes = false;
  if (random.chance(0.3)) await bench.b.write('pbmode', 2);
  if (random.chance(0.3)) await bench.a.write('eitr', 4000, 0);
  const turnCount = 1 + random.below(12);
  for (let turn = 0; turn < turnCount; turn++) {
    for (const one of traffic) one.turn();
    if (random.chance(0.1)) bench.a.post('tdt', RING);
    if (random.chance(0.1)) bench.a.post('txdctl', 0);
    await bench.run(random.between(US / 10, 4 * US));
  }
  return bench;
}

/** Machines in which frames wait mostly for one reason. */
const bottlenecks: readonly (NicBenchOptions & { readonly takesLate?: boolean })[] = [
  { nic: { transmitBufferKib: 16, receiveBufferKib: 64 } },
  { nic: { descriptorCacheEntries: 1 }, takesLate: true },
  { nic: { burstBytes: 16, burstsOutstanding: 1 } },
  { nic: { writeBackDepth: 1 }, dma: { writeIssueCycles: 1000 } },
];

/** Makes both machines send until all frames have arrived, and checks them. */
async function playToEnd({ takesLate, ...options }: (typeof bottlenecks)[number]): Promise<NicBench> {
  const bench = new NicBench({ ...options, ethernet: { mtuBytes: LONGEST_BYTES - 14 } });
  await bench.bringUp(RING);
  for (const { nic } of [bench.a, bench.b]) nic.blocks.receiveMac.longBytesMax = LONGEST_BYTES + 4;
  const frameCount = 3 * RING;
  const traffic = trafficOf(bench, frameCount, 1, 2000);
  for (let turn = 0; turn < 400 && traffic.some(({ got }) => got < frameCount); turn++) {
    for (const one of traffic) {
      one.takes = takesLate !== true || turn % 8 === 7;
      one.turn();
    }
    await bench.run(4 * US);
  }
  expect(traffic.map(({ got }) => got)).toEqual([frameCount, frameCount]);
  return bench;
}

/**
 * A frame's bytes leave after the previous write-back, since the DMA write engine keeps the order of all requests: after they
 * have left, room for a write-back is free, even if the staging is small. Only the transmit direction has another path.
 */
const neverMet = ['nicReceive: writeBack'];

const accountsOf = ({ nic }: NicMachine): BlockAccount[] =>
  Object.values(nic.blocks).flatMap((block) => ('account' in block ? [block.account] : []));

describe('every block of the card', () => {
  it('shows its state, since a reset clears it', () => {
    for (const [name, block] of Object.entries(new NicBench().a.nic.blocks))
      expect('inspect' in block, name).toBe('reset' in block);
  });

  it('has no state left after a reset, from any state, including transfers in progress', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const fresh = statesOf(benchOf(seed));
      const bench = await interrupted(seed);
      for (const [node, state] of statesOf(bench).entries())
        expect(state, `seed ${seed}`).not.toBe(fresh[node]);
      for (const { nic } of [bench.a, bench.b])
        nic.functionReset(nic.domain.clock.cyclesElapsed(bench.nowPs));
      expect(statesOf(bench), `seed ${seed}`).toEqual(fresh);
      await bench.run(40 * US);
      expect(statesOf(bench), `seed ${seed}`).toEqual(fresh);
    }
  });

  it('accounts for each of its cycles once, at whatever instant it is asked', async () => {
    for (let seed = 30; seed < 40; seed++) {
      const bench = await interrupted(seed);
      for (const machine of [bench.a, bench.b]) {
        const elapsed = machine.nic.domain.clock.cyclesElapsed(bench.nowPs);
        for (const account of accountsOf(machine)) {
          const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(elapsed);
          const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
          expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, elapsed, 0]);
        }
      }
    }
  });

  it('stalls for each of the reasons that it declares, and loses nothing', async () => {
    const declared = new Set<string>();
    const counted = new Set<string>();
    for (const options of bottlenecks) {
      const bench = await playToEnd(options);
      for (const { name, stallReasons, stalledCycles } of accountsOf(bench.a))
        for (const [index, reason] of stallReasons.entries()) {
          declared.add(`${name}: ${reason}`);
          if (stalledCycles[index]! > 0) counted.add(`${name}: ${reason}`);
        }
    }
    expect(declared.size).toBeGreaterThan(10);
    expect([...declared].filter((reason) => !counted.has(reason))).toEqual(neverMet);
  });
});
