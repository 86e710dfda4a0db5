import { describe, expect, it } from 'vitest';
import type { CoreThread } from './core-thread.ts';
import { CoreBusyError, ProgramFailedError } from './host-error.ts';
import { at, newTestHost } from './testing.ts';

/** One cycle of the 2.5 GHz core in picoseconds. */
const cyclePs = 400;
const page = 0x10_0000;

/** Stores a 32-bit word to memory with the next commit. */
function pushWord(cpu: CoreThread, address: number, value: number): void {
  cpu.storeView.setUint32(cpu.pushMemoryStore(address, 4), value, true);
}

describe('time of a core', () => {
  it('runs ahead while cycles are charged and is caught up with by settle', async () => {
    const { host, process, runToEnd } = newTestHost();
    const seen: number[] = [];
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 100);
      seen.push(cpu.localPs, process.nowPs);
      await cpu.settle();
      seen.push(cpu.localPs, process.nowPs);
    });
    await runToEnd();
    // 100 cycles of 400 ps.
    expect(seen).toEqual([40_000, 0, 40_000, 40_000]);
  });

  it('does not wait if simulated time has already caught up', async () => {
    const { host, process, runToEnd } = newTestHost();
    host.runProgram('p', 0, async ({ cpu }) => {
      await cpu.settle();
      expect(cpu.settle()).toBe(cpu.settle());
      expect(process.nowPs).toBe(0);
    });
    await runToEnd();
  });

  it('keeps whole picoseconds on a clock whose period is not whole', async () => {
    const { host, process, runToEnd } = newTestHost({ core: { clockMHz: 2300 } });
    host.runProgram('p', 0, async ({ cpu }) => {
      for (let step = 0; step < 1000; step++) {
        cpu.charge('application', 23);
        await cpu.settle();
      }
      // 23,000 cycles of 2.3 GHz are 10 us exactly.
      expect(process.nowPs).toBe(10_000_000);
    });
    await runToEnd();
  });

  it('lets two programs on two cores run side by side', async () => {
    const { host, process, runToEnd } = newTestHost();
    const trace: string[] = [];
    const body =
      (name: string, cycles: number) =>
      async ({ cpu }: { cpu: CoreThread }) => {
        for (let step = 0; step < 3; step++) {
          cpu.charge('application', cycles);
          await cpu.settle();
          trace.push(`${name}@${process.nowPs / cyclePs}`);
        }
      };
    host.runProgram('a', 0, body('a', 10));
    host.runProgram('b', 1, body('b', 15));
    await runToEnd();
    expect([...trace].sort()).toEqual(['a@10', 'a@20', 'a@30', 'b@15', 'b@30', 'b@45']);
    expect(trace.slice(0, 3)).toEqual(['a@10', 'b@15', 'a@20']);
  });

  it('sleeps off the core and pays for the switch back', async () => {
    const { host, process, runToEnd } = newTestHost({ cost: { contextSwitch: 1000 } });
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 50);
      await cpu.sleep(1_000_000);
      // 50 cycles = 20,000 ps; 1 us; then 1000 cycles = 400,000 ps for the switch.
      expect(process.nowPs).toBe(20_000 + 1_000_000 + 400_000);
    });
    await runToEnd();
    const { cycles, isBalanced } = host.cores[0]!.report();
    // 1 µs of 400 ps cycles; and the cycle that began in the picosecond of the drain.
    expect(cycles).toMatchObject({ application: 50, idle: 2500 + 1, contextSwitch: 1000 });
    expect(isBalanced).toBe(true);
  });
});

describe('stores of a core', () => {
  it('become visible in program order at the own time of their commit', async () => {
    const { host, process, ports, runToEnd } = newTestHost();
    const seen: number[][] = [];
    const word = (address: number) => host.memory.view.getUint32(address, true);
    for (const cycle of [99, 101, 149, 150]) {
      at(
        process,
        cycle * cyclePs,
        () => seen.push([cycle, word(page), ports[0]!.stores.length, word(page + 8)]),
        1,
      );
    }
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 60);
      pushWord(cpu, page, 1);
      cpu.commit('post', 40);
      pushWord(cpu, page, 2);
      cpu.storeView.setUint32(cpu.pushDeviceStore(0x8000_0001, 4, 'uncached'), 0xabcd, true);
      pushWord(cpu, page + 8, 3);
      cpu.commit('post', 50);
      await cpu.settle();
      seen.push([word(page), word(page + 8)]);
    });
    await runToEnd();
    expect(seen).toEqual([
      [99, 0, 0, 0],
      [101, 1, 0, 0],
      [149, 1, 0, 0],
      [150, 1, 0, 0],
      [2, 3],
    ]);
    expect(ports[0]!.stores).toEqual([
      { atPs: 150 * cyclePs, core: 0, address: 0x8000_0001, trafficClass: 1, bytes: [0xcd, 0xab, 0, 0] },
    ]);
    expect(host.cores[0]!.report().cycles).toMatchObject({ application: 60, post: 90 });
  });

  it('have left before an uncached load leaves, and the load stalls the core', async () => {
    const { host, process, ports, runToEnd } = newTestHost({ cost: { mmioStore: 10, mmioLoad: 5 } });
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.mmioWrite32(0x8000_0010, 7);
      expect(await cpu.mmioRead32(0x8000_0014)).toBe(0x8000_0014);
      // 10 + 5 cycles to issue, then 1 us.
      expect(process.nowPs).toBe(15 * cyclePs + 1_000_000);
    });
    await runToEnd();
    expect(ports[0]!.stores[0]!.atPs).toBe(10 * cyclePs);
    expect(ports[0]!.loads).toEqual([{ atPs: 15 * cyclePs, address: 0x8000_0014 }]);
    expect(host.cores[0]!.report()).toMatchObject({ cycles: { driver: 15 + 2500 }, isBalanced: true });
  });

  it('read all ones when the device does not answer', async () => {
    const { host, ports, runToEnd } = newTestHost();
    ports[0]!.answer = () => ({ status: 1, value: 0 });
    host.runProgram('p', 0, async ({ cpu }) => expect(await cpu.mmioRead32(0x8000_0000)).toBe(0xffff_ffff));
    await runToEnd();
  });

  it('wait in the store buffer while the bus is full, without stalling the core', async () => {
    const { host, process, ports, runToEnd } = newTestHost();
    ports[0]!.room = 0;
    at(process, 50_000, () => ports[0]!.open());
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
      pushWord(cpu, page, 1);
      cpu.commit('post', 10);
      cpu.charge('application', 90);
      await cpu.settle();
      expect(process.nowPs).toBe(100 * cyclePs);
      // The memory store waits after the device store.
      expect(host.memory.view.getUint32(page, true)).toBe(0);
      cpu.charge('application', 50);
      await cpu.settle();
      expect(host.memory.view.getUint32(page, true)).toBe(1);
    });
    await runToEnd();
    expect(ports[0]!.stores[0]!.atPs).toBe(50_000);
    expect(host.cores[0]!.report().cycles).toMatchObject({ post: 10, application: 140 });
  });

  it('stall the core when the store buffer is full, and delay everything after it by that time', async () => {
    const { host, process, ports, runToEnd } = newTestHost({ core: { storeBufferEntries: 4 } });
    ports[0]!.room = 0;
    at(process, 1_000_000, () => ports[0]!.open());
    host.runProgram('p', 0, async ({ cpu }) => {
      for (let post = 0; post < 6; post++) {
        cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
        cpu.commit('post', 10);
      }
      await cpu.settle();
      // The fifth store finds the buffer of four full at cycle 50; at 1 us all leave; the sixth post takes 10 cycles more.
      expect(process.nowPs).toBe(1_000_000 + 10 * cyclePs);
    });
    await runToEnd();
    const times = ports[0]!.stores.map(({ atPs }) => atPs);
    expect(times).toEqual([...Array(5).fill(1_000_000), 1_004_000]);
    // 60 cycles of posting and 2500 - 50 of stall.
    expect(host.cores[0]!.report()).toMatchObject({ cycles: { post: 60 + 2450 }, isBalanced: true });
  });

  it('drain one by one as the bus accepts them', async () => {
    const { host, process, ports, runToEnd } = newTestHost({ core: { storeBufferEntries: 2 } });
    ports[0]!.room = 0;
    for (let step = 1; step <= 8; step++) at(process, step * 100_000, () => ports[0]!.open(1));
    host.runProgram('p', 0, async ({ cpu }) => {
      for (let post = 0; post < 8; post++) {
        cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
        cpu.commit('post', 10);
      }
      await cpu.sleep(0);
    });
    await runToEnd();
    expect(ports[0]!.stores.map(({ atPs }) => atPs)).toEqual(
      Array.from({ length: 8 }, (_, step) => (step + 1) * 100_000),
    );
    expect(host.cores[0]!.report().isBalanced).toBe(true);
  });
});

describe('misuse of a core', () => {
  it('refuses a second program on a core', () => {
    const { host } = newTestHost();
    host.runProgram('first', 0, async () => {});
    expect(() => host.runProgram('second', 0, async () => {})).toThrow(CoreBusyError);
    expect(() => host.runProgram('second', 1, async () => {})).not.toThrow();
  });

  it('reports a program that throws with its name and the simulated time', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('faulty', 0, async ({ cpu }) => {
      // 1000 ps end within the third cycle; then 3000 cycles for the switch.
      await cpu.sleep(1000);
      throw new TypeError('no such thing');
    });
    const failure = await runToEnd().catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(ProgramFailedError);
    expect(String(failure)).toMatch(/program faulty failed at 1201200 ps: TypeError: no such thing/);
  });

  it('detects a program that acts while it waits', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('hasty', 0, async ({ cpu }) => {
      const waiting = cpu.sleep(1000);
      cpu.charge('application', 1);
      await waiting;
    });
    await expect(runToEnd()).rejects.toThrow(/thread hasty is busy, expected running/);
  });

  it('detects a program that ends without committing its stores', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('careless', 0, async ({ cpu }) => pushWord(cpu, page, 1));
    await expect(runToEnd()).rejects.toThrow(/stores of careless is "pushed", expected committed/);
  });

  it('detects a program that stores without end', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('endless', 0, async ({ cpu }) => {
      for (;;) {
        cpu.pushMemoryStore(page, 4096);
        cpu.commit('post', 1);
      }
    });
    await expect(runToEnd()).rejects.toThrow(/storeSpaceKib/);
  });

  it('shows an account that was tampered with as unbalanced', async () => {
    const { host, runToEnd } = newTestHost();
    host.runProgram('p', 0, async ({ cpu }) => cpu.charge('application', 10));
    await runToEnd();
    expect(host.report().isBalanced).toBe(true);
    host.cores[0]!.account.add(0, 1);
    expect(host.report().isBalanced).toBe(false);
  });
});
