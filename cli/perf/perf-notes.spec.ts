/** Compares perf's notes on parameters without effect with runs with and without these parameters. */
import { describe, expect, it } from 'vitest';
import runPerf, { type PerfRow } from '../../experiments/runs/perf-run.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/workload.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { arrivalNotes, parameterNotes } from './perf-notes.ts';

const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
const infiniband = {};
const isEnabled = { 'pcie.iommu.isEnabled': true };

const run = (set: ParameterValues): Promise<PerfRow> =>
  runPerf({ machine: { set }, args: perfArgsOf(parsedWorkload('send-bw,size=3000,iters=30')) });
const notesOf = (set: ParameterValues, rows: readonly PerfRow[]): string[] => parameterNotes({ set }, rows);

it.each<[string, number | string | boolean, ParameterValues, string]>([
  ['ethernet.gigabitsPerSecond', 100, infiniband, 'the cable is of InfiniBand'],
  ['ethernet.mtuBytes', 9000, infiniband, 'the cable is of InfiniBand'],
  ['wire.speed', 'EDR', roce, 'the cable is of Ethernet'],
  ['wire.cableMetres', 1000, roce, 'the cable is of Ethernet'],
  ['wire.receiveBufferBytes', 65_536, roce, 'the cable is of Ethernet'],
  ['messaging.eagerBytes', 64, infiniband, 'tests speak the verbs'],
  ['net.stack.sendBufferKib', 4, infiniband, 'tests go by the HCA'],
  ['nic.coreClockMHz', 50, infiniband, 'tests go by the HCA'],
  ['systemDma.clockMHz', 1, infiniband, 'tests go by the HCA'],
  ['hca.iwarp.sendCycles', 99, roce, 'the transport is not iWARP'],
  ['driver.mpaRevision', 1, roce, 'the transport is not iWARP'],
  ['hca.lossRecovery', 'selective-repeat', iwarp, 'the transport is iWARP'],
  ['hca.capability.staticRates', true, iwarp, 'the transport is iWARP'],
  ['hca.recoveryWindowPackets', 4, infiniband, 'what was lost is repeated by go-back-N'],
  ['hca.reorderBufferPackets', 4, roce, 'what was lost is repeated by go-back-N'],
  ['hca.retransmitLowUs', 1, infiniband, 'what was lost is repeated by go-back-N'],
  ['hca.retransmitHighUs', 1, infiniband, 'what was lost is repeated by go-back-N'],
  ['hca.retransmitLowPackets', 1, infiniband, 'what was lost is repeated by go-back-N'],
  ['pcie.iommu.iotlbEntries', 1, infiniband, 'there is no IOMMU'],
])('%s=%s has no effect, and a note says so', async (path, value, given, words) => {
  const [plain, changed] = [await run(given), await run({ ...given, [path]: value })];
  expect(notesOf({ ...given, [path]: value }, [changed])).toEqual([
    expect.stringContaining(`--set ${path}=${value} has no effect: ${words}`),
  ]);
  expect(changed).toEqual(plain);
});

it.each<[string, number | string, ParameterValues]>([
  ['ethernet.gigabitsPerSecond', 40, roce],
  ['wire.speed', 'SDR', infiniband],
  ['hca.recoveryWindowPackets', 4, { 'hca.lossRecovery': 'selective-repeat' }],
  ['pcie.iommu.walkLevelNs', 5000, isEnabled],
])('%s=%s has an effect if its part is present, and no note appears', async (path, value, given) => {
  const [plain, changed] = [await run(given), await run({ ...given, [path]: value })];
  expect(notesOf({ ...given, [path]: value }, [changed])).toEqual([]);
  expect(changed.result).not.toEqual(plain.result);
});

it('has no note on the packet format, nor on the switch of an IOMMU', async () => {
  const row = await run(infiniband);
  expect(notesOf({ ...roce, 'wire.packetForm': 'bytes' }, [row])).toEqual([]);
  expect(notesOf(isEnabled, [row])).toEqual([]);
});

describe('the note on messages that complete before the peer has them', () => {
  const notesAfter = async (workload: string, set: ParameterValues = iwarp): Promise<string[]> =>
    arrivalNotes({ set }, [await runPerf({ machine: { set }, args: perfArgsOf(parsedWorkload(workload)) })]);
  const small = { ...iwarp, 'hca.iwarp.connectionBytes': 2048 };

  // Two connections may hold 2 × 2048 bytes: 1 % of 409,600, the bytes of 2 × 200 messages of 1024.
  it.each([
    ['write-bw,size=1024,qps=2,iters=200', '4,096 of the 409,600 bytes sent', '-n 201'],
    ['send-bw,size=1024,iters=2', '2,048 of the 2,048 bytes sent', '-n 201'],
  ])(
    'names the bytes that TCP may hold after %s, and how to make them few',
    async (workload, bytes, remedy) => {
      const text = (await notesAfter(workload, small)).join(' ');
      expect(text).toContain(bytes);
      expect(text).toContain(remedy);
    },
  );

  it('says of an offered load that the times end early, unless messages are answered', async () => {
    const load = 'write-bw,size=1024,iters=20,rate=100000,cqMod=1';
    expect((await notesAfter(load)).join(' ')).toContain('its time ends there');
  });

  it('says of a latency test that its stages leave out the way to the peer', async () => {
    expect((await notesAfter('write-lat,size=64,iters=5')).join(' ')).toContain('not in the stages');
  });

  it.each([
    ['write-bw,size=1024,qps=2,iters=201', small],
    ['read-bw,size=1024,iters=5', iwarp],
    ['read-lat,size=64,iters=5', iwarp],
    ['write-bw,size=1024,iters=5', roce],
  ])('is left out after %s, where nothing of note is held', async (workload, set) => {
    expect(await notesAfter(workload, set)).toEqual([]);
  });
});
