/**
 * Connections by rdma_cm between programs of two hosts: real MADs on QP1, in every partition, with messages lost on the cable,
 * many at once, without a listener, with a killed program, and with the driver removed.
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import { expectBalanced, noResources } from './expectations.ts';
import { bytesOf, programOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

/** `npm run test:connections` requests 10,000. */
const connectionCount = Number(process.env['HCA_CONNECTIONS'] ?? 100);

/** The example: a client on host 0, a server on host 1. */
const echo = (options: MachineOptions = {}) =>
  runPrograms(
    ['client', 'server'].map((exportName, node) => {
      const run = { url: new URL('../examples/rdma-cm-echo.ts', import.meta.url), exportName };
      return { node, run, name: exportName };
    }),
    options,
  );
const echoed = ['echo over a connection', 'hello'];
const lost = (node: number, nth: number) => ({ packet: 'lost', node, nth }) as const;

describe('rdma_cm', () => {
  it('gives the same report in every partition', async () => {
    const single = await echo({ partition: 'single' });
    const cut = await echo({ partition: 'per-device' });
    expect(single.results).toEqual(echoed);
    expect(bytesOf(cut.report)).toBe(bytesOf(single.report));
  });

  it.each([
    ['REQ', lost(0, 1)],
    ['REP', lost(1, 1)],
    ['RTU', lost(0, 2)],
  ])('gets over a lost %s', async (_name, fault) => {
    const { results, report } = await echo({ faults: [fault] });
    expect(results).toEqual(echoed);
    expectBalanced(report);
  });

  it('has many connections up at once, a message over each, and nothing left of them', async () => {
    const args = connectionCount;
    const { results, report } = await runPrograms(
      [
        programOf('many-connections', 'connectsMany', 0, { args }),
        programOf('many-connections', 'servesMany', 1, { args }),
      ],
      { set: { 'host.memory.sizeMib': 64 + Math.ceil(args / 4) } },
    );
    expect(results).toEqual([args, args]);
    expectBalanced(report);
  }, 3_600_000);

  it('reports the result of a request: no listener, no such host, rejected by the program', async () => {
    const { results } = await runPrograms([
      programOf('connecting', 'refused', 0),
      programOf('connecting', 'refusing', 1),
    ]);
    expect(results[0]).toEqual({
      unknownHost: ['RDMA_CM_EVENT_ADDR_ERROR', -110],
      noListener: ['RDMA_CM_EVENT_REJECTED', 8],
      refused: ['RDMA_CM_EVENT_REJECTED', 28, 'no'],
    });
  });

  it('a program that fetches its events late gets a CONNECT_ERROR from a peer that has ended, its QP in ERR, and no more', async () => {
    const { results } = await runPrograms([
      programOf('connecting', 'isLate', 0),
      programOf('connecting', 'goes', 1),
    ]);
    expect(results[0]).toEqual(['RDMA_CM_EVENT_CONNECT_ERROR', -22, 'WR_FLUSH_ERR', true]);
  });

  it('a program cannot accept a request whose program has ended, is notified, and has its QP in ERR', async () => {
    const { results } = await runPrograms([
      programOf('connecting', 'asksAndGoes', 0),
      programOf('connecting', 'acceptsLate', 1),
    ]);
    expect(results[1]).toEqual(['EINVAL', 'RDMA_CM_EVENT_REJECTED', true]);
  });

  it('an address may be resolved for as long as 2^31 - 1 ms', async () => {
    const { results, machine } = await runPrograms([programOf('connecting', 'isPatient', 0)]);
    expect(results).toEqual([['RDMA_CM_EVENT_ADDR_ERROR', -110]]);
    const days = Number(machine.instantPs) / 86_400e12;
    expect(days).toBeCloseTo(24.855, 3);
  });

  it('gives QPs the attributes agreed on by both sides', async () => {
    const { results } = await runPrograms([
      programOf('connecting', 'attributesOfActive', 0),
      programOf('connecting', 'attributesOfPassive', 1),
    ]);
    const [active, passive] = results as Record<string, number>[];
    // rdma_connect requested retries 5 and 4, resources 4, depth 2; rdma_accept resources 2, depth 4. Time-out: 18 + 1.
    expect(active).toMatchObject({
      retryCnt: 5,
      rnrRetry: 4,
      maxRdAtomic: 2,
      maxDestRdAtomic: 4,
      timeout: 19,
    });
    expect(passive).toMatchObject({
      retryCnt: 5,
      rnrRetry: 4,
      maxRdAtomic: 4,
      maxDestRdAtomic: 2,
      timeout: 19,
    });
    expect(active!['rqPsn']).toBe(passive!['sqPsn']);
    expect(passive!['rqPsn']).toBe(active!['sqPsn']);
  });

  it('a program that ends without disconnecting has its peer disconnected; removal releases everything', async () => {
    await using machine = await smallMachine();
    await machine.load(programOf('connecting', 'leaves', 0));
    await machine.load(programOf('connecting', 'isLeft', 1));
    await machine.run();
    expect((await machine.results())[1]).toBe('RDMA_CM_EVENT_DISCONNECTED');
    await machine.removeDrivers();
    for (const node of [0, 1]) await machine.load(programOf('lifecycle', 'counts', node));
    await machine.run();
    const nothing = { ...noResources, icmChunks: 0, frames: 0 };
    expect((await machine.results()).slice(-2)).toEqual([nothing, nothing]);
  });
});
