/**
 * HERD's pattern, by calculation: costs of the cores and counts of posts and completions follow from the pattern's WQEs
 * and CQEs, not from a run.
 */
import { describe, expect, it } from 'vitest';
import runPerf, { type ReportedRow } from '../../experiments/runs/perf-run.ts';
import type { KvRates } from '../../experiments/workloads/kv-plan.ts';
import type { LatencyResult } from '../../experiments/workloads/perf-result.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/workload.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { itOfAll } from '../../test/extent.ts';
import { perfPage } from './perf-page.ts';

interface Measured extends Omit<ReportedRow, 'result' | 'report'> {
  readonly result: KvRates;
  readonly report: Required<ReportedRow>['report'];
}

async function measured(
  text: string,
  set: ParameterValues = {},
  partition: 'single' | 'per-node' = 'single',
): Promise<Measured> {
  const args = perfArgsOf(parsedWorkload(text));
  const row = await runPerf({ machine: { set, partition }, args, isReported: true });
  expect(row.isBalanced, text).toBe(true);
  return row as unknown as Measured;
}

const completionsOf = ({ report }: Measured, node: number): number => {
  const { hits, misses } = report.nodes[node]!.hca.caches['cqc']!.users['completion']!;
  return hits + misses;
};

const one = 'kv-rpc,iters=200,window=1';

describe('a key-value store like HERD', () => {
  it('costs the server a poll, a look-up and a SEND for each request, and no completion', async () => {
    const row = await measured(one);
    const { getCount, putCount } = row.result;
    expect(getCount + putCount).toBe(200);
    expect(putCount).toBeGreaterThan(0);
    const { cycles } = row.cores![1]!;
    // With one request in flight, a pass over the single slot finds one: 5 cycles for the pass, 60 for the written
    // line, 100 for the look-up; a PUT copies 32 bytes, 50 + 32 / 4. The final message of the run has no look-up.
    expect(cycles['application']).toBe(201 * (5 + 60) + 200 * 100 + putCount * 58);
    // A SEND of 32 bytes: 240, a segment 15, inline 16; a WQE of 16 + 48 + 4 + 32 bytes is two lines of write-combining
    // stores of 60. An empty answer has no segment and no inline data, and is announced by a doorbell.
    expect(cycles['post']).toBe(getCount * (240 + 15 + 16 + 2 * 60) + putCount * (240 + 60));
    expect(row.report.nodes[1]!.hca.doorbells).toMatchObject({ blueFlame: getCount, send: putCount });
    // One completion for 64 SENDs; no other, and none for a request.
    expect(completionsOf(row, 1)).toBe(Math.floor(200 / 64));
    expect(row.cores![1]!.cycles['memory']).toBeUndefined();
  });

  it('costs a client an inlined WRITE and a receive for each request', async () => {
    const row = await measured(one);
    const { getCount, putCount } = row.result;
    const { cycles } = row.cores![0]!;
    // WQEs of 16 + 16 + 4 + length: one line for a key of 16 bytes and for the final 18 bytes; two for a PUT of 50.
    // Receives: 100.
    const postOf = (lines: number): number => 240 + 15 + 16 + lines * 60;
    expect(cycles['post']).toBe((getCount + 1) * postOf(1) + putCount * postOf(2) + 200 * 100);
    // Building a request costs 50 + length / 4; reading a value costs a line.
    expect(cycles['application']).toBe(getCount * (50 + 4 + 60) + putCount * (50 + 13) + 50 + 5);
    expect(completionsOf(row, 0)).toBe(200 + Math.floor(201 / 64));
    expect(row.report.nodes[0]!.hca.doorbells).toMatchObject({ blueFlame: 201 });
  });

  it('takes as long as a WRITE there and a SEND back', async () => {
    const { typicalPs } = (await measured(one)).result;
    const latencyOf = async (text: string): Promise<number> => {
      const { result } = await runPerf({ machine: {}, args: perfArgsOf(parsedWorkload(text)) });
      return (result as LatencyResult).typicalPs;
    };
    const write = await latencyOf('write-lat,size=16,iters=30,connection=UC');
    const send = await latencyOf('send-lat,size=32,iters=30,connection=UD');
    // In addition: the look-up (40 ns), reading request and answer, building the request; a WRITE of the latency test
    // also waits for its own completion.
    expect(typicalPs).toBeGreaterThan(write + send - 300_000);
    expect(typicalPs).toBeLessThan(write + send + 300_000);
  });

  itOfAll('has the same figures to the picosecond in every partition', async () => {
    const text = 'herd,iters=60,threads=3,servers=2';
    const [single, parallel] = [await measured(text), await measured(text, {}, 'per-node')];
    expect(parallel.result).toEqual(single.result);
    expect(parallel.cores).toEqual(single.cores);
    const again = await measured(text);
    expect(again.result).toEqual(single.result);
  });

  it('answers every request of every client, from every thread of the server', async () => {
    const set = { 'host.core.count': 6 };
    const { result, cores, report } = await measured('herd,iters=150,threads=6,servers=3,gets=50', set);
    expect(result.getCount + result.putCount).toBe(900);
    expect(result.getCount).toBeGreaterThan(400);
    expect(result.getCount).toBeLessThan(500);
    expect(cores!.map(({ node }) => node)).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1]);
    // Each client ends the run of each thread.
    const { doorbells } = report.nodes[0]!.hca;
    expect(doorbells['blueFlame']! + doorbells['send']!).toBe(900 + 18);
    const { minPs, typicalPs, averagePs, p99Ps, maxPs } = result;
    expect([minPs, typicalPs, p99Ps, maxPs]).toEqual(
      [minPs, typicalPs, p99Ps, maxPs].toSorted((a, b) => a - b),
    );
    // Little's law: the windows are full, except at the start and the end.
    const inFlight = (result.messagesPerSecond * averagePs) / 1e12;
    expect(inFlight).toBeGreaterThan(0.9 * 6 * 4);
    expect(inFlight).toBeLessThanOrEqual(6 * 4);
  });

  itOfAll('draws keys by every pattern, and has values and keys of any length, inlined or not', async () => {
    for (const text of [
      'kv-rpc,iters=60,pattern=zipf,gets=0',
      'kv-rpc,iters=60,pattern=sequential,items=7,gets=60',
      'kv-rpc,iters=60,keySize=61,valueSize=1000,gets=50,window=7',
      'kv-rpc,iters=60,keySize=8,valueSize=8,inline=0,gets=50,servers=2,items=1',
      'kv-rpc,iters=60,valueSize=300,mtu=512,inline=20,window=16,rxDepth=16,txDepth=4,cqMod=4',
      'kv-rpc,iters=60,blueflame=off,cqMod=1',
    ]) {
      const { result } = await measured(text);
      expect(result.getCount + result.putCount, text).toBe(60);
    }
  });

  it('counts and measures from the end of a warm-up', async () => {
    const row = await measured('herd,iters=100,threads=2,servers=2,warmup=300');
    expect(row.result.getCount + row.result.putCount).toBe(200);
    const { hits, misses } = row.caches[1]!['qpc']!.users['requester']!;
    expect(hits + misses).toBe(200);
    expect(misses).toBe(0);
  });

  it('is limited by the core of its server, and faster with more of them', async () => {
    const few = await measured('herd,iters=300,threads=4,servers=1,window=16');
    expect(few.bottleneck!.binds.name).toBe('core of host 1');
    expect(few.bottleneck!.binds.turn).toContainEqual({ what: '--servers', towards: 'more' });
    const more = await measured('herd,iters=300,threads=4,servers=2,window=16');
    expect(more.result.messagesPerSecond).toBeGreaterThan(1.5 * few.result.messagesPerSecond);
    const wire = await measured('herd,iters=300,threads=4,servers=1,window=16', { 'wire.speed': 'QDR' });
    expect(wire.result.messagesPerSecond).toBeLessThan(1.05 * few.result.messagesPerSecond);
  });

  itOfAll('has no more of the link than there is', async () => {
    const set = { 'wire.speed': 'SDR', 'wire.lanes': '1', 'host.core.clockMHz': 5000 };
    const row = await measured('kv-rpc,iters=400,threads=4,servers=4,window=8,valueSize=512,gets=100', set);
    // An answer: LRH 8, BTH 12, DETH 8, immediate 4, 512, ICRC 4, VCRC 2, framing 2; 2.5 Gb/s at 8b/10b are 0.25 bytes
    // per nanosecond.
    const boundPerSecond = 0.25e9 / (8 + 12 + 8 + 4 + 512 + 4 + 2 + 2);
    expect(row.linkBytesPerSecond! / 512).toBeCloseTo(boundPerSecond, 3);
    expect(row.result.messagesPerSecond).toBeLessThan(boundPerSecond);
    expect(row.result.messagesPerSecond).toBeGreaterThan(0.95 * boundPerSecond);
  });

  it('has its rate and its times in a table of its own on a page', async () => {
    const row = await measured('herd,iters=20,threads=1,servers=1');
    const page = perfPage({ title: 'hca perf herd', command: 'hca perf herd', version: '0' }, [row], []);
    expect(page).toContain('Requests of all clients together');
    expect(page).toContain((row.result.messagesPerSecond / 1e6).toFixed(6));
  });

  it('rejects more threads than cores', async () => {
    await expect(measured('kv-rpc,servers=5')).rejects.toThrow(
      'servers is 5, expected at most the cores of a host, 4: --set host.core.count=5',
    );
  });

  it('ends with an error if the cable has lost a request or duplicated an answer: HERD does not guard against it', async () => {
    const args = perfArgsOf(parsedWorkload('kv-rpc,iters=40,window=2'));
    const lost = runPerf({ machine: { faults: [{ packet: 'lost', nth: 20 }] }, args });
    await expect(lost).rejects.toThrow(
      /'client' .* waits in ibv_poll_cq .* 'server' .* waits in the slots .*The fault packet=lost,nth=20.* fired .*\. Of UC and UD/,
    );
    const doubled = runPerf({ machine: { faults: [{ packet: 'duplicated', nth: 20, node: 1 }] }, args });
    await expect(doubled).rejects.toThrow(/the answer to GET \d+ is no value of that key|answer a/);
  });
});
