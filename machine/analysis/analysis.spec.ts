import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type ConnectionEnd, TraceLog, traceCategories } from '../../analyser/index.ts';
import { programUrl } from '../../experiments/runs/program-url.ts';
import { Machine } from '../machine.ts';
import type { Partition } from '../partition/placement.ts';
import { type AnalysisOptions, traceDefaults } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-analysis-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Ten messages between two hosts, then both drivers removed. */
async function run(partition: Partition, analysis: AnalysisOptions | undefined, verb: string) {
  const options = analysis === undefined ? {} : { analysis };
  const machine = await Machine.create({ partition, set: { 'host.memory.sizeMib': 64 }, ...options });
  const args = {
    verb,
    isLatency: true,
    sizeBytes: verb === 'atomic' ? 8 : 300,
    iterations: 10,
    qpCount: 1,
    txDepth: 16,
    rxDepth: 16,
    inlineBytes: 0,
    usesEvents: verb === 'send',
    cqModeration: 1,
    mtuBytes: 0,
  };
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const program = { url: programUrl('perf-latency'), exportName: `latency${role}` };
    await machine.load({ node, name: role, run: program, args });
  }
  await machine.run();
  await machine.removeDrivers();
  const outcome = {
    report: await machine.report(),
    analyses: await machine.analyses(),
    connections: await machine.connections(),
  };
  await machine.close();
  return outcome;
}

const traced = (name: string): AnalysisOptions => ({
  lint: true,
  trace: { ...traceDefaults, categories: traceCategories, file: join(folder, `${name}.log`) },
});

describe('an analysed machine', () => {
  it.each(['send', 'write', 'read', 'atomic'])('breaks no rule: %s', async (verb) => {
    const { analyses } = await run('single', { lint: true }, verb);
    expect(analyses.map(({ node }) => node)).toEqual(['host0', 'host1']);
    expect(analyses.flatMap(({ findings }) => findings)).toEqual([]);
  });

  it.each(['single', 'per-node'] as const)(
    'says who was connected to whom, in partition %s',
    async (partition) => {
      const { connections } = await run(partition, { lint: true }, 'read');
      expect(connections.map(({ node }) => node)).toEqual([0, 1]);
      const [[client], [server]] = connections.map(({ ends }) => ends) as [ConnectionEnd[], ConnectionEnd[]];
      expect([client!.remoteQpn, server!.remoteQpn]).toEqual([server!.qpn, client!.qpn]);
      expect([client!.remoteLid, server!.remoteLid]).toEqual([2, 1]);
      // Both drivers have been removed.
      for (const { fromPs, untilPs } of [client!, server!]) expect(untilPs).toBeGreaterThan(Number(fromPs));
    },
  );

  it('behaves like one that is not observed', async () => {
    const alone = await run('single', undefined, 'send');
    const watched = await run('single', traced('watched'), 'send');
    expect(JSON.stringify(watched.report)).toBe(JSON.stringify(alone.report));
    expect(alone.analyses).toEqual([]);
    expect(watched.analyses[0]!.eventCount).toBeGreaterThan(1000);
  });

  it('has the same trace in every partition, byte for byte', async () => {
    await run('single', traced('single'), 'send');
    await run('per-device', traced('parts'), 'send');
    for (const host of ['host0', 'host1'])
      expect(readFileSync(join(folder, `parts.${host}.log`), 'utf8')).toBe(
        readFileSync(join(folder, `single.${host}.log`), 'utf8'),
      );
  });

  it('writes the same trace to the caller’s sink as to a file', async () => {
    const texts: Record<string, TraceLog> = {};
    const sinkOf = (host: string): TraceLog => {
      texts[host] = new TraceLog();
      return texts[host];
    };
    const { analyses } = await run('single', { trace: { ...traced('').trace!, sinkOf } }, 'send');
    expect(analyses.map(({ file }) => file)).toEqual([undefined, undefined]);
    await run('single', traced('file'), 'send');
    for (const host of ['host0', 'host1'])
      expect(texts[host]!.text).toBe(readFileSync(join(folder, `file.${host}.log`), 'utf8'));
  });

  it('rejects a sink if its hosts run in separate threads', async () => {
    const analysis = { trace: { ...traced('').trace!, sinkOf: () => new TraceLog() } };
    await expect(run('per-node', analysis, 'send')).rejects.toThrow('analysis.trace.sinkOf is');
  });

  it('shows a message from its doorbell to its interrupt', async () => {
    await run('single', traced('path'), 'send');
    const lines = readFileSync(join(folder, 'path.host0.log'), 'utf8').split('\n');
    const follows = (pattern: RegExp, from: number): number => {
      const at = lines.findIndex((line, index) => index > from && pattern.test(line));
      expect(at, `${pattern}`).toBeGreaterThan(from);
      return at;
    };
    const doorbell = follows(/doorbells +send doorbell QP/, 0);
    const fetch = follows(/dma +WQE of QP 0x\w+, 0x0: SEND/, doorbell);
    const completion = follows(/events +CQE 0x0 of CQ 0x\w+: send SEND/, fetch);
    const event = follows(/events +EQE 0x\w+ of EQ 0x\w+: COMP/, completion);
    follows(/interrupts +MSI-X vector \d+ \(EQ 0x\w+\)/, event);
  });
});
