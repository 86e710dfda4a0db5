/**
 * Tests BAR0 of the NIC through the bus: software reads after writing ones and zeros, compared with the data sheets'
 * access.
 */
import { describe, expect, it } from 'vitest';
import { nicBar0 } from '../../abi/nic/index.ts';
import { accessMistakes } from '../../base/testing/register-access.ts';
import { NicBench } from './testing/nic-bench.ts';

/** Registers whose writes have effects: other blocks store, reject or use the written value. */
const effects = [
  'ctrl', // RST
  'ims', // of 32 bits, those that are causes
  'eiac',
  'iam',
  'rxbuf', // from 64 on
  'txdctl', // starts the queue
  'rxdctl',
  'pbmode',
  'piotx',
  'piorx',
] as const;

async function machine() {
  const bench = new NicBench();
  await bench.a.enumerate();
  return bench.a;
}

describe('BAR0 of the NIC', () => {
  it('behaves in every bit as it is declared', async () => {
    const a = await machine();
    const bus = {
      read: (offset: number) => a.loadAt(0, offset),
      write: (offset: number, value: number) => a.storeAt(0, offset, value),
    };
    expect(await accessMistakes(nicBar0.registers, bus, effects)).toEqual([]);
  });

  // Name, offset, value after power-on, after all ones, after zeros. 8254x manual, chapter 13; 82574 datasheet, 10.2.
  it.each([
    ['STATUS is read only', 0x0008, 1, 1, 1],
    ['ICS is write only, and sets what ICR shows', 0x00c8, 0, 0, 0],
    ['IMS reads the mask, ones set, zeros do nothing', 0x00d0, 0, 0x0003_03d7, 0x0003_03d7],
    ['IMC is write only', 0x00d8, 0, 0, 0],
    ['IVAR has three vectors of three bits, each with its valid bit', 0x00e4, 0, 0x000f_0f0f, 0],
    ['EITR has an interval of 16 bits', 0x00e8, 0, 0xffff, 0],
    ['RDH is read only', 0x2810, 0, 0, 0],
    ['RDLEN', 0x2808, 0, 0xffff_ffff, 0],
    ['TDH is read only', 0x3810, 0, 0, 0],
    ['GPRC is cleared by reading, and cannot be written', 0x4074, 0, 0, 0],
    ['RLPML', 0x5004, 9018, 0xffff_ffff, 0],
    ['RAH has two bytes of the address and a valid bit', 0x5404, 0x8000_0100, 0x8000_ffff, 0],
    ['TXDMA count is read only', 0xb008, 0, 0, 0],
  ])('%s', async (_name, offset, initial, ones, zeros) => {
    const a = await machine();
    const found = [await a.loadAt(0, offset)];
    for (const value of [0xffff_ffff, 0]) {
      await a.storeAt(0, offset, value);
      found.push(await a.loadAt(0, offset));
    }
    expect(found).toEqual([initial, ones, zeros]);
  });

  it('8254x manual 13.4.17: clears ICR by ones, and by a read', async () => {
    const a = await machine();
    await a.write('ics', 0x85);
    await a.write('icr', 0x04);
    expect([await a.read('icr'), await a.read('icr')]).toEqual([0x81, 0]);
  });

  it('counts writes without a writable field, and accesses where no register is', async () => {
    const a = await machine();
    const before = a.nic.counters.registerAccessErrors;
    await a.write('status', 1);
    await a.write('tpr', 1);
    await a.storeAt(0, 0x0004, 1);
    await a.loadAt(0, 0x0004);
    expect(a.nic.counters.registerAccessErrors - before).toBe(4);
  });
});
