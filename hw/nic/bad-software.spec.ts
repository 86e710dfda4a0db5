/** Software that writes arbitrary values to arbitrary registers: nothing is thrown, and after a reset the card works again. */
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
const WRITES = 60;

/** Values that are sometimes meaningful: small ones, single bits, ring indices, and any. */
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

/** A descriptor with one wrong field, or several. */
function putBadFrame(machine: NicMachine, index: number, random: Random): void {
  const length = random.between(0, 1700);
  machine.putFrame(index, frameBetween(0, 1, 1700, index).subarray(0, length), {
    endOfPacket: random.below(4) === 0 ? 0 : 1,
    reportStatus: random.below(2),
    insertChecksum: random.below(2),
    checksumStart: random.below(256),
    checksumOffset: random.below(256),
    ...(random.below(12) === 0 ? { bufferAddress: BigInt(random.uint32()) << BigInt(random.below(33)) } : {}),
  });
}

/** Wrong writes among correct ones: the rings are restarted now and then, and receive descriptors continuously. */
async function misuse({ a, run }: Misused, random: Random): Promise<void> {
  for (let count = 0; count < WRITES; count++) {
    const kind = random.below(20);
    const name = names[random.below(names.length)]!;
    if (kind < 4)
      await a.write(name, someValue(random), 4 * random.below(nicBar0.registers[name].sizeBytes / 4));
    else if (kind < 6) await a.read(name);
    else if (kind === 6) await a.storeAt(2, 4 * random.below(0x8000), random.uint32());
    else if (kind === 7) await a.write('ims', random.uint32());
    else if (kind < 14) {
      for (let index = 0; index < 16; index++) putBadFrame(a, index, random);
      await a.write('tdt', random.below(random.below(10) === 0 ? 20 : 16));
    } else if (kind < 17) await a.write('rdt', random.below(16));
    else if (kind === 17) {
      if (random.below(3) === 0) await a.write('ctrl', 1 << 26);
      await run(3 * US);
      await a.write('txdctl', 0);
      await a.write('rxdctl', 0);
      await a.write('pbmode', 0);
      await run(5 * US);
      await a.start();
      await run(30 * US);
    } else await a.write('piotx', (1 << 31) | random.uint32());
    await run(random.below(2 * US));
  }
}

interface Misused {
  readonly a: NicMachine;
  readonly run: (durationPs: number) => Promise<void>;
}

describe('software that writes anything anywhere', () => {
  it.each([1, 2, 3, 4, 5, 6])('8254x manual 13.4.1: is repaired by a reset (seed %i)', async (seed) => {
    const bench = new NicBench();
    await bench.bringUp();
    const { a, b } = bench;
    const run = bench.run.bind(bench);
    const random = new Random(seed, 'misuse');
    await b.write('rctl', 0x801e);
    // The other side sends all the time, to all stations.
    for (let index = 0; index < 16; index++) b.putFrame(index, frameBetween(1, 0, 100 + index * 90));
    for (let part = 1; part <= 8; part++) {
      await misuse({ a, run }, random);
      await b.write('tdt', (part * 2) % 16);
    }
    const { counters } = a.nic;
    expect(counters.transmitFrames).toBeGreaterThan(10);
    expect(counters.programmingErrors).toBeGreaterThan(10);
    expect(counters.busErrors).toBeGreaterThan(0);
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
