/** Contracts of every block of the IOMMU: a new block is checked by adding it to the list. */

import { describe, expect, it } from 'vitest';
import { entryOffsetOf, setEntry } from '../../abi/iommu-tables.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { pageBytes } from '../../base/units.ts';
import { type Block, type BlockState, type ExactPs, Random } from '../../sim/index.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { NON_POSTED, POSTED, STALL_REASONS } from '../pcie/index.ts';
import { memoryRead, memoryWrite } from '../pcie/link/link-bench.ts';
import { BenchMemory, rootComplexBench } from '../pcie/root-complex/root-complex-bench.ts';
import { Iommu } from './iommu.ts';
import { iommuWires } from './iommu-blocks.ts';
import { Iotlb } from './iotlb.ts';
import { type IommuConfig, iommuParameters } from './parameters.ts';

const ROOT = 0x1000;
const LAST_TABLE = 0x4000;
const RIGHTS_MAX = 3;

interface Subject extends Required<Pick<Block, 'inspect' | 'reset'>> {
  /** One random access or change. */
  step(random: Random): void;
}

const frameOf = (page: number): number => 0x1_0000 + page * pageBytes;

/** An IOMMU over a memory with one table per level, which map 64 pages. */
function mappedIommu(
  memory: BenchMemory,
  lp: { readonly instantPs: ExactPs },
  changes: Partial<IommuConfig>,
  rightsOf: (page: number) => number,
): Iommu {
  const view = new DataView(memory.bytes.buffer);
  for (let level = 4; level > 1; level--) setEntry(view, (5 - level) * ROOT, (6 - level) * ROOT, RIGHTS_MAX);
  for (let page = 0; page < 64; page++)
    setEntry(view, LAST_TABLE + entryOffsetOf(page * pageBytes, 1), frameOf(page), rightsOf(page));
  return new Iommu({ lp, memory, config: { ...defaultsOf(iommuParameters), ...changes } });
}

const ignored = { processor: { faultRecorded: () => {} } };

/** An IOMMU some of whose pages are mapped, for some kinds of access. */
function iommuSubject(): Subject {
  const memory = new BenchMemory(2 ** 20);
  const config = { iotlbEntries: 8, faultLogEntries: 4 };
  const iommu = mappedIommu(memory, { instantPs: 0 }, config, (page) => page % 4);
  iommu.connect(ignored);
  const bytes = new Uint8Array(8);
  const steps: readonly ((address: number) => void)[] = [
    () => iommu.setRoot(ROOT),
    (address) => iommu.translationPs(address, 0),
    (address) => iommu.write(address, 8, bytes, 0),
    (address) => iommu.readInto(address, 8, bytes, 0),
    (address) => iommu.invalidate(address),
    () => iommu.takeFaults(),
  ];
  return {
    step: (random) => steps[random.below(steps.length)]!(random.below(80) * pageBytes),
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
    reset: () => iotlb.reset(),
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

  it('has no state left after a reset, from any state', () => {
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

  it('has a state that depends only on its history', () => {
    for (let seed = 1; seed <= 10; seed++)
      expect(stateOf(played(seed, 100))).toEqual(stateOf(played(seed, 100)));
    expect(new Set([1, 2, 3].map((seed) => JSON.stringify(stateOf(played(seed, 100))))).size).toBe(3);
  });
});

it('VT-d 10.4: a full fault log loses no count, and reports a fault once until it is read', () => {
  const memory = new BenchMemory(pageBytes);
  const config = { ...defaultsOf(iommuParameters), faultLogEntries: 2 };
  const iommu = new Iommu({ lp: { instantPs: 0 }, memory, config });
  let interruptCount = 0;
  iommu.connect({ processor: { faultRecorded: () => interruptCount++ } });
  for (let index = 0; index < 5; index++) iommu.write(index * pageBytes, 1, new Uint8Array(1), 0);
  const { faults, lostFaultCount, faultCount } = iommu.blocks.faultLog;
  expect([faults.length, lostFaultCount, faultCount, interruptCount]).toEqual([2, 3, 5, 1]);
});

it('the wires of the IOMMU lead to existing blocks, and each port is connected once', () => {
  const make = () => {
    const iommu = mappedIommu(new BenchMemory(2 ** 20), { instantPs: 0 }, {}, () => 0);
    iommu.connect(ignored);
    return iommu.blocks;
  };
  checkWires(iommuWires, make, ['processor']);
});

const COUNT = 10;
const WALK_LEVEL_NS = 1000;
const STEP_PS = 133_331;
const contentOf = (page: number): number[] => Array.from({ length: 64 }, (_, at) => (page * 7 + at) & 0xff);

/** A device whose every access needs a walk, on a link with one credit for a request of each kind; nothing was sent yet. */
function walkingBench() {
  let iommu: Iommu | undefined;
  const bench = rootComplexBench({
    rootPort: { postedHeaders: 1, nonPostedHeaders: 1 },
    memoryOf: (memory, lp) => {
      const config = { iotlbEntries: 1, iotlbWays: 1, walkLevelNs: WALK_LEVEL_NS };
      iommu = mappedIommu(memory, lp, config, () => RIGHTS_MAX);
      return iommu;
    },
  });
  iommu!.connect(ignored);
  iommu!.setRoot(ROOT);
  return { ...bench, iommu: iommu! };
}

describe.each([
  ['write', POSTED],
  ['read', NON_POSTED],
] as const)('a walk for a %s', (kind, flow) => {
  it('stalls the device, accounts for each picosecond of its waiting once, under the missing credits, and loses nothing', () => {
    const { device, deviceLp, memory, iommu, atDevice, host, run } = walkingBench();
    const domain = deviceLp.addClockDomain(400);
    const send = (page: number): void => {
      const request = { address: page * pageBytes, lengthBytes: 64 };
      if (kind === 'write')
        memoryWrite(device, { ...request, trafficClass: 5, source: Uint8Array.from(contentOf(page)) });
      else memoryRead(device, { ...request, trafficClass: 4, tag: page, requesterId: 0x100 });
    };
    if (kind === 'read')
      for (let page = 0; page < COUNT; page++) memory.bytes.set(contentOf(page), frameOf(page));
    let sentCount = 0;
    const stage = domain.addStage((cycle) => {
      if (device.canSend(flow)) send(sentCount++);
      if (sentCount < COUNT) domain.wake(stage, cycle + 1);
    });
    domain.wake(stage, 1);
    const stallsOf = (nowPs: number): number[] => {
      device.closeAccounts(nowPs);
      const from = flow * STALL_REASONS.length;
      return [...device.transmitter.stallPs.subarray(from, from + STALL_REASONS.length)];
    };
    const { fifo, sent } = device.transmitter.flows[flow]!;
    const walkPs = 4 * WALK_LEVEL_NS * 1000;
    let [waited, tlps, bookedPs, wholeCount] = [false, 0, 0, 0];
    for (let nowPs = STEP_PS; nowPs < 2 * COUNT * walkPs; nowPs += STEP_PS) {
      run(nowPs);
      const nowBookedPs = stallsOf(nowPs).reduce((sum, ps) => sum + ps, 0);
      expect(nowBookedPs - bookedPs).toBeLessThanOrEqual(STEP_PS);
      if (waited && sent.tlps === tlps) {
        expect(nowBookedPs - bookedPs).toBe(STEP_PS);
        wholeCount++;
      }
      [waited, tlps, bookedPs] = [fifo.count > 0, sent.tlps, nowBookedPs];
    }
    expect(wholeCount).toBeGreaterThan(COUNT * 10);
    const headerPs = stallsOf(deviceLp.nowPs)[STALL_REASONS.indexOf('headerCredits')]!;
    // The first is sent at once; each other one waits for the previous walk.
    expect(headerPs).toBeGreaterThan((COUNT - 2) * walkPs);
    const got =
      kind === 'read'
        ? atDevice.toSorted((one, other) => one.tag - other.tag).map(({ bytes }) => bytes)
        : Array.from({ length: COUNT }, (_, page) => [
            ...memory.bytes.subarray(frameOf(page), frameOf(page) + 64),
          ]);
    expect(got).toEqual(Array.from({ length: COUNT }, (_, page) => contentOf(page)));
    expect([sentCount, host.receiver.heldCount]).toEqual([COUNT, 0]);
    expect(iommu.blocks.walker.walkCount).toBeGreaterThanOrEqual(COUNT);
    expect(iommu.blocks.faultLog.faultCount).toBe(0);
  });
});
