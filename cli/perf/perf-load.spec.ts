/**
 * An offered load compared with queueing theory: D/D/1 and M/D/1 with the cable as the server. The service time is the
 * message's bytes on the link times the byte time of the standard. Percentiles come from Lindley's recursion with
 * independent random numbers.
 */
import { describe, expect, it } from 'vitest';
import runPerf, { type PerfRow } from '../../experiments/runs/perf-run.ts';
import type { LoadedRates } from '../../experiments/workloads/perf-result.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/workload.ts';
import { rowsOf } from '../../test/extent.ts';
import { hca } from '../testing/in-process.ts';

const set = { 'wire.speed': 'SDR' };

async function measured(text: string): Promise<PerfRow & { readonly result: LoadedRates }> {
  const row = await runPerf({ machine: { set }, args: perfArgsOf(parsedWorkload(text)) });
  expect(row.isBalanced, text).toBe(true);
  return row as PerfRow & { readonly result: LoadedRates };
}

const us = (ps: number): number => ps / 1e6;

/**
 * 4 lanes of SDR carry 8 Gb/s, so a byte takes 1 ns (IBTA vol. 2, 5.5). A WRITE of one packet: LRH 8, BTH 12, RETH 16,
 * payload 4096, ICRC 4, VCRC 2, and the two delimiters of the physical layer.
 */
const serviceUs = (8 + 12 + 16 + 4096 + 4 + 2 + 2) / 1000;
const writes = 'write-bw,size=4096,mtu=4096,warmup=100';

/** Waiting times in an M/D/1 queue, in units of the service time: W' = max(0, W + S - A). */
function waitsOfLindley(load: number, count: number): Float64Array {
  let state = 12_345;
  // Park and Miller's minimal standard generator.
  const unit = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const waits = new Float64Array(count);
  for (let at = 1; at < count; at++) waits[at] = Math.max(0, waits[at - 1]! + 1 + Math.log(unit()) / load);
  return waits.sort();
}

describe('a paced load', () => {
  it('below the capacity of the cable never waits (D/D/1)', async () => {
    const { result, load } = await measured(`${writes},rate=200k,arrivals=paced,iters=1000`);
    expect(result.averagePs - result.minPs).toBeLessThan(0.01 * 1e6 * serviceUs);
    expect(us(result.p999Ps - result.minPs)).toBeLessThan(serviceUs);
    expect(load).toMatchObject({ droppedCount: 0, isOverload: false, arrivedCount: 1000 });
    expect(load!.arrivedPerSecond).toBeCloseTo(200_000, -1);
    // The last message completes one latency after its arrival.
    expect(result.messagesPerSecond).toBeCloseTo(1000 / (1000 / 200_000 + result.minPs / 1e12), -3);
  });

  it('keeps its rate if threads have different numbers of QPs', async () => {
    // Three QPs on two threads: together, all messages arrive within 3 ms.
    const { result, load } = await measured(
      'write-bw,size=64,rate=200k,arrivals=paced,qps=3,threads=2,iters=200',
    );
    expect(load).toMatchObject({ droppedCount: 0, isOverload: false, arrivedCount: 600 });
    expect(load!.arrivedPerSecond / 200_000).toBeCloseTo(1, 2);
    expect(result.messagesPerSecond / 200_000).toBeCloseTo(1, 2);
  });

  it('above it waits longer with each message, by the excess of the load (D/D/1)', async () => {
    const iterations = 1500;
    const { result, load } = await measured(`${writes},rate=400k,arrivals=paced,iters=${iterations}`);
    const slowerUs = serviceUs - 1e6 / 400_000;
    const quiet = await measured(`${writes},rate=10k,arrivals=paced,iters=20`);
    const expected = us(quiet.result.minPs) + (iterations - 1) * slowerUs;
    expect(us(result.maxPs) / expected).toBeCloseTo(1, 1);
    expect(us(result.typicalPs - result.minPs) / ((iterations / 2) * slowerUs)).toBeCloseTo(1, 1);
    expect(us(1e12 / result.messagesPerSecond) / 1e6).toBeCloseTo(serviceUs / 1e6, 7);
    expect(load).toMatchObject({ droppedCount: 0, isOverload: true });
  });

  it('above it fills a bounded backlog, and then drops the excess', async () => {
    const { result, load } = await measured(
      `${writes},rate=400k,arrivals=paced,backlog=50,txDepth=16,iters=1500`,
    );
    const throughput = 1e6 / serviceUs;
    // Once the backlog is full, the cable carries a share of the 400,000.
    const lost = 1 - throughput / 400_000;
    expect(load!.droppedCount / load!.arrivedCount).toBeGreaterThan(0.9 * lost);
    expect(load!.droppedCount / load!.arrivedCount).toBeLessThan(lost);
    expect(load).toMatchObject({ backlogMost: 50, isOverload: true });
    expect(load!.arrivedCount - load!.droppedCount).toBe(1500);
    // 50 waiting and 16 in flight; each needs one service time.
    expect(us(result.p99Ps)).toBeGreaterThan(60 * serviceUs);
    expect(us(result.maxPs)).toBeLessThan(70 * serviceUs);
  });
});

describe('random arrivals', () => {
  const loads = rowsOf<[number, number]>(
    [[0.5, 4000]],
    [
      [0.3, 3000],
      [0.7, 8000],
    ],
  );
  it.each(loads)(
    'wait as in M/D/1 at %f of the capacity (Pollaczek and Khinchine)',
    async (share, iterations) => {
      const rate = Math.round((share * 1e6) / serviceUs);
      const { result, load } = await measured(`${writes},rate=${rate},iters=${iterations}`);
      const quiet = await measured(`${writes},rate=10k,arrivals=paced,iters=20`);
      const baseUs = us(quiet.result.minPs);
      const load1 = (load!.arrivedPerSecond * serviceUs) / 1e6;
      const meanUs = (serviceUs * load1) / (2 * (1 - load1));
      expect((us(result.averagePs) - baseUs) / meanUs, `${load1}`).toBeGreaterThan(0.85);
      expect((us(result.averagePs) - baseUs) / meanUs, `${load1}`).toBeLessThan(1.15);
      const waits = waitsOfLindley(load1, 1_000_000);
      for (const [part, ps] of [
        [0.5, result.typicalPs],
        [0.9, result.p90Ps],
        [0.99, result.p99Ps],
      ] as const) {
        const expected = baseUs + serviceUs * waits[Math.ceil(waits.length * part) - 1]!;
        expect(us(ps) / expected, `${part} of ${share}`).toBeGreaterThan(0.85);
        expect(us(ps) / expected, `${part} of ${share}`).toBeLessThan(1.15);
      }
    },
  );

  it('are equal for every program under one seed, for either way of waiting', async () => {
    const of = async (text: string) => (await measured(`${writes},rate=50k,iters=50,${text}`)).load!;
    const [polled, slept] = [await of('events=false'), await of('events=true')];
    expect(polled.arrivedPerSecond).toBe(slept.arrivedPerSecond);
    expect(polled.arrivedPerSecond).not.toBe(50_000);
  });
});

describe('perf --rate', () => {
  it.each([
    ['write-bw,size=64', 1],
    ['write-bw,size=64,connection=UC', 1],
    ['read-bw,size=64,qps=4', 1],
    ['atomic-bw', 1],
    ['send-bw,size=64,connection=UD', 1],
    ['send-bw,size=64,connection=XRC,qps=2', 1],
    ['send-bw,size=64,echo,events,cqMod=16', 1],
    ['send-bw,size=64,bidirectional,threads=2', 2],
    ['write-bw,bidirectional,sizes=64:3,4096:1', 2],
    ['herd', 1],
  ])('loads %s', async (test, ways) => {
    const { result, load, cores } = await measured(`${test},rate=200k,iters=40,warmup=20`);
    expect(load).toMatchObject({ offeredPerSecond: 200_000 * ways, droppedCount: 0, isOverload: false });
    const { minPs, typicalPs, p90Ps, p99Ps, p999Ps, maxPs } = result;
    const rising = [minPs, typicalPs, p90Ps, p99Ps, p999Ps, maxPs];
    expect(rising).toEqual(rising.toSorted((left, right) => left - right));
    expect(us(minPs)).toBeGreaterThan(0.8);
    expect(us(maxPs)).toBeLessThan(40);
    expect(result).not.toHaveProperty('peakBytesPerSecond');
    expect(load!.interruptsPerSecond).toHaveLength(2);
    expect(cores!.length).toBe(load!.busyCores.length * (cores!.length / 2));
  });

  it('counts a polling core as busy, and a sleeping one by its work', async () => {
    const polling = await measured('send-bw,size=64,rate=20k,iters=100,warmup=20');
    for (const cores of polling.load!.busyCores) expect(cores).toBeCloseTo(1, 1);
    const asleep = await measured('write-bw,size=64,rate=20k,iters=100,warmup=20,events');
    const [client, server] = asleep.load!.busyCores;
    // An interrupt for each completion, each with some microseconds of work; the passive side does nothing.
    expect(asleep.load!.interruptsPerSecond[0]! / asleep.result.messagesPerSecond).toBeCloseTo(1, 1);
    expect(client).toBeGreaterThan(0.02);
    expect(client).toBeLessThan(0.2);
    expect(server).toBeLessThan(0.001);
  });

  it('reports an overload, and its bottleneck', async () => {
    const options = ['perf', 'write-bw', '-s', '64', '-n', '3000', '--rate', '20M'];
    const { out, code } = await hca(...options);
    expect(code).toBe(0);
    expect(out).toMatch(/offered\[Mpps\] +MsgRate\[Mpps\] +50%\[usec\]/);
    expect(out).toMatch(/more was offered than went through, \d\d\.\d % of it: [\d,]+ of [\d,]+ messages/);
    expect(out).toContain('What binds: core of host 0');
    const { out: quiet } = await hca('perf', 'write-bw', '-s', '64', '-n', '200', '--rate', '100k');
    expect(quiet).toContain('What binds: nothing; all that is offered goes through.');
    expect(quiet).toMatch(/^ 64 +200 +0\.100000 /m);
  });

  it.each([
    ['write-lat,rate=1k', 'rate is 1000, expected left out: write-lat has one message in flight'],
    ['write-bw,rate=1k,postList=4', 'postList is 4, expected left out with rate'],
    ['write-bw,rate=1k,cqMod=4', 'cqMod is 4, expected 1 with rate'],
    [
      'write-bw,rate=1,iters=5000',
      'rate is 1, expected at least 2, at which 5000 messages arrive within 3600 s',
    ],
    ['write-bw,arrivals=paced', 'arrivals is "paced", expected left out without rate'],
    ['write-bw,backlog=7', 'backlog is 7, expected left out without rate'],
    ['write-bw,rate=1Ki', 'rate is "1Ki", expected an integer from 1 to 1000000000'],
  ])('rejects %s', (text, words) => {
    expect(() => perfArgsOf(parsedWorkload(text))).toThrow(words);
  });
});
