/** Bottlenecks over iWARP: the first advice raises the rate, for a bottleneck of each kind, and a path MTU is never advised. */
import { describe, expect, it, vi } from 'vitest';
import type { ParameterValue } from '../../machine/profile/index.ts';
import runPerf, { type PerfRow } from '../runs/perf-run.ts';
import type { BandwidthResult } from '../workloads/perf-result.ts';
import { turnLines } from './testing/advised-words.ts';
import { orderOf, turnedBy } from './testing/turning.ts';

vi.setConfig({ testTimeout: 120_000 });

const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
type Set = Readonly<Record<string, ParameterValue>>;

const runOf = (test: string, set: Set, fields = {}) => ({
  fields: { test, iters: 300, size: 4096, qps: 1, ...fields },
  set: { ...iwarp, ...set },
});

const rateOf = ({ result }: PerfRow): number => (result as BandwidthResult).messagesPerSecond;

/** Settings that make one thing slow; the name of the resource; the first advice, in words. */
const bottlenecks: readonly (readonly [
  what: string,
  test: string,
  set: Set,
  binds: string,
  first: string,
])[] = [
  ['the cable', 'write-bw', {}, 'cable from host 0 to 1', 'more ethernet.gigabitsPerSecond'],
  ['the cable', 'read-bw', {}, 'cable from host 1 to 0', 'more ethernet.gigabitsPerSecond'],
  [
    'received segments',
    'write-bw',
    { 'hca.iwarp.receiveCycles': 3000 },
    'TCP engine of host 1',
    'less hca.iwarp.receiveCycles',
  ],
  [
    'sent segments',
    'send-bw',
    { 'hca.iwarp.sendCycles': 2000 },
    'TCP engine of host 0',
    'less hca.iwarp.sendCycles',
  ],
  [
    'responses sent',
    'read-bw',
    { 'hca.iwarp.sendCycles': 2000 },
    'TCP engine of host 1',
    'less hca.iwarp.sendCycles',
  ],
  [
    'checksums of TCP',
    'write-bw',
    { 'hca.iwarp.bytesPerCycle': 1 },
    'TCP engine of host 1',
    'more hca.iwarp.bytesPerCycle',
  ],
  [
    'frames',
    'write-bw',
    { 'hca.transmitBytesPerCycle': 1 },
    'TCP transmitter of host 0',
    'more hca.transmitBytesPerCycle',
  ],
  [
    'CRCs',
    'write-bw',
    { 'hca.iwarp.crcBytesPerCycle': 2 },
    'receiver of host 1',
    'more hca.iwarp.crcBytesPerCycle',
  ],
  [
    'CRCs and copies at once',
    'write-bw',
    { 'hca.iwarp.crcBytesPerCycle': 2, 'hca.receiveBytesPerCycle': 2 },
    'receiver of host 1',
    'more hca.receiveBytesPerCycle with more hca.iwarp.crcBytesPerCycle',
  ],
  [
    'markers',
    'write-bw',
    { 'driver.mpaMarkers': true, 'hca.iwarp.markerCycles': 500 },
    'transmitter of host 0',
    'less hca.iwarp.markerCycles',
  ],
  [
    'the send buffer over a long cable',
    'write-bw',
    { 'ethernet.cableMetres': 10_000 },
    'send buffers of TCP of host 0',
    'more hca.iwarp.connectionBytes',
  ],
  [
    'the send buffer of responses',
    'read-bw',
    { 'ethernet.cableMetres': 10_000, 'hca.iwarp.connectionBytes': 16_384 },
    'send buffers of TCP of host 1',
    'more hca.iwarp.connectionBytes',
  ],
  [
    'the memory of all send buffers',
    'write-bw',
    { 'ethernet.cableMetres': 10_000, 'hca.iwarp.retransmissionBytes': 65_536 },
    'send buffers of TCP of host 0',
    'more hca.iwarp.connectionBytes with more hca.iwarp.retransmissionBytes',
  ],
  [
    'PCIe',
    'write-bw',
    { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
    'PCIe link of host 0 to the device',
    'more pcie.link.generation',
  ],
];

describe('over iWARP', () => {
  it.each(bottlenecks)(
    '%s of %s bind with %o: the first advice raises the rate',
    async (_, test, set, name, first) => {
      const run = runOf(test, set);
      const row = await runPerf(orderOf(run));
      const { binds, next } = row.bottleneck!;
      expect(binds.name).toBe(name);
      expect(turnLines(binds.turn)[0]).toBe(first);
      const turned = await runPerf(orderOf(turnedBy(run, binds.turn[0]!)!));
      expect(rateOf(turned) / rateOf(row)).toBeGreaterThan(1.04);
      for (const { turn, share } of [binds, ...next]) {
        expect(share).toBeLessThanOrEqual(1);
        expect(turnLines(turn).join()).not.toContain('--mtu');
      }
    },
  );

  it('longer segments are advised only for messages that fill one', async () => {
    const advice = async (size: number): Promise<string[]> => {
      const row = await runPerf(orderOf(runOf('write-bw', { 'ethernet.gigabitsPerSecond': 10 }, { size })));
      return [row.bottleneck!.binds, ...row.bottleneck!.next].flatMap(({ turn }) => turnLines(turn));
    };
    // A segment of 1460 bytes carries 1440 of a WRITE.
    expect(await advice(1441)).toContain('more ethernet.mtuBytes');
    expect(await advice(1440)).not.toContain('more ethernet.mtuBytes');
  });

  it('contexts of TCP are named when connections outnumber them', async () => {
    const set = {
      'hca.iwarp.contextEntries': 2,
      'hca.iwarp.contextWays': 1,
      'pcie.rootComplex.readLatencyPs': 5e6,
    };
    const run = runOf('write-bw', set, { qps: 8, iters: 60, size: 64 });
    const row = await runPerf(orderOf(run));
    const { binds } = row.bottleneck!;
    expect(binds.name).toMatch(/^TCP engine of host [01] \(TCP context misses\)$/);
    expect(turnLines(binds.turn)[0]).toBe('more hca.iwarp.contextEntries');
    const turned = await runPerf(orderOf(turnedBy(run, binds.turn[0]!)!));
    expect(rateOf(turned) / rateOf(row)).toBeGreaterThan(1.04);
  });
});
