/** Counters of a machine between two instants that its programs announce in its log (workloads/perf-start.ts). */
import { nsToPs } from '../../base/index.ts';
import { figuresSince, type Machine, type Report, type ReportFigures } from '../../machine/index.ts';
import { announcedEnd, announcedStart } from '../workloads/index.ts';
import { runMachine } from './run.ts';

/**
 * Runs the machine to the end of a measurement.
 * @param endCount programs that announce the end of their part; the last one counts
 * @returns the counters from start to end; undefined if a program ended without an announcement
 */
export async function announcedFigures(
  machine: Machine,
  endCount: number,
): Promise<ReportFigures | undefined> {
  const before = await reportAt(machine, announcedStart, 1);
  const after = await reportAt(machine, announcedEnd, endCount);
  return before === undefined || after === undefined ? undefined : figuresSince(before, after);
}

/**
 * Runs to the last of several instants that programs announce.
 * @returns the report there
 */
async function reportAt(
  machine: Machine,
  announced: (text: string) => number | undefined,
  lineCount: number,
): Promise<Report | undefined> {
  // An instant is announced ahead by at least the exchange's latency.
  const marginPs = nsToPs(machine.config.machine.exchangeLatencyNs) / 2;
  const isAwaited = (text: string): boolean => announced(text) !== undefined;
  await runMachine(machine, () => machine.runUntilLogged(isAwaited, marginPs, lineCount));
  const instants = (await machine.log()).flatMap(({ text }) => announced(text) ?? []);
  if (instants.length < lineCount) return;
  await machine.runTo(Math.max(...instants));
  return machine.report();
}
