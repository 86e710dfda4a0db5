import { describe, expect, it } from 'vitest';
import { ProcessKilledError } from './host-error.ts';
import { pageBytes } from './mm/index.ts';
import { newFile } from './mm/testing.ts';
import { newTestHost } from './testing.ts';

/** 2.5 GHz: 400 ps a cycle. Costs are all different. */
const paging = {
  mapCycles: 0,
  minorFaultCycles: 1000,
  majorFaultCycles: 10_000,
  zeroPageCycles: 300,
  copyPageCycles: 700,
  unmapPageCycles: 10,
  forkCycles: 50_000,
  forkPageCycles: 20,
  scanPageCycles: 0,
  reclaimPageCycles: 0,
};
const tlb = { walkCycles: 7, flushPageCycles: 100, shootdownCycles: 2000, shootdownHandlerCycles: 900 };
const swap = { sizeMib: 128, readLatencyNs: 10_000, writeLatencyNs: 5000, megabytesPerSecond: 4096 };

describe('memory management charges the core that runs', () => {
  it('for each fault by its kind, and for each walk of the page table', async () => {
    const { host, runToEnd } = newTestHost({ paging, tlb });
    host.runProgram('p', 0, async ({ memory }) => {
      const address = memory.map(3 * pageBytes);
      memory.space.write(address, Uint8Array.of(1));
      memory.space.write(address, Uint8Array.of(2));
      memory.space.read(address + pageBytes, new Uint8Array(1));
    });
    await runToEnd();
    // A fault with zeroing, a walk for the write; a fault to the zero page, a walk. Exit: two entries and their flush.
    const exit = 2 * 10 + 2 * 100;
    expect(host.cores[0]!.report().cycles.memory).toBe(1300 + 7 + 1000 + 7 + exit);
    expect(host.report()).toMatchObject({
      memory: { minorFaults: 2, zeroPageFaults: 1, zeroedPages: 1, tlbMisses: 2 },
      isBalanced: true,
    });
  });

  it('and makes it stall for a device in a synchronous access', async () => {
    const fileDevice = { readLatencyNs: 10_000, megabytesPerSecond: 4096 };
    const { host, process, runToEnd } = newTestHost({ paging, tlb, fileDevice });
    const file = newFile('data', new Uint8Array(2 * pageBytes).fill(5));
    host.runProgram('p', 0, async ({ cpu, memory }) => {
      const address = memory.mapWith(2 * pageBytes, { file });
      const back = new Uint8Array(1);
      expect(memory.space.read(address, back)).toBe(true);
      expect([back[0], process.nowPs]).toEqual([5, 0]);
      // 1,000 cycles, then 1 us for the page and 10 us of latency; the rest of the fault; the walk.
      expect(cpu.localPs).toBe(1000 * 400 + 11_000_000 + (10_000 + 7) * 400);
      await cpu.settle();
    });
    await runToEnd();
    expect(host.cores[0]!.report().cycles.swapWait).toBe(11_000_000 / 400);
    expect(host.report().isBalanced).toBe(true);
  });

  it('which may yield it meanwhile: another program of the core obstructs neither', async () => {
    const fileDevice = { readLatencyNs: 10_000, megabytesPerSecond: 4096 };
    const { host, runToEnd } = newTestHost({ paging, tlb, fileDevice, cost: { contextSwitch: 0 } });
    const file = newFile('data', new Uint8Array(pageBytes).fill(5));
    host.runProgram('p', 0, async ({ cpu, memory }) => {
      const address = memory.mapWith(pageBytes, { file });
      const back = new Uint8Array(3);
      expect(await memory.load(cpu, address + 8, back)).toBe(true);
      expect([...back]).toEqual([5, 5, 5]);
      expect(await memory.store(cpu, address, back)).toBe(true);
      expect(await memory.touch(cpu, address + pageBytes, 1, false)).toBe(false);
    });
    await runToEnd();
    const { cycles } = host.cores[0]!.report();
    expect([cycles.swapWait, cycles.idle > 10_000]).toEqual([0, true]);
    expect(host.report().memory).toMatchObject({ majorFaults: 1, filePagesRead: 1, copiedPages: 1 });
  });
});

describe('a shootdown', () => {
  it('costs the initiator its wait and every other core that ran the process an interrupt', async () => {
    const { host, runToEnd } = newTestHost({ paging, tlb, core: { count: 3 } });
    const process = host.newProcess('shared');
    const address = process.memory.map(pageBytes);
    host.runProgram(
      'other',
      1,
      async ({ cpu, memory }) => {
        memory.space.write(address, Uint8Array.of(1));
        await cpu.sleep(100_000_000);
      },
      process,
    );
    host.runProgram(
      'p',
      0,
      async ({ cpu, memory }) => {
        await cpu.sleep(10_000_000);
        memory.space.write(address, Uint8Array.of(2));
        memory.unmap(address, pageBytes);
        await cpu.sleep(100_000_000);
      },
      process,
    );
    await runToEnd();
    expect(host.report().memory.shootdowns).toBe(1);
    expect(host.cores.map((core) => core.report().cycles.interrupt)).toEqual([0, 900, 0]);
    // Walk; one entry cleared, flushed here and awaited there.
    expect(host.cores[0]!.report().cycles.memory).toBe(7 + 10 + 100 + 2000);
    expect(host.report().isBalanced).toBe(true);
  });

  it('of more pages than the ceiling empties the process from the TLB, at the price of one flush', async () => {
    const { host, runToEnd } = newTestHost({ paging, tlb: { ...tlb, flushAllPages: 4 } });
    host.runProgram('p', 0, async ({ memory }) => {
      const kept = memory.map(pageBytes);
      const address = memory.map(8 * pageBytes);
      memory.space.write(kept, Uint8Array.of(1));
      memory.space.write(address, new Uint8Array(8 * pageBytes).fill(1));
      const before = host.report().memory.tlbMisses;
      memory.unmap(address, 8 * pageBytes);
      memory.space.read(kept, new Uint8Array(1));
      expect(host.report().memory.tlbMisses - before).toBe(1);
    });
    await runToEnd();
    expect(host.report().memory.shootdowns).toBe(0);
  });
});

describe('kswapd', () => {
  it('begins below the low watermark and works until the high one, next to the programs', async () => {
    const { host, runToEnd } = newTestHost({ paging: { ...paging, minFreeKib: 4096 }, swap, tlb });
    const { mm, frames } = host;
    host.runProgram('p', 0, async ({ cpu, memory }) => {
      const address = memory.map(100 * 2 ** 20);
      for (let page = 0; page < 100 * 256; page++) {
        memory.space.write(address + page * pageBytes, Uint8Array.of(page & 0xff, page >>> 8));
        await cpu.settle();
      }
      const back = new Uint8Array(2);
      for (let page = 0; page < 100 * 256; page += 97) {
        expect(await memory.load(cpu, address + page * pageBytes, back)).toBe(true);
        expect(back[0]! + back[1]! * 256).toBe(page);
      }
      await cpu.sleep(1e9);
      expect(frames.freeCount).toBeGreaterThanOrEqual(mm.lowFrames);
    });
    await runToEnd();
    expect(host.report().memory.kswapdWakeUps).toBeGreaterThan(0);
    expect(host.report().isBalanced).toBe(true);
    expect(frames.usedCount).toBe(0);
  });
});

describe('a process that is killed for memory', () => {
  it('ends at its next wait, releases everything, and the run continues', async () => {
    const { host, runToEnd } = newTestHost({ paging, swap: { sizeMib: 0 }, tlb });
    const order: string[] = [];
    const victim = host.runProgram('victim', 0, async ({ cpu, memory, process }) => {
      process.onExit(async (exitCpu) => {
        await exitCpu.sleep(1000);
        order.push(`exit ${process.killReason}`);
      });
      const address = memory.map(40 * 2 ** 20);
      for (let page = 0; page < 40 * 256; page++)
        memory.space.write(address + page * pageBytes, Uint8Array.of(1));
      await cpu.sleep(1e12);
      order.push('never');
    });
    host.runProgram('spinner', 1, async ({ cpu, memory }) => {
      await cpu.sleep(1e6);
      const address = memory.map(30 * 2 ** 20);
      for (let page = 0; page < 30 * 256; page++)
        memory.space.write(address + page * pageBytes, Uint8Array.of(1));
      order.push('written');
      await cpu.sleep(1e6);
    });
    await runToEnd();
    expect(order).toEqual(['written', 'exit out of memory']);
    expect(victim.endedPs).toBeLessThan(1e12);
    expect([host.report().memory.oomKills, host.frames.usedCount]).toEqual([1, 0]);
  });

  it('ends at once if it requested the memory itself', async () => {
    const { host, runToEnd } = newTestHost({ paging, swap: { sizeMib: 0 }, tlb });
    const program = host.runProgram('greedy', 0, async ({ memory }) => {
      const address = memory.map(63 * 2 ** 20);
      expect(() => {
        for (let page = 0; ; page++) memory.space.write(address + page * pageBytes, Uint8Array.of(1));
      }).toThrow(ProcessKilledError);
    });
    await runToEnd();
    expect(program.process.killReason).toBe('out of memory');
    expect(host.frames.usedCount).toBe(0);
  });

  it('is not killed in the middle of a kernel call', async () => {
    const { host, runToEnd } = newTestHost({ paging, tlb });
    const order: string[] = [];
    const program = host.runProgram('p', 0, async ({ cpu }) => {
      cpu.kernelDepth++;
      await cpu.sleep(1e6);
      order.push('the call is done');
      cpu.kernelDepth--;
      await cpu.sleep(1e12);
      order.push('never');
    });
    host.runProgram('killer', 1, async ({ cpu }) => {
      await cpu.sleep(1000);
      program.process.kill('asked to');
    });
    await runToEnd();
    expect([order, program.process.killReason]).toEqual([['the call is done'], 'asked to']);
    expect(program.endedPs).toBeLessThan(1e9);
  });
});

describe('fork, of a program', () => {
  it("runs the child on its core with a copy of the memory, at the parent's cost", async () => {
    const { host, runToEnd } = newTestHost({ paging, tlb });
    const seen: number[] = [];
    host.runProgram('parent', 0, async ({ cpu, memory, process }) => {
      const address = memory.map(2 * pageBytes);
      memory.space.write(address, Uint8Array.of(1));
      const before = host.cores[0]!.account.cycles.slice();
      const child = host.fork(cpu, process, 'child', 1, async (context) => {
        const back = new Uint8Array(1);
        await context.cpu.sleep(1e9);
        context.memory.space.read(address, back);
        seen.push(back[0]!);
      });
      expect(child).not.toBe('ENOMEM');
      const spent = host.cores[0]!.account.cycles.map((cycles, at) => cycles - before[at]!);
      // The fork, one entry, and the flush of the page that has become read-only.
      expect(Math.max(...spent)).toBe(50_000 + 20 + 100);
      await cpu.settle();
      memory.space.write(address, Uint8Array.of(2));
    });
    await runToEnd();
    expect(seen).toEqual([1]);
    expect(host.frames.usedCount).toBe(0);
  });
});
