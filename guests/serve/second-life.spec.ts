/**
 * A served device after a reset equals the one after power-on: regardless of the previous guest, the next guest's driver finds
 * the same answers, the same accesses to its memory in the same order, and the same interrupts.
 */
import { createHash } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { Opcode } from '../../abi/commands.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import { Random } from '../../sim/index.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { BAR2, SlotBench } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const memoryBytes = 32 << 20;
const { hcr, reset } = bar0.registers;

/** A guest arrives, its driver probes the device and removes it: every access of the device and every interrupt, in order. */
async function lifeOf(bench: SlotBench): Promise<string[]> {
  const slot = new DrivenSlot(bench, 0, memoryBytes);
  const { memory } = slot;
  const log: string[] = [];
  const readInto = memory.readInto.bind(memory);
  const write = memory.write.bind(memory);
  memory.readInto = (address, lengthBytes, target, targetOffset) => {
    const isThere = readInto(address, lengthBytes, target, targetOffset);
    log.push(`read ${address} ${lengthBytes} ${isThere}`);
    return isThere;
  };
  memory.write = (address, lengthBytes, source, sourceOffset) => {
    const bytes = source.subarray(sourceOffset, sourceOffset + lengthBytes);
    log.push(`write ${address} ${createHash('sha1').update(bytes).digest('hex')}`);
    return write(address, lengthBytes, source, sourceOffset);
  };
  const firstInterrupt = bench.raised.length;
  const driver = new Driver(slot.platform, defaultsOf(driverParameters));
  await driver.probe(slot.cpu);
  slot.pass(2);
  log.push(JSON.stringify(driver.resourceCounts()));
  await driver.remove(slot.cpu);
  slot.pass(2);
  return [...log, `interrupts ${bench.raised.slice(firstInterrupt).join()}`];
}

/** A hostile guest with the register map: an erratic probe, doorbells, random commands, then silence. */
async function rage(bench: SlotBench, seed: number): Promise<void> {
  const random = new Random(seed, 'rage');
  const below = (limit: number): number => Math.floor(random.unit() * limit);
  const slot = new DrivenSlot(bench, 0, memoryBytes);
  const sanePeriod = below(3000);
  let storeCount = 0;
  slot.distort = (value) =>
    ++storeCount > sanePeriod && random.unit() < 0.02 ? (value ^ (1 << below(32))) >>> 0 : value;
  await new Driver(slot.platform, defaultsOf(driverParameters)).probe(slot.cpu).catch(() => {});
  const opcodes = Object.values(Opcode);
  for (let turn = 0; turn < 40; turn++) {
    for (let word = 0; word < 6; word++)
      bench.writeRegister(
        hcr.offset + 4 * word,
        word === 0 || word === 3 ? 0 : below(2) * below(memoryBytes),
      );
    const opcode = opcodes[below(opcodes.length)]!;
    bench.writeRegister(hcr.offset + 24, ((1 << 23) | (below(2) << 12) | opcode) >>> 0);
    bench.write(BAR2, below(2048) * 4096 + 0x14, below(2 ** 32));
    slot.pass(1);
  }
}

it.each(['power-off', 'software reset', 'function-level reset'])('after %s', async (way) => {
  const first = await lifeOf(new SlotBench());
  expect(first.length).toBeGreaterThan(300);
  for (let seed = 1; seed <= 6; seed++) {
    const bench = new SlotBench();
    await rage(bench, seed);
    if (way === 'software reset') bench.writeRegister(reset.offset, 1);
    if (way === 'function-level reset') bench.slot().reset();
    if (way === 'power-off') bench.slot().clientDisconnected();
    bench.work();
    expect(bench.emulation.defects).toEqual([]);
    expect(await lifeOf(bench)).toEqual(first);
  }
});
