/** A guest's slot at one end of the cable, a simulated host with a program at the other; our own driver represents the guest's. */
import { describe, expect, it, vi } from 'vitest';
import { outsideOfMicrotasks } from '../../base/index.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import type { AnalysisOptions } from '../../machine/analysis/index.ts';
import type { ProgramFunction } from '../../machine/index.ts';
import {
  allocPd,
  getDeviceList,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_PORT_ACTIVE,
  IBV_PORT_DOWN,
  openDevice,
  queryPort,
  regMr,
} from '../../userlib/index.ts';
import { renderServeReport } from './render-serve-report.ts';
import { buildServeReport, type ServeReport } from './serve-report.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { reportPartsOf } from './testing/report-parts.ts';
import { CONFIG, SlotBench } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const msPs = 1e9;

const benchWith = (peer: ProgramFunction, analysis?: AnalysisOptions): Promise<SlotBench> =>
  outsideOfMicrotasks(() => new SlotBench({ peer, ...(analysis === undefined ? {} : { analysis }) }));

const reportOf = (bench: SlotBench): ServeReport => buildServeReport(reportPartsOf(bench));

/** Lets wall time pass until the program has ended, or for this long. */
async function passUntilEnded(bench: SlotBench, slot: DrivenSlot, limitMs = 1000): Promise<void> {
  const endMs = bench.wallMs + limitMs;
  while (!bench.emulation.peer!.hasEnded && bench.wallMs < endMs) await slot.turnOutside(endMs);
}

/** Waits until the port is active. @returns its LID */
const untilActive: ProgramFunction = async ({ cpu, verbs, log }) => {
  const context = await openDevice(getDeviceList(verbs)[0]!);
  for (;;) {
    const { state, lid } = await queryPort(context, 1);
    if (state === IBV_PORT_ACTIVE) {
      log(`active at LID ${lid}`);
      return lid;
    }
    await cpu.sleep(msPs);
  }
};

describe('a simulated host next to a guest', () => {
  it('has an active port when both drivers have opened theirs, and balances', async () => {
    const bench = await benchWith(untilActive);
    const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
    const driver = new Driver(slot.platform, defaultsOf(driverParameters));
    await driver.probe(slot.cpu);
    await passUntilEnded(bench, slot);
    expect(bench.emulation.peer!.state()).toMatchObject({ program: 'peer', outcome: 'ended', result: 2 });
    const report = reportOf(bench);
    expect(report.checks).toMatchObject({ balanced: true, cpu: { holds: true } });
    expect(report.peer).toMatchObject({ program: { result: 2 }, log: [{ text: 'active at LID 2' }] });
    expect(report.peer!.node.hca.commands['INIT_PORT']).toBe(1);
    expect(report.wire.map(({ from, to }) => [from, to])).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(renderServeReport(report)).toMatch(/Program peer of the peer ended after .* of simulated time: 2/);
    expect(renderServeReport(report)).toContain("guest's pace, which is host time");
    await driver.remove(slot.cpu);
  });

  it('counts the packets of a capture at each end, and those that found it full', async () => {
    const bench = await benchWith(untilActive, {
      capture: { ends: [{ node: 0 }, { node: 1 }], sizeBytes: 700 },
    });
    const none = { kept: 0, dropped: 0 };
    expect(bench.emulation.captureDrops()).toEqual([
      { process: 'hca0', ...none },
      { process: 'hca1', ...none },
    ]);
  });

  it('exchanges values with the outside, with or without the wall clock', async () => {
    const bench = await benchWith(async ({ exchange }) => {
      const question = await exchange.take('question');
      await exchange.put('answer', { to: question });
      return await exchange.take('question');
    });
    const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
    await outsideOfMicrotasks(() => bench.emulation.putValue('question', 6));
    while (bench.values.length === 0) await slot.turnOutside(bench.wallMs + 1);
    expect(bench.values).toEqual([['answer', { to: 6 }]]);
    expect(bench.emulation.peer!.state().waitsIn).toContain("exchange.take for 'question'");
    await outsideOfMicrotasks(() => bench.emulation.putValue('question', 'last'));
    await passUntilEnded(bench, slot);
    expect(bench.emulation.peer!.state()).toMatchObject({ outcome: 'ended', result: 'last' });
  });

  it('reports an error of its program, releases its resources, and continues', async () => {
    const bench = await benchWith(async ({ verbs, memory }) => {
      const context = await openDevice(getDeviceList(verbs)[0]!);
      const pd = await allocPd(context);
      await regMr(pd, memory.map(4096), 4096, IBV_ACCESS_LOCAL_WRITE);
      throw new RangeError('of its own');
    });
    const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
    await passUntilEnded(bench, slot);
    await slot.turnOutside(bench.wallMs + 5);
    const report = reportOf(bench);
    expect(report.peer!.program).toMatchObject({ outcome: 'failed', error: 'RangeError: of its own' });
    expect(renderServeReport(report)).toMatch(
      /Program peer of the peer FAILED.*RangeError: of its own\n +at /s,
    );
    expect(report.peer!.node.hca.commands).toMatchObject({ SW2HW_MPT: 1, HW2SW_MPT: 1 });
    expect([report.checks.balanced, report.defects, bench.emulation.hasFailed]).toEqual([true, [], false]);
  });

  it('reports a program that awaits something not simulated: its host stops, and nothing is a defect', async () => {
    const bench = await benchWith(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
    });
    const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
    await passUntilEnded(bench, slot);
    const { emulation } = bench;
    expect([emulation.hasFailed, emulation.hasPeerFailed, emulation.defects]).toEqual([true, true, []]);
    const { outcome, error } = emulation.peer!.state();
    expect([outcome, error]).toEqual([
      'failed',
      expect.stringMatching(
        /^program peer failed at \d+ ps: RunError: awaits something that is not simulated, which/,
      ),
    ]);
    // The slot answers all ones.
    expect(await outsideOfMicrotasks(() => bench.read(CONFIG, 0))).toBe(0xffff_ffff);
  });

  it('stops a program that polls indefinitely when the guest has been absent for a while, and reports its action', async () => {
    const bench = await benchWith(async ({ cpu }) => {
      for (;;) await cpu.sleep(msPs);
    });
    const { emulation } = bench;
    const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
    await slot.turnOutside(bench.wallMs + 20);
    await outsideOfMicrotasks(() => bench.slot().clientDisconnected());
    const work = (): Promise<number> => outsideOfMicrotasks(() => emulation.work(1));
    expect(await work()).toBeLessThan(Number.POSITIVE_INFINITY);
    bench.wallMs += emulation.options.serving.peerGraceMs + 1;
    expect(await work()).toBe(Number.POSITIVE_INFINITY);
    expect(reportOf(bench).peer!.program).toMatchObject({
      outcome: 'running',
      waitsIn: "program 'peer' on node 1 waits in a signal",
    });
  });

  it('has its port go down when the guest disconnects, and up with the next', async () => {
    const bench = await benchWith(async ({ cpu, verbs }) => {
      const context = await openDevice(getDeviceList(verbs)[0]!);
      const changes: number[] = [];
      while (changes.length < 3) {
        const { state } = await queryPort(context, 1);
        if (state !== changes.at(-1)) changes.push(state);
        await cpu.sleep(msPs);
      }
      return changes;
    });
    for (let life = 0; life < 2; life++) {
      const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
      const driver = new Driver(slot.platform, defaultsOf(driverParameters));
      await driver.probe(slot.cpu);
      for (let turn = 0; turn < 5; turn++) await slot.turnOutside(bench.wallMs + 2);
      await passUntilEnded(bench, slot, 50);
      await outsideOfMicrotasks(() => bench.slot().clientDisconnected());
      for (let turn = 0; turn < 5; turn++) await slot.turnOutside(bench.wallMs + 2);
    }
    const { result } = bench.emulation.peer!.state();
    expect(result).toEqual([IBV_PORT_ACTIVE, IBV_PORT_DOWN, IBV_PORT_ACTIVE]);
    expect(reportOf(bench).checks).toMatchObject({ balanced: true });
  });
});
