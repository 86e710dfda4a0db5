import { describe, expect, it } from 'vitest';
import { OperationTimes, operationTimesMemory } from './operation-times.ts';

/** Both ends of one shared memory. */
function ends(): { host: OperationTimes; device: OperationTimes } {
  const memory = operationTimesMemory();
  return { host: new OperationTimes(memory), device: new OperationTimes(memory) };
}

const WRITE = 8;
const ENTRIES = 1 << 24;

describe('OperationTimes', () => {
  it('separates the times of QPs whose 24-bit numbers differ in one bit', () => {
    const { host, device } = ends();
    const numbers = [0x40, ...Array.from({ length: 24 }, (_, bit) => 0x40 ^ (1 << bit))];
    for (const qpn of numbers) host.open(qpn, 64);
    for (const qpn of numbers) host.notePosted(host.entryOf(qpn, 5), WRITE, 1000 + qpn);
    expect(numbers.map((qpn) => device.postedPs(qpn, 5))).toEqual(numbers.map((qpn) => 1000 + qpn));
  });

  it('separates the times of all requests that a send queue can hold at once', () => {
    const { host, device } = ends();
    host.open(0x40, 64);
    host.open(0x41, 64);
    // The counter runs freely in 16 bits: the last 32 before it wraps and the first 32 after it.
    const counters = Array.from({ length: 64 }, (_, index) => (0xffe0 + index) & 0xffff);
    for (const [index, counter] of counters.entries())
      host.notePosted(host.entryOf(0x40, counter), WRITE, index);
    expect(counters.map((counter) => device.postedPs(0x40, counter))).toEqual([...counters.keys()]);
    expect(device.postedPs(0x41, 0xffe0)).toBeNaN();
  });

  it('reports to the host when the device issued the CQE', () => {
    const { host, device } = ends();
    host.open(0x40, 64);
    expect(host.issuedPsAt(host.entryOf(0x40, 3))).toBeNaN();
    device.cqeIssued(0x40, 3, 777);
    expect(host.issuedPsAt(host.entryOf(0x40, 3))).toBe(777);
  });

  it('keeps nothing of a destroyed QP, nor of an earlier one with the same number or the same entries', () => {
    const { host, device } = ends();
    host.open(0x40, 64);
    host.notePosted(host.entryOf(0x40, 3), WRITE, 500);
    host.close(0x40);
    expect([host.entryOf(0x40, 3), device.postedPs(0x40, 3)]).toEqual([-1, Number.NaN]);
    host.open(0x41, 64);
    expect(device.postedPs(0x41, 3)).toBeNaN();
    host.notePosted(host.entryOf(0x41, 3), WRITE, 600);
    // A killed process has closed nothing.
    host.open(0x41, 128);
    expect(device.postedPs(0x41, 3)).toBeNaN();
  });

  it('gives a queue no entries if all are allocated, and gives it entries again after some were freed', () => {
    const { host, device } = ends();
    host.open(0x40, ENTRIES / 2);
    host.open(0x41, ENTRIES / 2);
    host.open(0x42, 64);
    expect(host.entryOf(0x42, 0)).toBe(-1);
    expect(device.postedPs(0x42, 0)).toBeNaN();
    host.close(0x41);
    host.open(0x43, ENTRIES / 2);
    expect(host.entryOf(0x43, 1)).toBe(ENTRIES / 2 + 1);
  });

  it('touches little memory for many queues with few posts each', () => {
    const memory = operationTimesMemory();
    const host = new OperationTimes(memory);
    const queues = 1000;
    for (let qpn = 0; qpn < queues; qpn++) host.open(qpn, 32);
    for (let qpn = 0; qpn < queues; qpn++) host.notePosted(host.entryOf(qpn, 0), WRITE, 1 + qpn);
    const pages = Math.ceil(memory.entries.byteLength / 4096);
    const isTouched = (page: number): boolean =>
      new Uint8Array(memory.entries, page * 4096, 4096).some((byte) => byte !== 0);
    // 32 queues share a page: without interleaving, each would have a quarter of a page to itself.
    expect(Array.from({ length: pages }, (_, page) => page).filter(isTouched)).toHaveLength(
      Math.ceil(queues / 32),
    );
  });

  it('grows as queues are created, and the device sees the memory that the host added', () => {
    const memory = operationTimesMemory();
    const [host, device] = [new OperationTimes(memory), new OperationTimes(memory)];
    const sizes = (): number[] => [memory.directory.byteLength, memory.entries.byteLength];
    expect(sizes()).toEqual([4096, 32_768]);
    host.open(0x40, 64);
    expect(device.postedPs(0x40, 3)).toBeNaN();
    host.open(0x12_345, 4096);
    expect(sizes()).toEqual([4 * 2 ** 17, 32 * 8192]);
    host.notePosted(host.entryOf(0x12_345, 4095), WRITE, 42);
    expect([device.postedPs(0x12_345, 4095), device.postedPs(0x20_000, 0)]).toEqual([42, Number.NaN]);
    device.cqeIssued(0x12_345, 4095, 43);
    expect(host.issuedPsAt(host.entryOf(0x12_345, 4095))).toBe(43);
  });

  it('keeps intervals to the picosecond through new epochs, at both ends of the link', () => {
    const { host, device } = ends();
    host.open(0x40, 64);
    const entry = host.entryOf(0x40, 3);
    host.notePosted(entry, 8, 1_234_567);
    // A month, in steps of a day.
    for (let day = 0; day < 30; day++) for (const side of [host, device]) side.rebase(86_400e12);
    const monthPs = 30n * 86_400n * 10n ** 12n;
    expect(host.postedPsAt(entry)).toBe(Number(1_234_567n - monthPs));
    device.cqeIssued(0x40, 3, 500_001);
    for (const side of [host, device]) side.rebase(7e6);
    expect(host.issuedPsAt(entry)).toBe(500_001 - 7e6);
  });
});
