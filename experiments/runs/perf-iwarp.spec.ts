/** Bandwidth tests over iWARP, whose messages complete when TCP has them: the peer has all when the measurement ends, and ledgers balance. */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import type { BandwidthRates } from '../workloads/perf-result.ts';
import { parsedWorkload, perfArgsOf } from '../workloads/workload.ts';
import runPerf from './perf-run.ts';

vi.setConfig({ testTimeout: 120_000 });

const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
const huge = { 'hca.iwarp.connectionBytes': 2 ** 28, 'hca.iwarp.retransmissionBytes': 2 ** 20 };

async function run(workload: string, set: ParameterValues = {}, faults: MachineOptions['faults'] = []) {
  const machine = { set: { ...iwarp, ...set }, faults };
  const row = await runPerf({ machine, args: perfArgsOf(parsedWorkload(workload)), isReported: true });
  return { row, result: row.result as BandwidthRates, report: row.report! };
}

describe('a bandwidth test over iWARP', () => {
  // A segment with 1440 bytes of a WRITE has 1460 in TCP; around them preamble 8, header 14, IPv4 20, TCP 20, FCS 4, gap 12.
  // 1,250 bytes take a microsecond at 10 Gb/s.
  it.each([{}, huge])(
    'RFC 5040, 5.5: measures until the cable has carried everything, with %o',
    async (set) => {
      const { result } = await run('write-bw,size=1440,iters=50', set);
      expect(result.durationPs).toBeGreaterThanOrEqual((50 * (1460 + 78) * 1e6) / 1250);
    },
  );

  it('does not depend on the bytes that TCP may hold, where the cable is the bottleneck', async () => {
    const rates = [await run('write-bw,size=4096,iters=50'), await run('write-bw,size=4096,iters=50', huge)];
    expect(rates[1]!.result.durationPs).toBe(rates[0]!.result.durationPs);
  });

  it.each<[string, ParameterValues]>([
    ['write-bw,size=4096,iters=2', huge],
    ['write-bw,size=1440,iters=300', huge],
    ['write-bw,size=64,iters=200,qps=8', huge],
    ['write-bw,size=3000,iters=100,qps=2,bidirectional=true', huge],
    ['write-bw,size=3000,iters=60,warmup=60', huge],
    ['write-bw,size=3000,iters=60,qps=2,threads=2', huge],
    ['write-bw,sizes=64:50,512:20,3000:10,iters=60', huge],
    ['send-bw,size=1436,iters=300', huge],
    ['send-bw,size=3000,iters=60,bidirectional=true', huge],
    ['send-bw,size=3000,iters=60,echo=true', huge],
    ['send-bw,size=3000,iters=60,rate=1000000,cqMod=1', huge],
    ['read-bw,size=4320,iters=60', {}],
    ['write-bw,size=4320,iters=60', { ...huge, 'driver.mpaMarkers': true }],
    ['write-bw,size=4320,iters=60', { ...huge, 'driver.mpaCrc': false, 'driver.tcpTimestamps': true }],
    [
      'write-bw,size=20000,iters=60',
      { ...huge, 'ethernet.mtuBytes': 9000, 'ethernet.gigabitsPerSecond': 100 },
    ],
  ])('is never faster than the cable: %s with %o', async (workload, set) => {
    const { row, result, report } = await run(workload, set);
    const { peakBytesPerSecond = 0, averageBytesPerSecond } = result;
    expect(Math.max(averageBytesPerSecond, peakBytesPerSecond)).toBeLessThanOrEqual(row.linkBytesPerSecond!);
    expect(report.checks).toMatchObject({ balanced: true });
    // The peer had everything before a program ended.
    expect(report.nodes.map(({ hca }) => hca.iwarp!.discardedBytes)).toEqual([0, 0]);
  });

  it('comes within 1 % of the cable’s rate with full segments', async () => {
    const { row, result } = await run('write-bw,size=14400,iters=300');
    expect(result.averageBytesPerSecond).toBeGreaterThan(0.99 * row.linkBytesPerSecond!);
  });

  it('has no path MTU', async () => {
    await expect(run('write-bw,size=4096,iters=2,mtu=1024')).rejects.toThrow(
      /mtu is 1024, expected left out with iWARP/,
    );
  });

  it.each([
    { packet: 'lost', chance: '5%', node: 0 },
    { packet: 'lost', chance: '5%', node: 1 },
    { packet: 'corrupted', chance: '5%', node: 0 },
    { packet: 'duplicated', chance: '5%', node: 0 },
    { packet: 'late', chance: '5%', delay: '20us', node: 0 },
    { packet: 'late', chance: '5%', delay: '2ms', node: 1 },
  ])('balances with the fault %o', async (fault) => {
    const { report } = await run('write-bw,size=4096,iters=50', {}, [fault]);
    expect(report.checks).toMatchObject({ balanced: true });
    expect(report.faults![0]!.fired).toBeGreaterThan(0);
  });
});

it('READs over iWARP are in flight together, as many as both sides agreed on', async () => {
  // 10 km of fibre, 5 ns a metre: at most 16 READs in a round trip of 100 µs, where one at a time would be one.
  const { result } = await run('read-bw,size=64,iters=200', {
    'ethernet.cableMetres': 10_000,
    'ethernet.cablePsPerMetre': 5000,
  });
  const tripPs = 2 * 10_000 * 5000;
  const perTrip = (result.messagesPerSecond * tripPs) / 1e12;
  expect(perTrip).toBeGreaterThan(13);
  expect(perTrip).toBeLessThanOrEqual(16);
});
