import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CommandName, commands } from '../abi/index.ts';
import { trafficClassCount } from '../hw/dma/index.ts';
import { AnalyserBench, bar0Address, bar2Address, type CommandSetup } from './testing/bench.ts';

/** Mailboxes of random bytes or all ones: every size, count and address at its maximum. */
const box = fc.oneof(
  fc.uint8Array({ minLength: 64, maxLength: 512 }),
  fc.constant(new Uint8Array(4096).fill(0xff)),
  fc.integer({ min: 0, max: 255 }).map((byte) => new Uint8Array(512).fill(byte)),
);
const word = fc.oneof(
  fc.integer({ min: 0, max: 0x60 }),
  fc.integer({ min: 0, max: 0xffff_ffff }),
  fc.constant(0xffff_ffff),
);
const names = Object.keys(commands) as CommandName[];

const command = fc.record({
  name: fc.constantFrom(...names),
  setup: fc.record({
    inputModifier: word,
    opcodeModifier: fc.integer({ min: 0, max: 15 }),
    box: fc.option(box, { nil: undefined }),
    answer: fc.option(box, { nil: undefined }),
    status: fc.constantFrom(0, 0, 0, 3),
    inParam: fc.option(word, { nil: undefined }),
    isLeftUnanswered: fc.boolean(),
  }),
});

const store = fc.record({
  bar: fc.constantFrom(bar0Address, bar2Address),
  offset: fc.oneof(
    fc.integer({ min: 0, max: 0xf_ffff }),
    fc.constantFrom(0x7c7fc, 0x80680, 0x80698, 0x8069c, 0xf0010, 0x1f83c, 0x8014, 0x8020, 0x8024, 0x1800),
    fc.integer({ min: 0x40_8000, max: 0x40_8fff }),
  ),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 64 }),
});

const dma = fc.record({
  address: fc.oneof(fc.integer({ min: 0x70_0000, max: 0x74_0fff }), fc.integer({ min: 0, max: 0xff_0000 })),
  lengthBytes: fc.integer({ min: 1, max: 1024 }),
  trafficClass: fc.integer({ min: 0, max: trafficClassCount - 1 }),
  byte: fc.integer({ min: 0, max: 255 }),
  isRead: fc.boolean(),
});

const act = fc.oneof(
  command.map((one) => (bench: AnalyserBench) => bench.command(one.name, withoutUndefined(one.setup))),
  store.map(
    ({ bar, offset, bytes }) =>
      (bench: AnalyserBench) =>
        bench.store(bar + offset, bytes),
  ),
  store.map(
    ({ bar, offset, bytes }) =>
      (bench: AnalyserBench) =>
        bench.load32(bar + offset, bytes[0]!),
  ),
  dma.map(({ address, lengthBytes, trafficClass, byte, isRead }) => (bench: AnalyserBench) => {
    if (isRead) bench.deviceReads(address, lengthBytes, trafficClass);
    else bench.deviceWrites(address, new Uint8Array(lengthBytes).fill(byte), trafficClass);
  }),
);

function withoutUndefined(setup: object): CommandSetup {
  return Object.fromEntries(Object.entries(setup).filter(([, value]) => value !== undefined));
}

describe('the analyser', () => {
  it('handles any traffic on the bus, in bounded time', { timeout: 120_000 }, () => {
    const property = fc.property(
      fc.array(act, { minLength: 1, maxLength: 60 }),
      fc.boolean(),
      (acts, isUp) => {
        const bench = new AnalyserBench();
        if (isUp) {
          bench.bringUp();
          bench.createCq();
          bench.createSrq();
          bench.createMpt();
          bench.readyQp();
        }
        for (const one of acts) one(bench);
        bench.analyser.close();
        expect(bench.log.text).not.toContain('undefined');
      },
    );
    fc.assert(property, {
      numRuns: 400,
      seed: 20261121,
      interruptAfterTimeLimit: 90_000,
      markInterruptAsFailure: true,
    });
  });
});
