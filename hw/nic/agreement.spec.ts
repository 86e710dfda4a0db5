/** Results do not depend on the order of events within one instant, and all statistics balance. */
import { describe, expect, it } from 'vitest';
import { NicCause } from '../../abi/nic/index.ts';
import { Random } from '../../sim/random.ts';
import { ethernetImbalance } from '../../wire/ethernet-bench.ts';
import { NicBench, type NicMachine, US } from './testing/nic-bench.ts';
import { RingTraffic } from './testing/ring-traffic.ts';

const RING = 16;
const FRAMES = 60;
const { RXT0, RXDMT0, TXDW } = NicCause;

async function outcome(shuffle?: () => number) {
  const bench = new NicBench({
    ethernet: { lossPerMillion: 30_000, corruptionPerMillion: 30_000 },
    nic: { burstBytes: 64 },
    ...(shuffle === undefined ? {} : { shuffle }),
  });
  await bench.bringUp(RING);
  const machines = [bench.a, bench.b];
  for (const machine of machines) {
    await machine.write('eiac', RXT0 | RXDMT0 | TXDW);
    await machine.write('iam', RXT0 | RXDMT0 | TXDW);
    await machine.write('eitr', 8, 0);
    await machine.write('eict', 6, 0);
  }
  const traffic = machines.map(
    (machine, node) => new RingTraffic(machine, node, RING, FRAMES, new Random(7, `traffic${node}`)),
  );
  for (let turn = 0; turn < 80; turn++) {
    for (const one of traffic) one.turn();
    await bench.run(4 * US);
  }
  return { bench, traffic, machines };
}

const summaryOf = ({ traffic, machines }: Awaited<ReturnType<typeof outcome>>) =>
  machines.map((machine, node) => ({
    counters: { ...machine.nic.counters },
    sent: { ...machine.nic.port.transmitted },
    arrived: { ...machine.nic.port.received },
    interrupts: machine.interrupts,
    received: traffic[node]!.received,
    accounts: machine.nic.accounts.map(({ name, busyCycles, idleCycles, stalledCycles }) => ({
      name,
      busyCycles,
      idleCycles,
      stalledCycles: [...stalledCycles],
    })),
  }));

describe('two NICs under traffic in both directions, with loss', () => {
  it('behave the same for any order within one instant', async () => {
    const first = summaryOf(await outcome());
    expect(first[0]!.received.length).toBeGreaterThan(40);
    expect(first[0]!.interrupts.length).toBeGreaterThan(10);
    for (const seed of [1, 2, 3])
      expect(summaryOf(await outcome(new Random(seed, 'order').unit))).toEqual(first);
  });

  it('account for every frame, every interrupt and every cycle', async () => {
    const { bench, machines, traffic } = await outcome();
    const [a, b] = machines as [NicMachine, NicMachine];
    for (const [from, to, node] of [
      [a, b, 1],
      [b, a, 0],
    ] as const) {
      const { counters: c, port } = to.nic;
      expect(ethernetImbalance(from.nic.port.transmitted, port.received)).toEqual({ frames: 0, bytes: 0 });
      expect(from.nic.port.transmitted).toMatchObject({ frames: FRAMES });
      expect(c.arrivals).toBe(c.accepted + c.filtered + c.wrongLength + c.missed + c.disabledDrops);
      expect(c.accepted).toBe(c.delivered + to.nic.blocks.receiveBuffer.count);
      expect(traffic[node]!.got).toBe(c.delivered);
      expect(c.interruptsRaised).toBe(
        c.interruptMessages +
          c.interruptsModerated +
          c.interruptsForgotten +
          to.nic.blocks.interrupts.waitingCount,
      );
      expect(to.interrupts).toHaveLength(c.interruptMessages);
      const cycles = to.nic.domain.clock.cyclesElapsed(bench.nowPs);
      for (const account of to.nic.accounts) {
        account.close(cycles);
        const stalled = account.stalledCycles.reduce((sum, count) => sum + count, 0);
        const total = account.busyCycles + account.idleCycles + stalled;
        expect([account.name, total, account.overlapCount]).toEqual([account.name, cycles, 0]);
      }
    }
  });
});
