/** Machines that run for days of simulated time: exactness is the same as at the start, and no state is lost. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { bytesOf, eachPartition, programOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const dayPs = 86_400n * 10n ** 12n;

describe.each(eachPartition)('after 30 days of sleep, in partition %s', (partition) => {
  it('a WRITE takes as long as before, to the picosecond, and all balances hold', async () => {
    const programs = [
      programOf('days', 'sleeper', 0, { args: { days: 30 } }),
      programOf('days', 'target', 1),
    ];
    const { report, results } = await runPrograms(programs, { partition });
    const { before, after, sleptPs, refusal } = results[0] as {
      readonly before: readonly number[];
      readonly after: readonly number[];
      readonly sleptPs: string;
      readonly refusal: string;
    };
    // The first WRITEs of a QP refill caches that the other QP has changed.
    expect(after.slice(1)).toEqual(before.slice(1));
    // 30 days, with a context switch before and after.
    expect(BigInt(sleptPs) - 30n * dayPs).toBeLessThan(10_000_000n);
    expect(BigInt(sleptPs)).toBeGreaterThanOrEqual(30n * dayPs);
    expect(refusal).toMatch(/^localPs is "\d{19}", expected at most 9007199254740991 ps/);
    expect(BigInt(report.exactPs!['elapsedPs']!)).toBeGreaterThan(30n * dayPs);
    expect(Number(report.exactPs!['elapsedPs'])).toBe(report.elapsedPs);
    expectBalanced(report);
  });
});

/** IBA 9.7.6.1.3: 4.096 us times 2 to the code; 31 is 8796 s. */
const timeoutPs = 4_096_000n * 2n ** 31n;

describe('the longest ACK time-out', () => {
  const patients = (retryCount: number) => [
    programOf('days', 'patient', 0, { args: { timeoutCode: 31, retryCount } }),
    programOf('days', 'patientsPeer', 1),
  ];
  let firstPacket = 0;
  beforeAll(async () => {
    await using machine = await smallMachine();
    for (const program of patients(7)) await machine.load(program);
    await machine.runUntil(() => machine.progressOf(0).done === 1, 1e6);
    firstPacket = (await machine.report()).wire[0]!.packets + 1;
  });

  /** Loses the first packets of the WRITE. */
  const losing = (count: number) => [
    { packet: 'corrupted', node: 0, nth: `${firstPacket}-${firstPacket + count - 1}` },
  ];
  const looksPs = 900n * 10n ** 12n;
  const tookOf = (result: unknown): bigint => BigInt((result as { tookPs: string }).tookPs);

  it('ends in retries exhausted after eight of them', async () => {
    const { results, report } = await runPrograms(patients(7), { faults: losing(100) });
    // IBV_WC_RETRY_EXC_ERR.
    expect(results[0]).toMatchObject({ status: 12, state: 'ERR' });
    expect(tookOf(results[0])).toBeGreaterThanOrEqual(8n * timeoutPs);
    expect(tookOf(results[0])).toBeLessThan(8n * timeoutPs + 2n * looksPs);
    expect(report.wire[0]!.corrupted).toBe(8);
    expectBalanced(report);
  });

  it('is counted to the picosecond if the WRITE succeeds at the fourth attempt', async () => {
    const { results, report } = await runPrograms(patients(7), { faults: losing(3) });
    expect(results[0]).toMatchObject({ status: 0, state: 'RTS' });
    const digits = report.exactPs!['operations.WRITE.milestonesPs.ackTimeout']!;
    // Three time-outs, each from the packet's leaving the pipeline to the edge after the timer.
    expect(BigInt(digits) - 3n * timeoutPs).toBeLessThan(1_000_000n);
    expect(BigInt(digits)).toBeGreaterThanOrEqual(3n * timeoutPs - 1_000_000n);
    expectBalanced(report);
  });

  it('is the same with short epochs in between', async () => {
    const [plain, cut] = await Promise.all(
      [{}, { epochPs: 1_000_000_007 }].map((options) =>
        runPrograms(patients(1), { ...options, faults: losing(100) }),
      ),
    );
    expect(bytesOf(cut!.report)).toBe(bytesOf(plain!.report));
    expect(cut!.results).toEqual(plain!.results);
  });
});

describe('a clock too fast for a month', () => {
  it('ends the run when its cycles can no longer be counted, and reports it', async () => {
    await using machine = await smallMachine({ set: { 'host.core.clockMHz': 10_000 } });
    await machine.run();
    // 2^53 cycles of 10 GHz: 10.4 days.
    await machine.runTo(10n * dayPs);
    await expect(machine.runTo(11n * dayPs)).rejects.toThrow(
      /simulated microseconds of host0 is \d+, expected at most 900719925474: 2\^53 cycles of its clock of 10000 MHz/,
    );
  });
});
