import { describe, expect, it } from 'vitest';
import { at, newTestHost, type TestHost } from './testing.ts';

const cyclePs = 400;
/** 100 ns to deliver, 50 cycles in, 25 cycles out. */
const timing = {
  interrupt: { deliveryNs: 100, entryCycles: 50, exitCycles: 25 },
  cost: { contextSwitch: 10 },
};
const deliveryPs = 100_000;
/** Phase after those of hardware and cores. */
const PHASE_LAST = 50;

function send({ host, process }: TestHost, vector: number, atPs: number): void {
  const { address, data } = host.interrupts.messageFor(vector);
  at(process, atPs, () => host.interrupts.message(address, data));
}

describe('interrupt messages', () => {
  it('Intel SDM: name core and vector', () => {
    const { host } = newTestHost();
    expect(host.interrupts.messageFor(0)).toEqual({ address: 0xfee0_0000, data: 32 });
    expect(host.interrupts.messageFor(3)).toEqual({ address: 0xfee0_1000, data: 35 });
    host.interrupts.setAffinity(3, 0);
    expect(host.interrupts.messageFor(3)).toEqual({ address: 0xfee0_0000, data: 35 });
    expect(() => host.interrupts.messageFor(99)).toThrow(/interrupt vector is 99/);
  });

  it('reach an idle core after delivery and entry', async () => {
    const test = newTestHost(timing);
    const instants: number[] = [];
    test.host.interrupts.attach(1, async (cpu) => {
      expect(cpu.coreIndex).toBe(1);
      instants.push(cpu.localPs);
    });
    send(test, 1, 1_000_000);
    await test.runTo(2_000_000);
    expect(instants).toEqual([1_000_000 + deliveryPs + 50 * cyclePs]);
    const { cycles, totalCycles, isBalanced } = test.host.cores[1]!.report();
    expect([cycles.interrupt, cycles.idle, totalCycles, isBalanced]).toEqual([75, 4925, 5000, true]);
  });

  it('steal their time from a busy program, and delay its later stores', async () => {
    const test = newTestHost(timing);
    const { host, process, ports } = test;
    host.interrupts.attach(0, async (cpu) => cpu.charge('driver', 200));
    send(test, 0, 0);
    host.runProgram('p', 0, async ({ cpu }) => {
      for (const cycles of [100, 1000]) {
        cpu.pushDeviceStore(0x8000_0000, 4, 'uncached');
        cpu.commit('post', cycles);
      }
      cpu.charge('application', 900);
      await cpu.settle();
      // 2000 cycles of its own and 50 + 200 + 25 of the interrupt.
      expect(process.nowPs).toBe(2275 * cyclePs);
    });
    await test.runToEnd();
    // The interrupt comes at cycle 250: after the first store, before the second.
    expect(ports[0]!.stores.map(({ atPs }) => atPs / cyclePs)).toEqual([100, 1100 + 275]);
    expect(host.cores[0]!.report()).toMatchObject({
      cycles: { post: 1100, application: 900, driver: 200, interrupt: 75 },
      isBalanced: true,
    });
  });

  it('wait while a program keeps its core, and no longer', async () => {
    const test = newTestHost(timing);
    const { host, process, ports } = test;
    const instants: number[] = [];
    host.interrupts.attach(0, async (cpu) => {
      instants.push(cpu.localPs);
    });
    // One message arrives while the core is kept, one exactly at the end of that.
    send(test, 0, 0);
    send(test, 0, 3000 * cyclePs - deliveryPs);
    host.runProgram('p', 0, async ({ cpu }) => {
      for (const cycles of [100, 1000]) {
        cpu.pushDeviceStore(0x8000_0000, 4, 'uncached');
        cpu.commit('post', cycles);
      }
      cpu.keepCore();
      cpu.charge('application', 900);
      await cpu.settle();
      expect(process.nowPs).toBe(2075 * cyclePs);
      cpu.charge('application', 925);
      cpu.keepCore();
      cpu.charge('application', 25);
      await cpu.settle();
    });
    await test.runToEnd();
    expect(ports[0]!.stores.map(({ atPs }) => atPs / cyclePs)).toEqual([100, 1100]);
    // The first at cycle 1100, the second at 3000, each 50 cycles to enter.
    expect(instants.map((ps) => ps / cyclePs)).toEqual([1150, 3050]);
    expect(host.cores[0]!.report()).toMatchObject({ cycles: { interrupt: 150 }, isBalanced: true });
  });

  it('wait longer if the kept core stalls for its stores', async () => {
    const test = newTestHost({ ...timing, core: { storeBufferEntries: 1 } });
    const { host, process, ports } = test;
    const instants: number[] = [];
    host.interrupts.attach(0, async (cpu) => {
      instants.push(cpu.localPs);
    });
    ports[0]!.room = 0;
    at(process, 1_000_000, () => ports[0]!.open());
    send(test, 0, 0);
    host.runProgram('p', 0, async ({ cpu }) => {
      for (let post = 0; post < 3; post++) {
        cpu.pushDeviceStore(0x8000_0000, 8, 'uncached');
        cpu.commit('post', 10);
      }
      cpu.charge('driver', 5);
      cpu.keepCore();
      cpu.charge('application', 100);
      await cpu.settle();
    });
    await test.runToEnd();
    // It stalls from cycle 20 to 2500; then 15 cycles remain until the own time at which it kept the core.
    expect(ports[0]!.stores.map(({ atPs }) => atPs / cyclePs)).toEqual([2500, 2500, 2510]);
    expect(instants).toEqual([(2515 + 50) * cyclePs]);
    expect(host.cores[0]!.report().isBalanced).toBe(true);
  });

  it('wait until a load has completed', async () => {
    const test = newTestHost({ ...timing, cost: { mmioLoad: 0 } });
    const { host, process } = test;
    const instants: number[] = [];
    host.interrupts.attach(0, async (cpu) => {
      instants.push(cpu.localPs);
    });
    send(test, 0, 100_000);
    host.runProgram('p', 0, async ({ cpu }) => {
      await cpu.mmioRead32(0x8000_0000);
      expect(process.nowPs).toBe(1_000_000 + 75 * cyclePs);
    });
    await test.runToEnd();
    expect(instants).toEqual([1_000_000 + 50 * cyclePs]);
  });

  it('do not wake a sleeping program', async () => {
    const test = newTestHost(timing);
    test.host.interrupts.attach(0, async () => {});
    send(test, 0, 200_000);
    test.host.runProgram('p', 0, async ({ cpu }) => {
      await cpu.sleep(1_000_000);
      expect(test.process.nowPs).toBe(1_000_000 + 10 * cyclePs);
    });
    await test.runToEnd();
    expect(test.host.cores[0]!.report().cycles).toMatchObject({ interrupt: 75, contextSwitch: 10 });
  });

  it('raise signals at the own time of their handler', async () => {
    const test = newTestHost(timing);
    const { host, process } = test;
    const signal = host.newSignal();
    host.interrupts.attach(0, async (cpu) => {
      cpu.charge('interrupt', 30);
      signal.raise();
      cpu.charge('interrupt', 20);
    });
    send(test, 0, 0);
    const same = host.runProgram('same core', 0, async ({ cpu }) => {
      expect(await signal.wait(cpu)).toBe(true);
    });
    const other = host.runProgram('other core', 1, async ({ cpu }) => {
      expect(await signal.wait(cpu, 1_000_000)).toBe(true);
      expect(await signal.wait(cpu, 40_000)).toBe(false);
    });
    await test.runToEnd();
    // Raised at 100 ns + 80 cycles; the other core switches at once, this one after the rest of 20 + 25 cycles.
    const raisedPs = deliveryPs + 80 * cyclePs;
    expect(same.endedPs).toBe(raisedPs + (45 + 10) * cyclePs);
    expect(other.endedPs).toBe(raisedPs + 10 * cyclePs + 40_000 + 10 * cyclePs);
    expect(process.nowPs).toBe(Number(other.endedPs) + 1);
  });

  it('raise no signal for a thread whose time has passed while their handler had its core', async () => {
    const test = newTestHost(timing);
    const { host } = test;
    const signal = host.newSignal();
    host.interrupts.attach(0, async (cpu) => {
      // The work lasts from 120 ns to 520 ns.
      cpu.charge('interrupt', 1000);
      await cpu.settle();
      signal.raise();
    });
    send(test, 0, 0);
    host.runProgram('p', 0, async ({ cpu }) => {
      expect(await signal.wait(cpu, 200_000)).toBe(false);
      const fromPs = cpu.localPs;
      await cpu.sleep(1_000_000);
      expect(cpu.localPs - fromPs).toBeGreaterThanOrEqual(1_000_000);
      // It ran on no core.
      expect(await signal.wait(cpu, 0)).toBe(true);
    });
    await test.runToEnd();
  });

  it('merge in a storm, so that at most one waits and the program still progresses', async () => {
    const test = newTestHost(timing);
    const { host } = test;
    let handled = 0;
    host.interrupts.attach(0, async (cpu) => {
      handled++;
      cpu.charge('interrupt', 1000);
    });
    for (let message = 0; message < 100; message++) send(test, 0, message * 1000);
    host.runProgram('p', 0, async ({ cpu }) => {
      cpu.charge('application', 3000);
      await cpu.settle();
    });
    await test.runToEnd();
    // 100 messages within 100 ns; a handler takes 430 ns: the first interrupt, and one for all that arrived while it ran.
    expect(handled).toBe(2);
    expect(host.report().interrupts).toEqual([
      { vector: 0, delivered: 100, handled: 2, spurious: 0, merged: 98, waiting: 0 },
    ]);
    expect(host.report().isBalanced).toBe(true);
  });

  it('without a handler are spurious, and cost entry and exit', async () => {
    const test = newTestHost(timing);
    test.host.interrupts.attach(0, async () => {});
    test.host.interrupts.detach(0);
    send(test, 0, 0);
    await test.runTo(1_000_000);
    expect(test.host.report().interrupts).toMatchObject([
      { vector: 0, delivered: 1, handled: 0, spurious: 1 },
    ]);
    expect(test.host.cores[0]!.report().cycles.interrupt).toBe(75);
  });

  it('that name no core or vector are counted as unrouted', async () => {
    const { host, runTo } = newTestHost();
    host.interrupts.message(0xfee0_0000, 31);
    host.interrupts.message(0xfee0_0000, 32 + 32);
    host.interrupts.message(0xfee0_2000, 32);
    await runTo(1_000_000);
    expect([host.interrupts.unroutedMessageCount, host.report().interrupts]).toEqual([3, []]);
  });

  it('show counts that were tampered with as unbalanced', async () => {
    const test = newTestHost(timing);
    let promised: Promise<void> | undefined;
    test.host.interrupts.attach(0, async (cpu) => {
      promised = test.host.interrupts.serve(5, cpu);
      await promised;
    });
    send(test, 0, 0);
    await test.runTo(1_000_000);
    // Vector 5 was served although it was never delivered.
    expect(test.host.interrupts.isBalanced).toBe(false);
  });

  it('may not sleep', async () => {
    const test = newTestHost(timing);
    test.host.interrupts.attach(0, (cpu) => cpu.sleep(1));
    send(test, 0, 0);
    await expect(test.runTo(1_000_000)).rejects.toThrow(/wait in interrupt context/);
  });
});

describe('a legacy pin', () => {
  it('interrupts for as long as its level is high', async () => {
    const test = newTestHost(timing);
    const { host, process } = test;
    let handled = 0;
    host.interrupts.attachPin(0, async (cpu) => {
      cpu.charge('interrupt', 10);
      if (++handled === 3) host.interrupts.intx(0, false);
    });
    at(process, 1000, () => host.interrupts.intx(0, true));
    await test.runTo(2_000_000);
    expect(host.report().interrupts).toMatchObject([
      { vector: 'INTA', delivered: 3, handled: 3, waiting: 0 },
    ]);
  });

  it.each([
    ['rises', true],
    ['falls', false],
  ])(
    'that %s in the instant of a message’s arrival counts with its old level, in either order',
    async (_, isUp) => {
      const counted = [];
      for (const phase of [0, PHASE_LAST]) {
        const test = newTestHost(timing);
        const { host, process } = test;
        host.interrupts.attachPin(0, async () => host.interrupts.intx(0, false));
        at(process, 1000, () => host.interrupts.intx(0, true));
        if (isUp) at(process, 2000, () => host.interrupts.intx(0, false));
        at(process, 1000 + deliveryPs, () => host.interrupts.intx(0, isUp), phase);
        await test.runTo(1_000_000);
        counted.push(host.interrupts.counts());
      }
      // A level that rises again interrupts again.
      const row = { vector: 'INTA', delivered: 1, handled: 1, spurious: 0, merged: 0, waiting: 0 };
      expect(counted).toEqual([[row], [row]]);
    },
  );
});
