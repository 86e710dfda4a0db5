/** Runs whose reports must have the same bytes in Node.js and in a page: they import only the model, and nothing of Node.js. */
import type { TextSink } from '../../base/runtime.ts';
import { type CompareArgs, type ComparePath, machineOf } from '../../experiments/workloads/compare-plan.ts';
import {
  type CompareBytes,
  comparedSide,
  fillRandomly,
} from '../../experiments/workloads/compare-transfer.ts';
import { bandwidthClient, bandwidthServer } from '../../experiments/workloads/perf-bandwidth.ts';
import type { PerfArgs } from '../../experiments/workloads/perf-plan.ts';
import { traceDefaults } from '../../machine/analysis/options.ts';
import { Machine, type MachineOptions } from '../../machine/machine.ts';
import type { ProgramContext } from '../../machine/program.ts';

const writes: PerfArgs = {
  verb: 'write',
  isLatency: false,
  sizeBytes: 64,
  iterations: 400,
  qpCount: 1,
  txDepth: 16,
  rxDepth: 64,
  inlineBytes: 0,
  usesEvents: false,
  mtuBytes: 0,
  cqModeration: 4,
};

async function run(args: PerfArgs, options: MachineOptions): Promise<string> {
  await using machine = await Machine.create(options);
  await machine.load({ node: 0, name: 'client', run: bandwidthClient, args });
  await machine.load({ node: 1, name: 'server', run: bandwidthServer, args });
  await machine.run();
  return JSON.stringify({ results: await machine.results(), report: await machine.report() }, null, 1);
}

/** 400 WRITEs of 64 bytes: results and report. */
const plainRun = (): Promise<string> => run(writes, {});

/** READs of 5,000 bytes with packet loss, with the linter and a bus log: the log is in the text. */
async function watchedRun(): Promise<string> {
  const lines: string[] = [];
  const sink: TextSink = { write: (text) => lines.push(text), close: () => lines.push('end of the log\n') };
  const told = await run(
    { ...writes, verb: 'read', sizeBytes: 5000, iterations: 20 },
    {
      seed: 5,
      faults: [{ packet: 'lost', nth: 40 }],
      analysis: { lint: true, trace: { ...traceDefaults, sinkOf: () => sink } },
    },
  );
  return `${told}\n${lines.join('')}`;
}

/** 4 KiB by each variant of the traditional path: both sides' figures of the transfer and the report. */
async function traditionalRun(path: ComparePath): Promise<string> {
  await using machine = await Machine.create({ set: machineOf(path) });
  const args: CompareArgs = { path, sizeBytes: 4096, totalBytes: 4096, latencyRounds: 1, file: null };
  const bytes: CompareBytes = { fill: fillRandomly, digest: (pieces) => pieces.map(String).join() };
  for (const node of [0, 1] as const) {
    const run = async (program: ProgramContext<CompareArgs>): Promise<object> =>
      await comparedSide(program, node, bytes);
    await machine.load({ node, name: `side${node}`, run, args });
  }
  await machine.run();
  return JSON.stringify({ results: await machine.results(), report: await machine.report() }, null, 1);
}

/** The text of each run, by its name. */
export async function allRuns(): Promise<Record<string, string>> {
  return {
    plain: await plainRun(),
    watched: await watchedRun(),
    sockets: await traditionalRun('sockets'),
    dma: await traditionalRun('dma'),
    pio: await traditionalRun('pio'),
  };
}
