/** What holds for every block of the IOMMU, whatever it does: contracts that each new block is held to by being listed. */
import { describe, expect, it } from 'vitest';
import { entryOffsetOf, setEntry } from '../../abi/iommu-tables.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { type Block, type BlockState, Random } from '../../sim/index.ts';
import { BenchMemory } from '../pcie/root-complex-bench.ts';
import { Iommu } from './iommu.ts';
import { Iotlb } from './iotlb.ts';
import { iommuParameters } from './parameters.ts';

const ROOT = 0x1000;
const LAST_TABLE = 0x4000;
const PAGE_BYTES = 4096;
const RIGHTS_MAX = 3;

interface Subject extends Required<Pick<Block, 'inspect' | 'reset'>> {
  /** One random access or change. */
  step(random: Random): void;
}

/** An IOMMU over a memory with one table a level, of whose pages 64 are mapped for some kind of access or none. */
function iommuSubject(): Subject {
  const memory = new BenchMemory(2 ** 20);
  const view = new DataView(memory.bytes.buffer);
  const config = { ...defaultsOf(iommuParameters), iotlbEntries: 8, faultLogEntries: 4 };
  const iommu = new Iommu(memory, config, () => 0);
  iommu.connect({ processor: { faultRecorded: () => {} } });
  for (let level = 4; level > 1; level--) setEntry(view, (5 - level) * ROOT, (6 - level) * ROOT, RIGHTS_MAX);
  for (let page = 0; page < 64; page++) {
    const at = LAST_TABLE + entryOffsetOf(page * PAGE_BYTES, 1);
    setEntry(view, at, 0x1_0000 + page * PAGE_BYTES, page % 4);
  }
  const bytes = new Uint8Array(8);
  const steps: readonly ((address: number) => void)[] = [
    () => iommu.setRoot(ROOT),
    (address) => iommu.translationPs(address),
    (address) => iommu.write(address, 8, bytes, 0),
    (address) => iommu.readInto(address, 8, bytes, 0),
    (address) => iommu.invalidate(address),
    () => iommu.takeFaults(),
  ];
  return {
    step: (random) => steps[random.below(steps.length)]!(random.below(80) * PAGE_BYTES),
    inspect: () => iommu.inspect(),
    reset: () => iommu.reset(),
  };
}

function iotlbSubject(): Subject {
  const iotlb = new Iotlb(16, 4);
  return {
    step(random) {
      const page = random.below(40);
      if (random.chance(0.2)) iotlb.drop(page);
      else if (iotlb.find(page) < 0) iotlb.fill(page, page + 100, 1 + random.below(RIGHTS_MAX));
    },
    inspect: () => iotlb.inspect(),
    reset: () => iotlb.dropAll(),
  };
}

const blocks = { iommu: iommuSubject, iotlb: iotlbSubject };

describe.each(Object.entries(blocks))('every block of the IOMMU: %s', (_, make) => {
  const played = (seed: number, stepCount: number): Subject => {
    const [random, subject] = [new Random(seed), make()];
    for (let step = 0; step < stepCount; step++) subject.step(random);
    return subject;
  };
  const stateOf = (subject: Subject): BlockState => subject.inspect();

  it('leaves nothing behind when it is reset, in whatever state', () => {
    const fresh = stateOf(make());
    let changedCount = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const subject = played(seed, 1 + (seed % 30));
      if (JSON.stringify(stateOf(subject)) !== JSON.stringify(fresh)) changedCount++;
      subject.reset();
      expect(stateOf(subject), `seed ${seed}`).toEqual(fresh);
    }
    expect(changedCount).toBeGreaterThan(30);
  });

  it('is in a state that its past alone decides', () => {
    for (let seed = 1; seed <= 10; seed++)
      expect(stateOf(played(seed, 100))).toEqual(stateOf(played(seed, 100)));
    expect(new Set([1, 2, 3].map((seed) => JSON.stringify(stateOf(played(seed, 100))))).size).toBe(3);
  });
});

it('a full fault log loses no count, and says that there is a fault once until it is read', () => {
  const memory = new BenchMemory(PAGE_BYTES);
  const iommu = new Iommu(memory, { ...defaultsOf(iommuParameters), faultLogEntries: 2 }, () => 0);
  let interruptCount = 0;
  iommu.connect({ processor: { faultRecorded: () => interruptCount++ } });
  for (let index = 0; index < 5; index++) iommu.write(index * PAGE_BYTES, 1, new Uint8Array(1), 0);
  expect([iommu.faults.length, iommu.lostFaultCount, iommu.faultCount, interruptCount]).toEqual([2, 3, 5, 1]);
});
