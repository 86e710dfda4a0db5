/** Software that writes anything anywhere: nothing is thrown, and a reset makes the card work again. */
import { describe, expect, it } from 'vitest';
import { nicBar0 } from '../../abi/nic/index.ts';
import { Random } from '../../sim/random.ts';
import {
  frameBetween,
  NicBench,
  type NicMachine,
  RECEIVE_RING,
  TRANSMIT_RING,
  US,
} from './testing/nic-bench.ts';

const { msixTable, msixPending, ...others } = nicBar0.registers;
const names = Object.keys(others) as (keyof typeof others)[];
const WRITES = 250;

/** Values that mean something now and then: small ones, single bits, ring places, and any. */
function someValue(random: Random): number {
  switch (random.below(5)) {
    case 0:
      return random.below(20);
    case 1:
      return (1 << random.below(32)) >>> 0;
    case 2:
      return random.below(2) === 0 ? TRANSMIT_RING : RECEIVE_RING;
    case 3:
      return 128 * random.below(20);
    default:
      return random.uint32();
  }
}

async function misuse(
  machine: NicMachine,
  random: Random,
  run: (durationPs: number) => Promise<void>,
): Promise<void> {
  for (let count = 0; count < WRITES; count++) {
    const name = names[random.below(names.length)]!;
    if (random.below(6) === 0) await machine.read(name);
    else if (random.below(10) === 0)
      machine.memory.bytes[TRANSMIT_RING + random.below(512)] = random.below(256);
    else
      await machine.write(name, someValue(random), 4 * random.below(nicBar0.registers[name].sizeBytes / 4));
    if (random.below(20) === 0) await machine.storeAt(2, 4 * random.below(0x8000), random.uint32());
    await run(random.below(2 * US));
  }
}

describe('software that writes anything anywhere', () => {
  it.each([1, 2, 3, 4, 5, 6])('throws nothing, and a reset mends all it did (seed %i)', async (seed) => {
    const bench = new NicBench();
    await bench.bringUp();
    const { a, b } = bench;
    const run = bench.run.bind(bench);
    const random = new Random(seed, 'misuse');
    for (let index = 0; index < 8; index++) a.putFrame(index, frameBetween(0, 1, 60 + index * 100));
    await misuse(a, random, run);
    await a.write('ctrl', 1 << 26);
    await run(5 * US);
    expect(await a.read('ctrl')).toBe(0);
    await a.start();
    await b.write('ctrl', 1 << 26);
    await run(5 * US);
    await b.start();
    await run(40 * US);
    expect([await a.read('status'), await b.read('status')]).toEqual([3, 3]);
    const frame = frameBetween(0, 1, 777, seed);
    a.putFrame(0, frame);
    await a.write('tdt', 1);
    await run(20 * US);
    expect(a.transmitDescriptor(0)).toMatchObject({ done: 1, error: 0 });
    expect([...b.received(0)]).toEqual([...frame]);
    for (const account of a.nic.accounts)
      expect([account.name, account.overlapCount]).toEqual([account.name, 0]);
  });
});
