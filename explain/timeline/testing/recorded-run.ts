/** Runs a randomly drawn test, with or without a timeline of everything that the judges need. */
import type { ShortRun } from '../../../experiments/bottleneck/testing/short-run.ts';
import { orderOf } from '../../../experiments/bottleneck/testing/turning.ts';
import { loadPrograms } from '../../../experiments/runs/perf-run.ts';
import { runMachine } from '../../../experiments/runs/run.ts';
import { announcedEnd, announcedStart, type PerfArgs } from '../../../experiments/workloads/index.ts';
import { parsedFault } from '../../../machine/faults/index.ts';
import { Machine, type MachineOptions, type Report } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import type { Timeline, TimelineCategory } from '../../../machine/timeline/index.ts';

interface PlayedRun {
  readonly args: PerfArgs;
  readonly config: MachineConfig;
  readonly report: Report;
}

export interface RecordedRun extends PlayedRun {
  readonly timeline: Timeline;
  /** When the messages after a warm-up begin; undefined without a warm-up. */
  readonly startPs: number | undefined;
  /** End of the counted time. */
  readonly endPs: number;
}

/** More records than any drawn run has. */
const recordsMax = 4_000_000;

/** The machine of a run, and its workload. */
export function machineOf(run: ShortRun): { readonly machine: MachineOptions; readonly args: PerfArgs } {
  const { machine, args } = orderOf(run);
  return { machine: { ...machine, faults: run.faults.map(parsedFault) }, args };
}

export async function playedRun(run: ShortRun): Promise<PlayedRun> {
  const { machine: options, args } = machineOf(run);
  await using machine = await playedMachine(options, args);
  return { args, config: machine.config, report: await machine.report() };
}

export async function recordedRun(
  run: ShortRun,
  categories: readonly TimelineCategory[],
): Promise<RecordedRun> {
  const { machine: options, args } = machineOf(run);
  const analysis = { timeline: { categories, recordsMax } };
  await using machine = await playedMachine({ ...options, analysis }, args);
  const timeline = await machine.timeline();
  const texts = (await machine.log()).map(({ text }) => text);
  const startPs = texts.map(announcedStart).find((instant) => instant !== undefined);
  const endPs = Math.max(...texts.flatMap((text) => announcedEnd(text) ?? []));
  return { args, config: machine.config, report: await machine.report(), timeline, startPs, endPs };
}

async function playedMachine(options: MachineOptions, args: PerfArgs): Promise<Machine> {
  const machine = await Machine.create(options);
  await loadPrograms(machine, args);
  await runMachine(machine);
  return machine;
}
