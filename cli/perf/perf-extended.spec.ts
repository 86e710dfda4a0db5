/** perf options that plain perftest tests lack: each changes the named property of the machine. */
import { describe, expect, it } from 'vitest';
import runPerf, { type PerfRow } from '../../experiments/runs/perf-run.ts';
import type { BandwidthResult } from '../../experiments/workloads/perf-result.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/workload.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { itOfAll } from '../../test/extent.ts';
import { hca } from '../testing/in-process.ts';

const measured = async (text: string, set: ParameterValues = {}): Promise<PerfRow> => {
  const row = await runPerf({ machine: { set }, args: perfArgsOf(parsedWorkload(text)) });
  expect(row.isBalanced, text).toBe(true);
  return row;
};
const rateOf = ({ result }: PerfRow): number => (result as BandwidthResult).messagesPerSecond;

describe('perf', () => {
  it('runs threads on separate cores, with the QPs distributed over them', async () => {
    const one = await measured('write-bw,size=64,iters=400,qps=4');
    const four = await measured('write-bw,size=64,iters=400,qps=4,threads=4');
    expect(four.cores!.map(({ node }) => node)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    expect(four.result.iterations).toBe(one.result.iterations);
    // One core binds one thread.
    expect(rateOf(four)).toBeGreaterThan(2 * rateOf(one));
    await expect(measured('write-bw,threads=5,iters=10')).rejects.toThrow(
      'threads is 5, expected at most the cores of a host, 4: --set host.core.count=5',
    );
  });

  it('has no peak for several senders, nor for drawn lengths, where a count says nothing about bytes', async () => {
    const peakOf = async (text: string) => (await measured(text)).result;
    expect(await peakOf('write-bw,size=64,iters=40')).toHaveProperty('peakBytesPerSecond');
    for (const several of ['size=64,threads=2,qps=2', 'size=64,bidirectional', 'sizes=64:1,65536:1']) {
      const result = await peakOf(`write-bw,iters=40,${several}`);
      expect(result, several).toHaveProperty('averageBytesPerSecond');
      expect(result, several).not.toHaveProperty('peakBytesPerSecond');
    }
  });

  it('of drawn lengths is not faster than the link', async () => {
    const { code, out, err } = await hca('perf', 'write-bw', '--sizes', '64:1,65536:1', '-n', '300');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^ 32800 +300 +- +\d{4}\.\d\d /m);
  });

  it.each(['write-bw', 'send-bw'])('sends %s over RC and UC', async (test) => {
    const [rc, uc] = [
      await measured(`${test},size=64,iters=300`),
      await measured(`${test},size=64,iters=300,connection=UC`),
    ];
    expect(rateOf(uc)).toBeGreaterThan(0.9 * rateOf(rc));
    if (test === 'send-bw') expect(uc.received).toEqual({ count: 300, expected: 300 });
  });

  it.each([1, 2, 15])('measures the latency of SENDs by queues of %i', async (txDepth) => {
    const { result, isBalanced } = await measured(`send-lat,iters=40,txDepth=${txDepth},rxDepth=2`);
    expect(result).toMatchObject({ iterations: 40 });
    expect(isBalanced).toBe(true);
  });

  it('sends datagrams, and reports which found no receive', async () => {
    const all = await measured('send-bw,size=64,iters=300,connection=UD');
    expect(all.received).toEqual({ count: 300, expected: 300 });
    const few = await measured('send-bw,size=64,iters=300,connection=UD,rxDepth=4,inline=64');
    expect(few.received!.expected).toBe(300);
    expect(few.received!.count).toBeLessThan(300);
    expect(few.received!.count).toBeGreaterThan(3);
    for (const connection of ['UC', 'UD'])
      expect((await measured(`send-lat,iters=20,connection=${connection}`)).result).toMatchObject({
        iterations: 20,
      });
  });

  it('explains lost messages: without a receive, without a page, on the way', async () => {
    const few = await measured('send-bw,size=64,iters=300,connection=UD,rxDepth=4,inline=64');
    const { count, expected, lost } = few.received!;
    expect(lost).toEqual({ withoutReceive: expected - count, withoutPage: 0 });
    const absent = await measured('send-bw,size=64,iters=100,connection=UD,onDemand');
    const { withoutPage } = absent.received!.lost!;
    expect(withoutPage).toBeGreaterThan(0);
    expect(absent.received).toEqual({
      count: 100 - withoutPage,
      expected: 100,
      lost: { withoutReceive: 0, withoutPage },
    });
    for (const service of ['UC', 'UD']) {
      const { out } = await hca(
        'perf',
        ...['send-bw', '-s', '64', '-n', '50', '-c', service, '--fault', 'packet=lost,node=0,nth=5'],
      );
      expect(out, service).toContain(
        '64 bytes: 1 of 50 messages (2.0 %) are lost: 1 never came whole;\n  the rate is that of the sender.\nWhat binds',
      );
      const twice = await hca(
        'perf',
        ...['send-bw', '-s', '64', '-n', '50', '-c', service, '--fault', 'packet=duplicated,node=0,nth=5'],
      );
      expect(twice.out, service).toContain(
        '64 bytes: 50 messages were sent, and 51 came: some twice.\nWhat binds',
      );
    }
  });

  it('posts lists with one doorbell', async () => {
    const [alone, lists] = [
      await measured('write-bw,size=64,iters=512,qps=2'),
      await measured('write-bw,size=64,iters=512,qps=2,postList=16'),
    ];
    const spent = ({ cores }: PerfRow): number => cores![0]!.cycles['post']!;
    // host.cost: an uncached store of 60 cycles for each doorbell; one doorbell for each message, or one for 16.
    expect(spent(alone) - spent(lists)).toBeGreaterThan(1024 * (1 - 1 / 16) * 60 * 0.9);
  });

  it('sends both ways', async () => {
    const set = { 'host.core.clockMHz': 5000 };
    const one = await measured('write-bw,size=16384,iters=100', set);
    const both = await measured('write-bw,size=16384,iters=100,bidirectional', set);
    expect(rateOf(both)).toBeGreaterThan(1.6 * rateOf(one));
    expect(both.cores!.every(({ cycles }) => cycles['post']! > 0)).toBe(true);
    const sends = await measured('send-bw,size=256,iters=200,bidirectional');
    expect(sends.received).toEqual({ count: 400, expected: 400 });
  });

  itOfAll(
    'walks by every pattern, in as many memory regions and pages as asked for',
    async () => {
      const walked = async (rest: string): Promise<PerfRow> =>
        measured(`write-bw,size=64,iters=600,region=4Mi,${rest}`);
      const missesOf = ({ caches }: PerfRow, cache: string): number => caches[1]![cache]!.misses;
      const sequential = await walked('pattern=sequential');
      const random = await walked('pattern=random');
      const zipf = await walked('pattern=zipf');
      const stride = await walked('pattern=stride,stride=8Ki');
      const order = [sequential, zipf, random].map((row) => missesOf(row, 'mtt'));
      expect(order).toEqual(order.toSorted((left, right) => left - right));
      // 4 MiB have 512 places 8 KiB apart: each access uses another page, in order.
      expect(missesOf(stride, 'mtt')).toBeGreaterThan(missesOf(sequential, 'mtt'));
      const keys = await walked('pattern=random,keys=256');
      expect(missesOf(keys, 'mpt')).toBeGreaterThan(100);
      expect(missesOf(random, 'mpt')).toBe(1);
      expect(missesOf(await walked('pattern=random,pageSize=2M'), 'mtt')).toBeLessThan(4);
    },
    60_000,
  );

  it('draws lengths by their weights', async () => {
    const { result } = await measured('write-bw,sizes=64:90,4096:10,iters=1000');
    const { averageBytesPerSecond, messagesPerSecond } = result as BandwidthResult;
    // 0.9 x 64 + 0.1 x 4096 = 467.2 bytes on average.
    expect(averageBytesPerSecond / messagesPerSecond).toBeGreaterThan(380);
    expect(averageBytesPerSecond / messagesPerSecond).toBeLessThan(560);
  });

  it('counts and measures from the end of a warm-up', async () => {
    const cold = await measured('write-bw,size=64,iters=300,region=64Ki');
    const warm = await measured('write-bw,size=64,iters=300,region=64Ki,warmup=2000');
    expect(cold.caches[1]!['mtt']!.misses).toBeGreaterThan(0);
    expect(warm.caches[1]!['mtt']!.misses).toBe(0);
    expect(warm.caches[1]!['qpc']!.hits + warm.caches[1]!['qpc']!.misses).toBe(300);
    expect(warm.result.iterations).toBe(300);
    const latency = await measured('write-lat,iters=20,warmup=257');
    const { firstPs, typicalPs } = latency.result as { firstPs: number; typicalPs: number };
    expect(firstPs).toBeLessThan(1.2 * typicalPs);
  });

  it.each([
    'write-bw,size=64,iters=300,qps=3',
    'write-bw,size=3000,iters=100,bidirectional,threads=2',
    'read-bw,size=3000,iters=100',
    'atomic-bw,iters=100',
    'send-bw,size=64,iters=100,qps=3',
    'send-bw,size=64,iters=100,bidirectional,qps=2',
    'write-lat,size=64,iters=40',
    'read-lat,size=64,iters=40',
    'send-lat,size=64,iters=40',
    'atomic-lat,iters=40',
  ])('runs %s over XRC as over RC, except for its headers', async (text) => {
    const [rc, xrc] = [await measured(text), await measured(`${text},connection=XRC`)];
    expect(xrc.received).toEqual(rc.received);
    const costOf = ({ result }: PerfRow): number =>
      'typicalPs' in result ? result.typicalPs : 1 / (result as BandwidthResult).messagesPerSecond;
    expect(costOf(xrc) / costOf(rc)).toBeGreaterThan(0.9);
    // 4 bytes of 96, and the context of the queue. The SRQ's receives are a linked list.
    expect(costOf(xrc) / costOf(rc)).toBeLessThan(text.startsWith('send-bw') ? 4 : 1.15);
    expect(xrc.linkBytesPerSecond ?? 0).toBeLessThanOrEqual(rc.linkBytesPerSecond ?? 0);
  });

  it('annex A14: shares the receives of a program among its XRC QPs', async () => {
    const text = 'send-bw,size=64,iters=100,qps=4,rxDepth=4';
    const shared = await measured(`${text},connection=XRC`);
    expect(shared.received).toEqual({ count: 400, expected: 400 });
    const own = await measured(text);
    expect(rateOf(shared)).toBeLessThan(rateOf(own));
  });

  it.each(['RC', 'UC', 'UD'])(
    'shares the receives of a program among QPs of %s where it is asked to',
    async (connection) => {
      const text = `send-bw,size=64,iters=100,qps=4,rxDepth=400,connection=${connection}`;
      const shared = await measured(`${text},useSrq`);
      expect(shared.received).toEqual({ count: 400, expected: 400 });
      // One receive for all of them: RC gets RNR NAKs, the other services lose messages.
      const few = await measured(`send-bw,size=64,iters=100,qps=4,rxDepth=1,useSrq,connection=${connection}`);
      if (connection === 'RC') expect(few.received).toEqual({ count: 400, expected: 400 });
      else expect(few.received!.count).toBeLessThan(400);
      // One queue for each: all of its WQEs are prefetched, while those of a linked list are fetched one by one.
      expect(rateOf(shared)).toBeLessThan(rateOf(await measured(text)));
    },
  );

  it('answers, and plays ping-pong, with receives of a shared queue', async () => {
    const echoed = await measured('send-bw,size=64,iters=100,qps=2,echo,useSrq');
    expect(echoed.received).toEqual({ count: 400, expected: 400 });
    const both = await measured('send-bw,size=64,iters=100,qps=2,bidirectional,useSrq');
    expect(both.received).toEqual({ count: 400, expected: 400 });
    expect((await measured('send-lat,iters=20,useSrq')).result.iterations).toBe(20);
  });

  it('names the parameters that affect the list of an RC shared queue', async () => {
    const { out } = await hca('perf', 'send-bw', '-s', '64', '-n', '300', '--use-srq');
    expect(out).toMatch(/What binds: receive WQEs of host 1/);
    expect(out).toMatch(
      /To turn: more --threads; less pcie\.rootComplex\.readLatencyPs,\s+pcie\.link\.latencyPs\./,
    );
    const rate = async (set: ParameterValues, more = ''): Promise<number> =>
      rateOf(await measured(`send-bw,size=64,iters=300,useSrq${more}`, set));
    const asItIs = await rate({});
    expect(await rate({ 'pcie.rootComplex.readLatencyPs': 100_000 })).toBeGreaterThan(1.1 * asItIs);
    expect(await rate({ 'hca.receivePrefetchCount': 16 })).toBeLessThan(1.02 * asItIs);
    expect(await rate({}, ',rxDepth=2048')).toBeLessThan(1.02 * asItIs);
    // One queue for each program.
    expect(await rate({}, ',threads=2')).toBeGreaterThan(1.5 * asItIs);
  });

  it('names the parameters that affect a shared queue’s list, whose entries link to the next', async () => {
    const asked = ['perf', 'send-bw', '-s', '64', '-n', '300', '-c', 'XRC'] as const;
    const { out } = await hca(...asked);
    expect(out).toMatch(/What binds: receive WQEs of host 1/);
    expect(out).toMatch(
      /To turn: more --threads; less pcie\.rootComplex\.readLatencyPs,\s+pcie\.link\.latencyPs\./,
    );
    const rate = async (set: ParameterValues): Promise<number> =>
      rateOf(await measured('send-bw,size=64,iters=300,connection=XRC', set));
    expect(await rate({ 'pcie.rootComplex.readLatencyPs': 100_000 })).toBeGreaterThan(1.1 * (await rate({})));
  });

  it.each(['RC', 'XRC', 'UC', 'UD'])('echoes messages over %s', async (connection) => {
    const one = await measured(`send-bw,size=64,iters=100,txDepth=1,cqMod=1,echo,connection=${connection}`);
    const many = await measured(`send-bw,size=64,iters=300,qps=2,echo,warmup=7,connection=${connection}`);
    expect(many.received).toEqual({ count: 1200, expected: 1200 });
    expect(rateOf(many)).toBeGreaterThan(4 * rateOf(one));
    // One in flight: as long as a ping-pong of the latency test, both ways, plus the cost of polling several places.
    const { typicalPs } = (await measured(`send-lat,size=64,inline=0,iters=20,connection=${connection}`))
      .result as { typicalPs: number };
    expect(1e12 / rateOf(one)).toBeGreaterThan(2 * typicalPs * 0.95);
    expect(1e12 / rateOf(one)).toBeLessThan(2 * typicalPs * 1.5);
  });

  it('coalesces events, and works without BlueFlame', async () => {
    const asked = 'send-bw,size=64,iters=300,events,cqMod=1';
    // Each event that the server sleeps for costs it a context switch.
    const spent = ({ cores }: PerfRow): number => cores![1]!.cycles['contextSwitch']!;
    const each = await measured(asked);
    const joined = await measured(`${asked},moderation=32:50`);
    expect(spent(joined)).toBeLessThan(spent(each));
    const [on, off] = [
      await measured('write-lat,size=8,iters=20'),
      await measured('write-lat,size=8,iters=20,blueflame=off'),
    ].map(({ result }) => (result as { typicalPs: number }).typicalPs);
    // The device must fetch the WQE.
    expect(off! - on!).toBeGreaterThan(200_000);
  });
});

describe('perf on a cable of Ethernet', () => {
  const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
  const sets = Object.entries(roce).flatMap(([path, value]) => ['--set', `${path}=${value}`]);

  it.each([
    'write-bw,size=3000,iters=40',
    'read-bw,size=3000,iters=40',
    'send-bw,size=64,iters=40,connection=UD',
    'send-lat,size=3000,iters=10,connection=UC',
    'write-bw,size=3000,iters=40,connection=UC',
    'atomic-bw,iters=40',
    'write-bw,size=3000,iters=40,connection=XRC',
    'read-bw,size=3000,iters=40,connection=XRC',
    'send-bw,size=64,iters=40,connection=XRC',
    'atomic-bw,iters=40,connection=XRC',
    'send-lat,size=64,iters=10,connection=XRC',
    'kv-get,iters=40',
  ])('runs %s, in no less time than its frames take', async (text) => {
    const { result, linkBytesPerSecond } = await measured(text, roce);
    if ('averageBytesPerSecond' in result)
      expect(result.averageBytesPerSecond).toBeLessThanOrEqual(linkBytesPerSecond!);
  });

  it('names the parameters of that cable', async () => {
    const { code, out } = await hca('perf', 'write-bw', '-s', '65536', '-n', '30', ...sets);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/cable from host 0 to 1.*ethernet.gigabitsPerSecond/s),
    ]);
  });

  it('refuses a path MTU beyond the port’s', async () => {
    const { code, err } = await hca('perf', 'write-bw', '-n', '5', '-m', '2048', ...sets);
    expect([code === 0, err]).toEqual([
      false,
      expect.stringMatching(/--mtu is 2048, expected at most the port's, 1024/),
    ]);
  });
});
