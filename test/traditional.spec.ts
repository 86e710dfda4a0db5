/**
 * The traditional path under all failures: programs see POSIX behaviour, no byte is lost or changed, other programs continue,
 * and the ledgers balance. In one thread, and in the finest partition.
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import type { NicReport } from '../machine/report/schema.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, eachPartition, type Outcome, programOf, runPrograms } from './machines.ts';
import type { StreamArgs } from './programs/traditional.ts';

vi.setConfig({ testTimeout: 120_000 });

const nic = { 'machine.adapter': 'nic' };

/** Both sides of a stream, on the first free cores. */
function streamOf(args: StreamArgs, core?: number): ProgramOptions[] {
  return [0, 1].map((node) =>
    programOf('traditional', 'stream', node, {
      name: `stream${args.port}`,
      args: { ...args },
      ...(core === undefined ? {} : { core }),
    }),
  );
}

const small: StreamArgs = { bytes: 60_000, port: 80, callBytes: 8_192, from: 0 };
/** Another connection, in the opposite direction. */
const other: StreamArgs = { bytes: 20_000, port: 81, callBytes: 3_000, from: 1 };

const run = (programs: readonly ProgramOptions[], options: MachineOptions): Promise<Outcome> =>
  runPrograms(programs, { ...options, set: { ...nic, ...options.set } });

const kernelOf = ({ report }: Outcome, node: number): NicReport['kernel'] => report.nodes[node]!.nic!.kernel;
const deviceOf = ({ report }: Outcome, node: number): NicReport['device'] => report.nodes[node]!.nic!.device;

/** Results of both sides of a stream, the first two from `at` on, have the same bytes. */
function expectWhole({ results }: Outcome, at: number): void {
  const [first, second] = results.slice(at, at + 2) as { readonly hash: string }[];
  expect(first!.hash).toMatch(/^[0-9a-f]{64}$/);
  expect(second!.hash).toBe(first!.hash);
}

describe('kernel sockets over a conventional NIC', () => {
  it.each(eachPartition)(
    'carry streams in both directions under loss and corruption, every byte in its place: %s',
    async (partition) => {
      const outcome = await run([...streamOf(small), ...streamOf(other)], {
        partition,
        set: {
          'ethernet.lossPerMillion': 30_000,
          'ethernet.corruptionPerMillion': 10_000,
          'net.stack.retransmitMinUs': 1_000,
          'net.stack.retransmitInitialUs': 5_000,
        },
      });
      expectWhole(outcome, 0);
      expectWhole(outcome, 2);
      expect(kernelOf(outcome, 0)['retransmissions']).toBeGreaterThan(0);
      expectBalanced(outcome.report);
    },
  );

  it('survive an overrun of ring and packet buffer: missed frames are retransmitted', async () => {
    const outcome = await run(streamOf({ ...small, pausePs: 100_000_000 }), {
      set: {
        'net.driver.receiveRing': 8,
        'net.driver.interruptIntervalNs': 200_000,
        'nic.receiveBufferKib': 16,
        'net.stack.initialWindowSegments': 64,
        'net.stack.retransmitMinUs': 1_000,
      },
    });
    expectWhole(outcome, 0);
    expect(deviceOf(outcome, 1)['missed']).toBeGreaterThan(0);
    expectBalanced(outcome.report);
  });

  it('recover from lost interrupts by the watchdog', async () => {
    const outcome = await run(streamOf(small), {
      faults: [
        { interrupt: 'lost', vector: 0, nth: '2-3', node: 0 },
        { interrupt: 'lost', vector: 0, nth: '2-3', node: 1 },
      ],
    });
    expectWhole(outcome, 0);
    expect(
      (kernelOf(outcome, 0)['recoveredInterrupts'] ?? 0) + (kernelOf(outcome, 1)['recoveredInterrupts'] ?? 0),
    ).toBeGreaterThan(0);
    expectBalanced(outcome.report);
  });

  it('refuse, reset and report as POSIX specifies, while another connection continues', async () => {
    const outcome = await run(
      [
        programOf('traditional', 'refused', 0),
        programOf('traditional', 'resetClient', 0),
        programOf('traditional', 'resetServer', 1),
        ...streamOf(other),
      ],
      {},
    );
    expect(outcome.results.slice(0, 2)).toEqual([
      { nobody: 'ECONNREFUSED', nowhere: 'EHOSTUNREACH' },
      { read: 'ECONNRESET', written: 'EPIPE' },
    ]);
    expectWhole(outcome, 3);
    expectBalanced(outcome.report);
  });

  it('have copied sent data: buffers freed meanwhile change nothing, unmapped ones are EFAULT', async () => {
    const outcome = await run(
      [programOf('traditional', 'freesAfterSend', 0), programOf('traditional', 'readsNowhere', 1)],
      {},
    );
    expectWhole(outcome, 0);
    expect(outcome.results).toMatchObject([{ unmapped: 'EFAULT' }, { unmapped: 'EFAULT' }]);
    expectBalanced(outcome.report);
  });

  it('continue slowly when the kernel has hardly any packet buffers', async () => {
    const outcome = await run(streamOf(small), {
      set: {
        'net.driver.receiveRing': 8,
        'net.driver.buffersMax': 16,
        'net.stack.retransmitMinUs': 1_000,
        'net.stack.memoryTries': 1000,
      },
    });
    expectWhole(outcome, 0);
    expectBalanced(outcome.report);
  });

  it('leave an application its share of a core in a storm of interrupts', async () => {
    const work = { rounds: 3_000 };
    const outcome = await run(
      [
        programOf('traditional', 'works', 1, { core: 0, args: work }),
        ...streamOf({ bytes: 120_000, port: 80, callBytes: 64, from: 0 }, 1),
      ],
      { set: { 'net.driver.interruptIntervalNs': 0, 'net.stack.isDelayed': false } },
    );
    const { tookPs } = outcome.results[0] as { readonly tookPs: number };
    const alonePs = work.rounds * 1_000_000;
    const { cycles } = outcome.report.nodes[1]!.cpu.cores[0]!;
    // The program on the same core also progresses, and the stream gets at most half of the core
    // (net.driver.softirqSharePercent).
    expect(cycles.interrupt + cycles.softirq + cycles.protocol).toBeGreaterThan(100_000);
    expect(tookPs).toBeLessThan(2.5 * alonePs);
    expectWhole(outcome, 1);
    expectBalanced(outcome.report);
  });
});

describe('a machine with NICs', () => {
  it('behaves the same in every partition, and for any order of simultaneous events', async () => {
    const of = async (options: MachineOptions): Promise<string> => {
      const { report } = await run([...streamOf({ ...small, bytes: 30_000 }), ...streamOf(other)], {
        ...options,
        set: { 'ethernet.lossPerMillion': 20_000, 'net.stack.retransmitMinUs': 1_000 },
      });
      return bytesOf(report);
    };
    const single = await of({});
    expect(await of({ shuffleSeed: 5 })).toBe(single);
    expect(await of({ partition: 'per-node' })).toBe(single);
    expect(await of({ partition: 'per-device' })).toBe(single);
  });

  it('rejects faults that only an HCA can have', async () => {
    await expect(run([], { faults: [{ command: 'QUERY_FW', status: 'INTERNAL_ERR' }] })).rejects.toThrow(
      /machine.adapter=nic/,
    );
  });
});
