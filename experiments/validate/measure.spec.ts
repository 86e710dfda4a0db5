/** Workloads of this room compared with independent figures; docs/reference/fidelity.md covers the rows. */
import { describe, expect, it, vi } from 'vitest';
import { configurationOf, type ParameterValues } from '../../machine/profile/index.ts';
import { constantFigures } from './constants.ts';
import { stream } from './families/streams.ts';
import { measure } from './measure.ts';
import { measuringDeviceNs } from './measuring-device.ts';
import type { StreamPlan } from './points.ts';
import { slotFigures } from './slot.ts';

vi.setConfig({ testTimeout: 120_000 });

const profile = 'connectx3-fdr';
const figuresOf = (plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>, set: ParameterValues = {}) => {
  const { workload } = stream({ profile }, { messages: 800, ...plan });
  return measure(workload as Exclude<typeof workload, { readonly kind: 'perf' }>, { profile, set });
};

describe('a stream of threads', () => {
  it('of one QP runs at the interval of a QP, for any service: 427 MHz / 77 cycles', async () => {
    for (const transport of ['RC', 'UC'] as const)
      expect((await figuresOf({ transport, verb: 'write', signalEvery: 4 }))['mops']).toBeCloseTo(
        427 / 77,
        1,
      );
    const datagrams = { transport: 'UD', verb: 'send', sizeBytes: 4, inlineBytes: 60 } as const;
    const one = await figuresOf({ ...datagrams, signalEvery: 4, messages: 4000 });
    expect(one['mops']).toBeCloseTo(427 / 77, 1);
    // Four QPs of one thread, in lists, are no longer limited by that.
    const four = await figuresOf({ ...datagrams, list: 8, qpsPerThread: 4, signalEvery: 8 });
    expect(four['mops']!).toBeGreaterThan(2 * (427 / 77));
  });

  it('with one message at a time has its latency, and the device reads that it causes', async () => {
    const one = await figuresOf({ verb: 'write', window: 1, messages: 100 });
    expect(one['latencyUs']! * one['mops']!).toBeCloseTo(1, 6);
    expect(one['latencyUs']).toBeGreaterThan(1);
    // Not inlined: one line of payload, and one of the WQE.
    expect(one['readLinesMops']! / one['mops']!).toBeGreaterThan(1);
    const inlined = await figuresOf({ verb: 'write', window: 1, messages: 400, inlineBytes: 64 });
    expect(inlined['readLinesMops']! / inlined['mops']!).toBeLessThan(0.2);
  });

  it('runs both ways, over random QPs and random places of a region', async () => {
    const plan = { verb: 'read', threads: 2, qpsPerThread: 3, order: 'random', window: 8 } as const;
    const alone = await figuresOf(plan);
    const both = await figuresOf({ ...plan, isBothWays: true });
    expect(both['mops']!).toBeGreaterThan(0.5 * alone['mops']!);
    const random = await figuresOf({ verb: 'write', sizeBytes: 64, regionBytes: 2 ** 20, signalEvery: 4 });
    expect(random['mops']).toBeCloseTo(427 / 77, 1);
  });

  it('of one process post one after the other where posts have a section: 2000 cycles at 2500 MHz', async () => {
    const plan = { verb: 'write', window: 1, threads: 4, messages: 100, inlineBytes: 64 } as const;
    const set = { 'host.cost.postSection': 2000 };
    const rateOf = async (more: Partial<StreamPlan>): Promise<number> =>
      (await figuresOf({ ...plan, ...more }, set))['mops']!;
    const [apart, together] = [await rateOf({}), await rateOf({ isOneProcess: true })];
    expect(together).toBeCloseTo(1.25, 1);
    expect(apart).toBeGreaterThan(2);
  });

  it('that waits for a whole window is slower than one that waits for each message', async () => {
    const plan = { verb: 'write', window: 4, threads: 1 } as const;
    const [each, all] = [await figuresOf(plan), await figuresOf({ ...plan, waits: 'all' })];
    expect(all['mops']!).toBeLessThan(each['mops']!);
  });

  it('has the requested number of cores, and is rejected if there are too few', async () => {
    const { workload } = stream({ profile }, { messages: 100, verb: 'write', threads: 2 });
    const asked = measure(workload as Exclude<typeof workload, { readonly kind: 'perf' }>, {
      profile,
      set: { 'host.core.count': 1 },
    });
    await expect(asked).rejects.toThrow(/at most host\.core\.count \(1\)/);
  });
});

describe('timers', () => {
  it('IBTA 9.7.5.2.8: a SEND waits min_rnr_timer, 0.32 ms for code 10, for a late receive', async () => {
    const { elapsedUs } = await measure(
      { kind: 'timer', waits: 'receive', rnrTimerCode: 10, timeoutCode: 14, retryCount: 7 },
      {},
    );
    expect(elapsedUs).toBeGreaterThan(320);
    expect(elapsedUs).toBeLessThan(345);
  });

  it('IBTA 9.7.6.1.3: a SEND without a receiver ends after 4.096 µs × 2^timeout for each attempt', async () => {
    const { elapsedUs } = await measure(
      { kind: 'timer', waits: 'responder', rnrTimerCode: 0, timeoutCode: 8, retryCount: 2 },
      {},
    );
    expect(elapsedUs! / (3 * 4.096 * 256)).toBeCloseTo(1, 1);
  });

  it('of a ConnectX-2 are 3.27 times the standard’s, and no timeout is shorter than 2^16 times 8.192 µs', async () => {
    const machine = { profile: 'connectx2-gen2' };
    const refused = await measure(
      { kind: 'timer', waits: 'receive', rnrTimerCode: 10, timeoutCode: 14, retryCount: 7 },
      machine,
    );
    expect(refused['elapsedUs']! / (3.2687 * 320)).toBeCloseTo(1, 1);
    const unanswered = await measure(
      { kind: 'timer', waits: 'responder', rnrTimerCode: 0, timeoutCode: 8, retryCount: 0 },
      machine,
    );
    expect(unanswered['elapsedUs']! / (8.192 * 65_536)).toBeCloseTo(1, 2);
  });
});

describe('ibv_rc_pingpong', () => {
  const roundTripUs = async (sizeBytes: number, isByEvents: boolean): Promise<number> =>
    (await measure({ kind: 'pingPong', sizeBytes, inlineBytes: 16, isByEvents }, {}))['roundTripUs']!;

  it('with events wakes both processes once a round trip at least: delivery, entry and exit of an interrupt', async () => {
    const { deliveryNs, entryCycles, exitCycles } = configurationOf({}).host.interrupt;
    const clockGhz = configurationOf({}).host.core.clockMHz / 1e3;
    const wakeUs = (deliveryNs + (entryCycles + exitCycles) / clockGhz) / 1e3;
    const [polledUs, byEventsUs] = [await roundTripUs(16, false), await roundTripUs(16, true)];
    expect(byEventsUs - polledUs).toBeGreaterThan(2 * wakeUs);
    expect(byEventsUs - polledUs).toBeLessThan(6 * wakeUs);
  });

  it('beyond the inlined bytes has the card read WQE and payload of either message from host memory', async () => {
    const { readLatencyPs } = configurationOf({}).pcie.rootComplex;
    expect((await roundTripUs(32, false)) - (await roundTripUs(16, false))).toBeGreaterThan(
      (2 * 2 * readLatencyPs) / 1e6,
    );
  });
});

describe('the slot', () => {
  const config = configurationOf({});
  const { link, rootComplex } = config.pcie;
  /** One way over the link and back, and the root complex. */
  const thereAndBackNs = (2 * link.latencyPs + rootComplex.readLatencyPs) / 1e3;
  const of = (
    access: 'read' | 'write' | 'both' | 'writeThenRead',
    sizeBytes: number,
    window: number,
    via: 'command' | 'engine' = 'engine',
  ) => slotFigures(config, { kind: 'slot', via, access, sizeBytes, window });

  it('answers an idle read of 64 bytes in the time of the link, the root complex, the bytes, and the device', () => {
    const { command, engine, line } = measuringDeviceNs;
    const byCommand = of('read', 64, 1, 'command')['latencyNs']!;
    expect(byCommand).toBeGreaterThan(thereAndBackNs + command);
    expect(byCommand).toBeLessThan(thereAndBackNs + command + 25);
    const byEngine = of('read', 64, 1)['latencyNs']!;
    expect(byEngine - byCommand).toBeGreaterThan(engine + 2 * line - 1);
    expect(byEngine - byCommand).toBeLessThan(engine + 2 * line + 1);
    expect(of('writeThenRead', 64, 1, 'command')['latencyNs']! - byCommand).toBeGreaterThan(command);
  });

  it('takes 70 ns longer for lines that the cache lacks, and 200 ns for a page that the IOTLB lacks', () => {
    const translating = configurationOf({ set: { 'pcie.iommu.isEnabled': true } });
    const at = (kibibytes: number, cached: 'nothing' | 'byHost' | 'byDevice', of = config): number => {
      const memory = { bytes: kibibytes * 1024, cacheBytes: 15 * 2 ** 20, cached };
      const single = { via: 'command', access: 'read', sizeBytes: 64, window: 1 } as const;
      return slotFigures(of, { kind: 'slot', ...single, memory })['latencyNs']!;
    };
    const heldNs = at(4, 'byDevice');
    expect(heldNs).toBe(of('read', 64, 1, 'command')['latencyNs']!);
    expect([at(1024, 'byHost'), at(1024, 'nothing'), at(8192, 'byDevice')].map((ns) => ns - heldNs)).toEqual([
      0, 70, 70,
    ]);
    // 16 pages fit the IOTLB of 64, 2048 do not.
    expect([at(64, 'byHost', translating), at(8192, 'byHost', translating)].map((ns) => ns - heldNs)).toEqual(
      [0, 200],
    );
  });

  it('reads while the commands of more contexts are on their way, up to 32 accesses in the DMA engine', () => {
    const { command, line } = measuringDeviceNs;
    const cold = { bytes: 2 ** 26, cacheBytes: 15 * 2 ** 20, cached: 'nothing' } as const;
    const reads = { kind: 'slot', via: 'engine', access: 'read', sizeBytes: 64 } as const;
    const gbps = (window: number): number => slotFigures(config, { ...reads, window, memory: cold })['gbps']!;
    const [alone, many] = [gbps(32), gbps(88)];
    // 32 times 512 bits in the time of an access, of which the command no longer counts; at most an access each two
    // lines.
    const accessNs = (32 * 512) / alone;
    expect(many / Math.min((32 * 512) / (accessNs - command), 512 / (2 * line))).toBeCloseTo(1, 1);
  });

  it('carries 256 of 288 bytes of a Gen3 x8 link, and less if the device is limited by small TLPs', () => {
    const bound = (64 * (128 / 130) * (369 / 370) * 256) / 288;
    for (const access of ['read', 'write'] as const) {
      expect(of(access, 2048, 32)['gbps']! / bound).toBeCloseTo(1, 1);
      expect(of(access, 2048, 32)['gbps']!).toBeLessThan(bound);
    }
    expect(of('both', 512, 32)['gbps']!).toBeLessThan(bound);
    const { line, writeAccess } = measuringDeviceNs;
    expect(of('write', 64, 32)['gbps']! / ((64 * 8) / (2 * line + writeAccess))).toBeCloseTo(1, 1);
  });
});

it('registers, queries the device, and adds up formats', async () => {
  const { registerUs, deregisterUs } = await measure({ kind: 'registration', pages: 4 }, {});
  expect(registerUs! / (30 + 1.2 * 4)).toBeCloseTo(1, 1);
  expect(deregisterUs! / 39.4).toBeCloseTo(1, 1);
  expect(await measure({ kind: 'device' }, {})).toEqual({ readsPerQp: 16 });
  // Control segment, remote address or address vector with its key, inline header; two segments of 8 bytes.
  expect(constantFigures(configurationOf({}))).toMatchObject({
    connectedWqeHeaderBytes: 16 + 16 + 4,
    datagramWqeHeaderBytes: 16 + 48 + 4,
    receiveWqeBytes: 16,
    requestOverheadBytes: 16 + 4 + 4,
  });
});
