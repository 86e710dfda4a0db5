/**
 * How the programs of a test begin to measure at one instant, where there are several, where messages have gone before, or under
 * an offered load:
 *
 *     client i ── ready ──► server i ── ready ──► client 0 ── instant × threads ──► server i ── instant ──► client i
 *
 * Then all sleep until that instant. Before it nothing is under way, so that counters can be read there.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../machine/index.ts';
import { labelOf } from './perf-link.ts';
import type { PerfArgs } from './perf-plan.ts';

/** From the agreement to the instant: the counters are read this often. */
export const startLeadPs = 2 * psPerMs;

/** What client 0 adds to the machine's log once the instant is agreed. */
const announcement = 'measures from ';

export const startsTogether = ({ threads = 1, isBidirectional, load, ...args }: PerfArgs): boolean =>
  threads > 1 || isBidirectional === true || load !== undefined || (args.warmupIterations ?? 0) > 0;

/** Waits for the instant at which all programs of the test begin. */
export async function startTogether(program: ProgramContext, isClient: boolean): Promise<void> {
  const args = program.args as unknown as PerfArgs;
  const startPs = isClient ? await clientStart(program, args) : await serverStart(program, args);
  if (args.load !== undefined) program.meter.beginAt(startPs);
  await program.cpu.sleep(startPs - Number(program.cpu.instantPs));
}

async function clientStart(program: ProgramContext, args: PerfArgs): Promise<number> {
  const { exchange, cpu } = program;
  const { threads = 1, thread = 0 } = args;
  await exchange.put(labelOf('perf.warm', args), true);
  if (thread === 0) {
    for (let count = 0; count < threads; count++) await exchange.take('perf.up');
    await cpu.settle();
    const startPs = Number(cpu.instantPs) + startLeadPs;
    announceStart(program, startPs);
    for (let count = 0; count < threads; count++) await exchange.put('perf.start', startPs);
  }
  return (await exchange.take(labelOf('perf.go', args))) as number;
}

async function serverStart({ exchange }: ProgramContext, args: PerfArgs): Promise<number> {
  await exchange.take(labelOf('perf.warm', args));
  await exchange.put('perf.up', true);
  const startPs = (await exchange.take('perf.start')) as number;
  await exchange.put(labelOf('perf.go', args), startPs);
  return startPs;
}

/** Adds to the machine's log from when on counts. */
export const announceStart = (program: ProgramContext, startPs: number): void =>
  program.log(`${announcement}${startPs}`);

/** The instant that a line of the machine's log announces, if it does. */
export const announcedStart = (line: string): number | undefined =>
  line.startsWith(announcement) ? Number(line.slice(announcement.length)) : undefined;
