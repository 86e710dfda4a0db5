/** Stages of a request over iWARP: each is the time of a block, which follows from parameters; together they are the whole latency. */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions, OperationReport } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import runPerf from '../runs/perf-run.ts';
import { parsedWorkload, perfArgsOf } from '../workloads/workload.ts';

vi.setConfig({ testTimeout: 120_000 });

// 500 MHz: a cycle is 2000 ps.
const iwarp = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.transport': 'iwarp',
  'hca.coreClockMHz': 500,
};
const cyclePs = 2000;
const us = 1e6;

/** Operations of a test after its report was found balanced: stages and whole times were counted apart. */
async function operationsOf(
  workload: string,
  set: ParameterValues = {},
  faults: MachineOptions['faults'] = [],
) {
  const machine = { set: { ...iwarp, ...set }, faults };
  const { report, stages } = await runPerf({
    machine,
    args: perfArgsOf(parsedWorkload(workload)),
    isReported: true,
  });
  expect(report!.checks.operations).toEqual({ holds: true, failures: [] });
  return { operations: report!.operations, stages: stages! };
}

const meanPs = ({ count, milestonesPs }: OperationReport, stage: string): number =>
  milestonesPs[stage]! / count;

describe('stages over iWARP', () => {
  // hca.transmitPacketCycles is 8, and 16 bytes are copied in a cycle. A marker lies in each 512 bytes (RFC 5044, 4.3).
  it.each([
    ['write-lat,size=1024,iters=20', {}, 1024 / 16],
    ['write-lat,size=64,iters=20,inline=0', {}, 8],
    ['write-lat,size=1024,iters=20', { 'hca.iwarp.crcBytesPerCycle': 1 }, 1024],
    ['write-lat,size=1024,iters=20', { 'hca.iwarp.crcBytesPerCycle': 1, 'driver.mpaCrc': false }, 64],
    [
      'write-lat,size=1024,iters=20',
      { 'driver.mpaMarkers': true, 'hca.iwarp.markerCycles': 100 },
      64 + 2 * 100,
    ],
    // The message has two segments, 1440 and 560 bytes; the last one is written after its payload.
    ['write-lat,size=2000,iters=20', { 'hca.iwarp.crcBytesPerCycle': 2 }, 560 / 2],
  ])('of %s with %o: framing is the time of the last FPDU', async (workload, set, cycles) => {
    const { operations } = await operationsOf(workload, set);
    expect(meanPs(operations['WRITE']!, 'framing')).toBe(cycles * cyclePs);
  });

  it('the wait for room in TCP is the time until acknowledgements arrive', async () => {
    // One segment fits into the send buffer; 8192 bytes are six, so that five wait for a round trip of 10 km, 5 ns a metre.
    const set = {
      'hca.iwarp.connectionBytes': 2048,
      'hca.iwarp.delayedAckUs': 0,
      'ethernet.cableMetres': 10_000,
      'ethernet.cablePsPerMetre': 5000,
    };
    const { operations, stages } = await operationsOf('write-lat,size=8192,iters=5', set);
    const waitedPs = meanPs(operations['WRITE']!, 'tcpWindow');
    expect(waitedPs).toBeGreaterThan(5 * 100 * us);
    expect(waitedPs).toBeLessThan(5 * 110 * us);
    expect(stages[0]).toMatchObject({ name: 'tcpWindow' });
    expect(stages[0]!.turn[0]).toEqual({ what: 'hca.iwarp.connectionBytes', towards: 'more' });
    const { operations: plain } = await operationsOf('write-lat,size=1024,iters=5');
    expect(plain['WRITE']!.milestonesPs['tcpWindow']).toBe(0);
  });

  it('a READ waits in TCP as long as the engine takes for its frame', async () => {
    const stageWith = async (sendCycles: number) =>
      meanPs(
        (await operationsOf('read-lat,size=64,iters=10', { 'hca.iwarp.sendCycles': sendCycles })).operations[
          'READ'
        ]!,
        'tcpSend',
      );
    const fast = await stageWith(12);
    expect(fast).toBeGreaterThanOrEqual(12 * cyclePs);
    expect((await stageWith(1012)) - fast).toBe(1000 * cyclePs);
  });

  it('a response is placed when it has passed the receiver’s path', async () => {
    const stageWith = async (receiveLatencyCycles: number) =>
      meanPs(
        (
          await operationsOf('read-lat,size=64,iters=10', {
            'hca.receiveLatencyCycles': receiveLatencyCycles,
          })
        ).operations['READ']!,
        'placement',
      );
    const fast = await stageWith(10);
    // 64 bytes at 32 in a cycle.
    expect(fast).toBeGreaterThanOrEqual((10 + 2) * cyclePs);
    expect((await stageWith(510)) - fast).toBe(500 * cyclePs);
  });

  it('RFC 6298, 2.4: a READ whose request is lost waits for TCP’s time-out', async () => {
    const set = { 'hca.iwarp.retransmitMinUs': 1000, 'hca.iwarp.retransmitInitialUs': 1000 };
    const lost = { packet: 'lost', node: 0, nth: 12 };
    const { operations } = await operationsOf('read-lat,size=64,iters=10', set, [lost]);
    const { count, milestonesPs } = operations['READ']!;
    expect(count).toBe(10);
    expect(milestonesPs['retransmission']).toBeGreaterThan(999 * us);
    expect(milestonesPs['retransmission']).toBeLessThan(1001 * us);
  });

  it('are left out of reports of other transports', async () => {
    const args = perfArgsOf(parsedWorkload('write-lat,size=64,iters=5'));
    const { report } = await runPerf({ machine: {}, args, isReported: true });
    expect(Object.keys(report!.operations['WRITE']!.milestonesPs)).toEqual([
      ...['doorbell', 'wqeFetch', 'scheduling', 'payloadRead', 'transmit'],
      ...['ackTimeout', 'rnrDelay', 'remote', 'completion', 'taken'],
    ]);
  });
});
