/** Contracts that every block of the control side keeps; adding a block to the list tests it against them. */
import { describe, expect, it } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { EventType } from '../../abi/eqe.ts';
import { Random } from '../../sim/index.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { CommandDma } from './commands/command-dma.ts';
import { CommandProcessor } from './commands/command-processor.ts';
import { DeviceState } from './connectx3/commands/device-state.ts';
import { ControlRegisters } from './connectx3/registers/control-registers.ts';
import { controlWires } from './control-blocks.ts';
import { EventWriter } from './events/event-writer.ts';
import { HcaPort } from './port/hca-port.ts';
import {
  broughtUp,
  createCq,
  createEq,
  createSrq,
  firstCqn,
  firstQpn,
  initMailbox,
} from './testing/bring-up.ts';
import { ControlBench } from './testing/control-bench.ts';

const RESET = bar0.registers.reset.offset;
const SEMAPHORE = bar0.registers.semaphore.offset;
const blocks = [ControlRegisters, CommandProcessor, CommandDma, EventWriter, DeviceState, HcaPort];

/**
 * A device in use: queues, a port, a cable that is plugged and unplugged, events, and commands, of which the last may
 * be in progress.
 */
function busy(seed: number): ControlBench {
  const random = new Random(seed);
  const bench = broughtUp({ eventFifoDepth: 4, ...(random.chance(0.5) ? { linkInitialiseCycles: 20 } : {}) });
  const { events } = bench.control;
  bench.contexts.isOnChip = () => {
    const isOnChip = random.chance(0.7);
    if (!isOnChip) events.wake(bench.domain.cycle + 5);
    return isOnChip;
  };
  const drain = bench.domain.addStage(() => bench.control.blocks.drains.watch(0), bench);
  const eqn = createEq(bench, 0, 7, random.chance(0.5) ? {} : { moderationPeriod: 20 });
  createCq(bench, 1, eqn);
  createSrq(bench);
  events.mapEvents(0, (1 << EventType.COMM_EST) | (1 << EventType.CMD), eqn);
  bench.cable.set(true);
  if (random.chance(0.5)) bench.command('INIT_PORT', { inputModifier: 1 });
  const doings: readonly (() => unknown)[] = [
    () => bench.post('NOP', { byEvent: random.chance(0.5) }),
    () => bench.post('QUERY_CQ', { inputModifier: firstCqn + 1, outBytes: 64 }),
    () => bench.post('RST2INIT_QP', { inputModifier: firstQpn, inBox: initMailbox(firstCqn + 1) }),
    () => bench.post('HW2SW_CQ', { inputModifier: firstCqn + 1 }),
    () => bench.post('QUERY_DEV_CAP', { outBytes: 256 }),
    () => bench.cable.set(random.chance(0.7)),
    () => bench.read32(SEMAPHORE),
    () => {
      bench.dataPath.busyQps.add(0);
      bench.domain.wakeAfter(drain, bench.lp.nowPs);
    },
    () => {
      for (let count = 1 + random.below(4); count > 0 && events.canPost(); count--)
        events.postQpEvent(EventType.COMM_EST, firstQpn, bench.cycle);
    },
    () => {
      if (random.chance(0.5)) bench.dataPath.busyCqs.add(0);
      else bench.dataPath.busyCqs.clear();
    },
    () => {
      bench.interrupts.refusals = random.below(3);
    },
  ];
  for (let step = 5 + random.below(40); step > 0; step--) {
    doings[random.below(doings.length)]!();
    bench.run(random.below(60));
  }
  return bench;
}

/**
 * A CQ with work in the pipelines is destroyed; then a command completes by event while the event fifo is full. Both
 * wait, and end.
 */
function heldUp(): ControlBench {
  const bench = broughtUp({ eventFifoDepth: 4 });
  const { events, processor } = bench.control;
  const eqn = createEq(bench, 0);
  createCq(bench, 1, eqn);
  bench.dataPath.busyCqs.add(0);
  bench.post('HW2SW_CQ', { inputModifier: firstCqn + 1 });
  bench.run(20_000);
  expect(processor.isIdle).toBe(false);
  bench.dataPath.busyCqs.clear();
  bench.run(20_000);
  expect(processor.isIdle).toBe(true);
  let isOnChip = false;
  bench.contexts.isOnChip = () => isOnChip;
  events.mapEvents(0, (1 << EventType.COMM_EST) | (1 << EventType.CMD), eqn);
  while (events.canPost()) events.postQpEvent(EventType.COMM_EST, firstQpn, bench.cycle);
  bench.post('NOP', { byEvent: true });
  bench.run(20_000);
  expect([processor.isIdle, events.writtenCount]).toEqual([false, 0]);
  isOnChip = true;
  events.wake(bench.cycle + 1);
  bench.run(20_000);
  expect([processor.isIdle, events.writtenCount, events.heldCount]).toEqual([true, 5, 0]);
  return bench;
}

it('the wires of the control side lead to blocks that there are, and each port is connected once', () => {
  checkWires(controlWires, () => new ControlBench().control.blocks, [
    'control',
    'dataPath',
    'tcp',
    'contexts',
    'posters',
  ]);
});

describe('every block of the control side', () => {
  it('shows its state, and can be reset', () => {
    for (const { name, prototype } of blocks)
      expect(['inspect' in prototype, 'reset' in prototype], name).toEqual([true, true]);
  });

  it('sheet 2.3: leaves nothing behind when software resets the device, in whatever state', () => {
    const made = new ControlBench();
    const fresh = made.control.inspect();
    const seen = new Set<string>();
    for (let seed = 1; seed <= 40; seed++) {
      const bench = busy(seed);
      for (const [name, state] of Object.entries(bench.control.inspect()))
        if (JSON.stringify(state) !== JSON.stringify(fresh[name])) seen.add(name);
      bench.write32(RESET, 1);
      expect(bench.control.inspect(), `seed ${seed}`).toEqual(fresh);
      bench.run(5000);
      expect(bench.control.inspect(), `seed ${seed}, later`).toEqual(fresh);
    }
    expect(Object.keys(fresh).filter((name) => !seen.has(name))).toEqual([]);
  });

  it('accounts for each of its cycles once, at whatever instant it is asked, and stalls for each of its reasons', () => {
    const declared = new Set<string>();
    const counted = new Set<string>();
    const seeds = Array.from({ length: 30 }, (_, index) => 50 + index);
    for (const bench of [heldUp(), ...seeds.map(busy)]) {
      const { processor, events } = bench.control;
      const elapsed = bench.domain.clock.cyclesElapsed(bench.lp.nowPs);
      for (const account of [processor.account, events.account]) {
        const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(elapsed);
        const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
        expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, elapsed, 0]);
        for (const [index, reason] of account.stallReasons.entries()) {
          declared.add(`${name}: ${reason}`);
          if (stalledCycles[index]! > 0) counted.add(`${name}: ${reason}`);
        }
      }
    }
    // The write engine accepts as many EQEs as the writer's fifo has entries: the fifo is full first.
    expect([...declared].filter((reason) => !counted.has(reason))).toEqual(['eventWriter: dmaWrite']);
  });
});
