import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { Opcode } from '../../abi/commands.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import { Random } from '../../sim/index.ts';
import { INTERRUPT_INTX, INTERRUPT_MSIX } from '../slot/device.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { BAR0, BAR2, CONFIG, SlotBench } from './testing/slot-bench.ts';

const seed = 20261121;
const { hcr, reset } = bar0.registers;
const memoryBytes = 1 << 20;

/** Offsets with an effect, and any others. */
const registerOffset = fc.oneof(
  fc.constantFrom(...Object.values(bar0.registers).map(({ offset }) => offset)),
  fc.integer({ min: 0, max: 6 }).map((word) => hcr.offset + 4 * word),
  fc.nat(bar0.sizeBytes - 64),
);
const doorbellOffset = fc.oneof(
  fc
    .tuple(fc.nat(2047), fc.constantFrom(0x14, 0x20, 0x24, 0x800, 0x808))
    .map(([page, within]) => page * 4096 + within),
  fc.nat(0x80_0000 - 64),
);
const configOffset = fc.oneof(
  fc.constantFrom(4, 6, 0x10, 0x14, 0x18, 0x1c, 0x44, 0x48, 0x4a, 0x68, 0x69, 0x6a, 0x88, 0x9e, 0x154, 0x158),
  fc.nat(4096 - 64),
);
const bytes = fc.oneof(
  fc.constantFrom(1, 2, 4, 8).chain((length) => fc.uint8Array({ minLength: length, maxLength: length })),
  fc.uint8Array({ minLength: 1, maxLength: 64 }),
);
const opcode = fc.oneof(fc.constantFrom(...Object.values(Opcode)), fc.nat(0xfff));
/** A parameter of a command: nothing, an address in memory, a small number, anything. */
const parameter = fc.oneof(
  fc.constant(0),
  fc.nat(memoryBytes / 4096 - 1).map((page) => page * 4096),
  fc.nat(300),
  fc.nat(0xffff_ffff),
);

type Step = (bench: SlotBench) => void;

const writeRegister = fc.tuple(registerOffset, bytes).map(
  ([offset, data]): Step =>
    (bench) =>
      void bench.slot().regionWrite(BAR0, offset, data),
);
const writeDoorbell = fc.tuple(doorbellOffset, bytes).map(
  ([offset, data]): Step =>
    (bench) =>
      void bench.slot().regionWrite(BAR2, offset, data),
);
const writeConfig = fc.tuple(configOffset, bytes).map(
  ([offset, data]): Step =>
    (bench) =>
      void bench.slot().regionWrite(CONFIG, offset, data),
);
const readAnything = fc.tuple(fc.constantFrom(BAR0, BAR2, CONFIG, 1, 6), fc.nat(4000), bytes).map(
  ([region, offset, into]): Step =>
    (bench) =>
      void bench.slot().regionRead(region, offset, into),
);
const command = fc
  .tuple(opcode, fc.array(parameter, { minLength: 6, maxLength: 6 }), fc.nat(15), fc.nat(3))
  .map(
    ([code, words, modifier, bits]): Step =>
      (bench) => {
        words.forEach((word, index) => {
          bench.writeRegister(hcr.offset + 4 * index, word);
        });
        // GO; toggle and event bits at random.
        bench.writeRegister(hcr.offset + 24, ((1 << 23) | (bits << 21) | (modifier << 12) | code) >>> 0);
        bench.emulation.work(1);
      },
  );
const interrupt = fc
  .tuple(fc.constantFrom(INTERRUPT_INTX, INTERRUPT_MSIX), fc.nat(127), fc.boolean(), fc.boolean())
  .map(
    ([index, vector, isGiven, isMask]): Step =>
      (bench) => {
        if (isMask) bench.slot().maskInterrupt(index, vector, isGiven);
        else bench.slot().setInterrupt(index, vector, isGiven ? 99 : -1);
      },
  );
const time = fc.constantFrom(0, 0.01, 1, 600).map(
  (ms): Step =>
    (bench) => {
      bench.wallMs += ms;
      bench.emulation.work(1);
    },
);
const enable = fc.constant<Step>((bench) => bench.enable());
const deviceReset = fc.constant<Step>((bench) => bench.writeRegister(reset.offset, 1));
const slotReset = fc.constant<Step>((bench) => bench.slot().reset());
const change = fc.constant<Step>((bench) => {
  bench.slot().clientDisconnected();
  bench.connect(0, memoryBytes);
});
const step = fc.oneof(
  { arbitrary: writeRegister, weight: 6 },
  { arbitrary: writeDoorbell, weight: 4 },
  { arbitrary: writeConfig, weight: 3 },
  { arbitrary: readAnything, weight: 3 },
  { arbitrary: command, weight: 6 },
  { arbitrary: interrupt, weight: 2 },
  { arbitrary: time, weight: 4 },
  { arbitrary: enable, weight: 2 },
  { arbitrary: deviceReset, weight: 1 },
  { arbitrary: slotReset, weight: 1 },
  { arbitrary: change, weight: 1 },
);

describe('for any action of a guest', () => {
  it('the device answers it, and never throws', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 150 }), (steps) => {
        const bench = new SlotBench();
        bench.connect(0, memoryBytes);
        bench.enable();
        for (const act of steps) act(bench);
        expect(bench.emulation.defects).toEqual([]);
        // It still is a working device: the next guest brings it up.
        bench.slot().clientDisconnected();
        bench.connect(0, memoryBytes);
        bench.enable();
        expect(bench.readRegister(bar0.registers.owner.offset)).toBe(0);
      }),
      { seed, numRuns: 60 },
    );
  });

  it('holds for an erratic driver at any point: stores and memory with flipped bits', async () => {
    for (let run = 0; run < 24; run++) {
      const random = new Random(seed + run, 'mad driver');
      const bench = new SlotBench();
      const slot = new DrivenSlot(bench, 0, 32 << 20);
      const below = (limit: number): number => Math.floor(random.unit() * limit);
      const sanePeriod = below(1500);
      let storeCount = 0;
      slot.distort = (value) => {
        if (++storeCount < sanePeriod) return value;
        if (random.unit() < 0.05)
          for (let flip = 0; flip < 40; flip++)
            slot.memory.bytes[below(slot.memory.bytes.length / 8)] = below(256);
        return random.unit() < 0.01 ? (value ^ (1 << below(32))) >>> 0 : value;
      };
      const driver = new Driver(slot.platform, defaultsOf(driverParameters));
      // Its progress does not matter.
      await driver.probe(slot.cpu).catch(() => {});
      for (let ring = 0; ring < 100; ring++) bench.write(BAR2, below(2048) * 4096 + 0x14, below(2 ** 32));
      slot.pass(5);
      bench.slot().clientDisconnected();
      bench.work();
      expect([run, bench.emulation.defects]).toEqual([run, []]);
    }
  });
});
