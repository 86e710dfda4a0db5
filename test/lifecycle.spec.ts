/**
 * The life cycle of a driver and of its device: removal releases everything, a device can be probed again, a reset in the
 * middle of traffic harms no other device, and no process reaches another one's queues.
 */
import { describe, expect, it, vi } from 'vitest';
import { expectBalanced, noResources } from './expectations.ts';
import { eachPartition, programOf, programsOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Nothing is held: no object, no page of ICM, no frame. */
const nothing = { ...noResources, icmChunks: 0, frames: 0 };

describe.each(eachPartition)('in partition %s', (partition) => {
  it('removal releases everything; the device can be probed, used and removed again', async () => {
    await using machine = await smallMachine({ partition });
    const args = { qps: 2, rounds: 2 };
    for (const program of [
      ...programsOf('mixture', 'polling', args),
      ...programsOf('mixture', 'sleeping', args),
    ])
      await machine.load(program);
    await machine.run();
    await machine.removeDrivers();
    for (const program of programsOf('lifecycle', 'counts')) await machine.load(program);
    await machine.run();
    expect((await machine.results()).slice(-2)).toEqual([nothing, nothing]);

    for (const program of programsOf('lifecycle', 'probe')) await machine.load(program);
    await machine.run();
    const probed = (await machine.results<unknown[]>()).slice(-2) as {
      name: string;
      taken: typeof nothing;
    }[];
    for (const { name, taken } of probed) {
      expect(name).toBe('mlx4_0');
      expect(taken.frames).toBeGreaterThan(0);
    }
    await machine.load(programOf('faulty', 'sender', 0, { args: {} }));
    await machine.load(programOf('faulty', 'receiver', 1));
    await machine.run();
    const [sender, receiver] = (await machine.results()).slice(-2);
    expect(sender).toMatchObject({ statuses: ['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS'], isRead: true });
    expect(receiver).toMatchObject({ written: [true, true], isReceived: true });

    await machine.removeDrivers();
    for (const program of programsOf('lifecycle', 'counts')) await machine.load(program);
    await machine.run();
    expect((await machine.results()).slice(-2)).toEqual([nothing, nothing]);
    expectBalanced(await machine.report());
  });
});

it('a process killed while it opens the device leaves nothing open', async () => {
  const killNs = Array.from({ length: 60 }, (_, index) => 100 * index);
  await using machine = await smallMachine();
  await machine.load(programOf('lifecycle', 'killer', 0, { args: { killNs } }));
  await machine.run();
  const [left] = await machine.results<[Record<string, number>[]]>();
  expect(left).toHaveLength(killNs.length);
  expect(new Set(left.map((taken) => JSON.stringify(taken))).size).toBe(1);
  await machine.removeDrivers();
  expectBalanced(await machine.report());
});

it('no process rings for the queues of another: rejected, counted, and without effect', async () => {
  const { results, report } = await runPrograms([
    programOf('lifecycle', 'owner', 0),
    programOf('lifecycle', 'ownerPeer', 1),
    programOf('lifecycle', 'intruder', 0),
  ]);
  const [owner, peer, rings] = results;
  expect(owner).toEqual({
    undone: [],
    // The own doorbell has completed all posted work.
    ids: ['1 SUCCESS', '2 SUCCESS', '3 SUCCESS'],
    isWoken: false,
    areRight: true,
  });
  expect(peer).toBe('RTS');
  const { violations } = report.nodes[0]!.hca;
  // Every second ring of the intruder, and two of the owner on its second page; one arm.
  expect(rings).toBeGreaterThan(10);
  expect(violations['doorbellForeignUar']).toBe(Math.ceil(Number(rings) / 2) + 2);
  expect(violations['doorbellUnknownQp']).toBe(Math.floor(Number(rings) / 2));
  expect(violations['armForeignUar']).toBe(1);
  expectBalanced(report);
});

describe.each(['none', 'software', 'functionLevel'])(
  'removal in the middle of traffic, after a reset: %s',
  (how) => {
    it('the peer exhausts its retries, everything is released, and a second life cycle begins', async () => {
      const { results, report } = await runPrograms(
        [programOf('lifecycle', 'resetter', 0, { args: how }), programOf('lifecycle', 'survivor', 1)],
        // A device that was reset answers no command: each command waits this long.
        { set: { 'driver.commandLimitUs': 5000, 'driver.commandGoLimitUs': 5000 } },
      );
      const [resetter, survivor] = results as Record<string, unknown>[];
      expect(resetter).toMatchObject({ before: true, taken: nothing, afterRemoval: 'EBADF', after: true });
      expect(survivor).toMatchObject({
        statuses: ['SUCCESS', 'RETRY_EXC_ERR'],
        state: 'ERR',
        again: 'RTS',
      });
      expectBalanced(report);
    });
  },
);
