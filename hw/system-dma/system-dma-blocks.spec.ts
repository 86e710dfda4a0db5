/** Contracts of every block of the controller: a new block is checked by adding it to the list. */
import { describe, expect, it } from 'vitest';
import { SystemDmaMode, SystemDmaTransfer, systemDmaChannelCount } from '../../abi/nic/index.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Random } from '../../sim/index.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { rootComplexBench } from '../pcie/root-complex/root-complex-bench.ts';
import { MemoryBus } from './memory-bus.ts';
import { systemDmaParameters } from './parameters.ts';
import { SystemDma } from './system-dma.ts';
import { systemDmaWires } from './system-dma-blocks.ts';
import { commonPort, order, systemDmaBench } from './testing/system-dma-bench.ts';

const WORDS_MAX = 8;
const { SINGLE, BLOCK } = SystemDmaMode;
const { READ, WRITE } = SystemDmaTransfer;

type Bench = ReturnType<typeof systemDmaBench>;

const statesOf = ({ dma, bus }: Bench): string =>
  JSON.stringify({ systemDma: dma.inspect(), memoryBus: bus.inspect() }, null, 1);

const accountsOf = ({ dma }: Bench) => [dma.account];

const makeBench = (seed: number): Bench =>
  systemDmaBench({ priority: seed % 2 === 0 ? 'rotating' : 'fixed' });

/** A controller with random transfers for some time, and a device that does not always accept them. */
function interrupted(seed: number): { readonly bench: Bench; readonly cycle: number } {
  const random = new Random(seed);
  const bench = makeBench(seed);
  const { dma, device, runTo } = bench;
  let cycle = 1;
  for (let step = 0; step < 1 + random.below(12); step++) {
    const channel = random.below(systemDmaChannelCount);
    order(dma, channel, {
      mode: random.chance(0.5) ? SINGLE : BLOCK,
      transfer: random.chance(0.5) ? READ : WRITE,
      address: random.chance(0.9) ? 0x100 : 0x1_0000,
      device: 0x8000 + channel * 0x1000,
      words: 1 + random.below(WORDS_MAX),
    });
    device.room = random.chance(0.3) ? 0 : 100;
    if (device.room > 0) device.stores.storeSpace();
    cycle += 1 + random.below(60);
    runTo(cycle);
  }
  return { bench, cycle };
}

it('the wires of the controller lead to existing blocks, and each port is connected once', () => {
  const make = () => {
    const { hostLp: lp, memory, rootComplex: host } = rootComplexBench();
    const config = defaultsOf(systemDmaParameters);
    const dma = new SystemDma({ lp, memory, config, bus: new MemoryBus(), trafficClass: 12 });
    const rootComplex = host.corePort(1);
    dma.connect({ rootComplex, interrupts: { raise: () => undefined } });
    return { ...dma.blocks, rootComplex };
  };
  checkWires(systemDmaWires, make, ['interrupts']);
});

describe('every block of the controller', () => {
  it('8237A data sheet: has its power-on state after a master clear, from any state', () => {
    let changedCount = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const fresh = statesOf(makeBench(seed));
      const { bench, cycle } = interrupted(seed);
      if (statesOf(bench) !== fresh) changedCount++;
      bench.dma.portWrite(commonPort.masterClear.offset, 0);
      bench.device.stores.storeSpace();
      // An outstanding load returns first.
      bench.runTo(cycle + 100);
      expect(statesOf(bench), `seed ${seed}`).toBe(fresh);
    }
    expect(changedCount).toBeGreaterThan(50);
  });

  it('accounts for each of its cycles once, at whatever instant it is asked', () => {
    for (let seed = 100; seed < 140; seed++) {
      const { bench, cycle } = interrupted(seed);
      for (const account of accountsOf(bench)) {
        const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(cycle);
        const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
        expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, cycle, 0]);
      }
    }
  });

  it('stalls for each of the reasons that it declares, and moves every word once', () => {
    const bench = systemDmaBench();
    const { dma, device, memory, stores, runTo } = bench;
    device.room = 3;
    order(dma, 0, { address: 0x100, device: 0x8000, words: WORDS_MAX });
    order(dma, 1, { transfer: WRITE, address: 0x200, device: 0x9000, words: 2 });
    runTo(100);
    expect(stores).toHaveLength(3);
    device.room = WORDS_MAX;
    device.stores.storeSpace();
    runTo(500);
    expect(stores.flatMap(([, , bytes]) => bytes)).toEqual([
      ...memory.bytes.subarray(0x100, 0x100 + WORDS_MAX * 4),
    ]);
    expect(device.loads).toEqual([0x9000, 0x9004]);
    for (const { name, stallReasons, stalledCycles } of accountsOf(bench))
      for (const [index, reason] of stallReasons.entries())
        expect(stalledCycles[index], `${name}: ${reason}`).toBeGreaterThan(0);
  });
});
