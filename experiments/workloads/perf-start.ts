/**
 * How the programs of a test begin to measure at the same instant, if there are several, after a warm-up, or under an
 * offered load:
 *
 *     client i ── ready ──► server i ── ready ──► client 0 ── instant × threads ──► server i ── instant ──► client i
 *
 * Then all sleep until that instant. Nothing is in flight before it, so that counters can be read there. In other
 * tests, a single client begins when it is notified that the server is ready.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { PerfArgs } from './perf-plan.ts';

/** Name of a value that the programs of one thread exchange. */
export const labelOf = (name: string, { thread = 0 }: PerfArgs): string =>
  thread === 0 ? name : `${name}.${thread}`;

/** Time from the agreement to the instant; the counters are read at this interval. */
export const startLeadPs = 2 * psPerMs;

/** Lines of the machine's log: client 0 adds one when the instant is agreed, and each program one when its part has ended. */
const announcement = 'measures from ';
const endAnnouncement = 'measured until ';

export const startsTogether = ({ threads = 1, isBidirectional, load, ...args }: PerfArgs): boolean =>
  threads > 1 || isBidirectional === true || load !== undefined || (args.warmupIterations ?? 0) > 0;

/** Waits for the instant at which all programs of the test begin. */
export async function startTogether(program: ProgramContext<PerfArgs>, isClient: boolean): Promise<void> {
  const args = program.args;
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
  return await exchange.take<number>(labelOf('perf.go', args));
}

async function serverStart({ exchange }: ProgramContext, args: PerfArgs): Promise<number> {
  await exchange.take(labelOf('perf.warm', args));
  await exchange.put('perf.up', true);
  const startPs = await exchange.take<number>('perf.start');
  await exchange.put(labelOf('perf.go', args), startPs);
  return startPs;
}

/** Announces the start of the measurement in the machine's log. */
export const announceStart = (program: ProgramContext, startPs: number): void =>
  program.log(`${announcement}${startPs}`);

/** The start that a line of the machine's log announces, if any. */
export const announcedStart = (line: string): number | undefined =>
  line.startsWith(announcement) ? Number(line.slice(announcement.length)) : undefined;

/**
 * If programs do not agree on an instant, the client begins as soon as it is notified that the server is ready, or
 * later: nothing of the test is in flight before. The server announces that instant, which takes no time.
 */
export async function announceReady(program: ProgramContext, args: PerfArgs): Promise<void> {
  if (startsTogether(args)) return;
  await program.cpu.settle();
  announceStart(program, Number(program.cpu.instantPs) + program.exchange.latencyPs);
}

/**
 * Marks the end of a program's part. Its next action, including its exit, begins at an instant that is announced ahead,
 * so that counters can be read there: after an exit, the system frees the process's resources by commands to the
 * device.
 */
export async function announceEnd({ cpu, exchange, log }: ProgramContext): Promise<void> {
  await cpu.settle();
  log(`${endAnnouncement}${Number(cpu.instantPs) + exchange.latencyPs}`);
  await cpu.sleep(exchange.latencyPs);
}

/** The end that a line of the machine's log announces, if any. */
export const announcedEnd = (line: string): number | undefined =>
  line.startsWith(endAnnouncement) ? Number(line.slice(endAnnouncement.length)) : undefined;
