/**
 * The latency tests, as perftest runs them: one message in flight, ping-pong for WRITE and SEND.
 *
 *     WRITE   client writes, server spins on the last byte of its buffer and writes back; half a round trip
 *     SEND    the same with receives; half a round trip
 *     READ, atomic   client alone; a whole round trip
 */
import type { ProgramContext } from '../../machine/index.ts';
import { openPerfLink, type PerfLink } from './perf-link.ts';
import type { PerfArgs } from './perf-plan.ts';
import type { LatencyResult } from './perf-result.ts';
import { announceEnd, startTogether } from './perf-start.ts';
import { barrier } from './rc-endpoint.ts';

/** Greatest number of sends per completion in a SEND ping-pong; a full queue requests one earlier, to free its slots. */
const sendSignalIntervalMax = 16;

export async function latencyClient(program: ProgramContext<PerfArgs>): Promise<LatencyResult> {
  const link = await openPerfLink(program, true);
  await warmUp(link, true);
  const startsPs = await runPingPong(link, true, link.args.iterations);
  await announceEnd(program);
  await barrier(program, 'done');
  const { verb } = link.args;
  const result = resultOf(startsPs, verb === 'write' || verb === 'send' ? 2 : 1);
  return { ...result, registrationPs: link.registrationPs };
}

export async function latencyServer(program: ProgramContext<PerfArgs>): Promise<undefined> {
  const link = await openPerfLink(program, false);
  await warmUp(link, false);
  await runPingPong(link, false, link.args.iterations);
  await announceEnd(program);
  await barrier(program, 'done');
}

/** Unmeasured messages first, if requested; then both sides begin together. */
async function warmUp(link: PerfLink, isClient: boolean): Promise<void> {
  const { program, args } = link;
  if (args.warmupIterations === undefined) return;
  await runPingPong(link, isClient, args.warmupIterations);
  await startTogether(program, isClient);
  // The remains of the last message would look like the next one.
  const { bytes } = program.memory.process;
  bytes[program.memory.process.physicalAddress(link.receiveAddress + args.sizeBytes - 1)] = 0;
}

/** @returns the program's own time at each post and at the end */
async function runPingPong(link: PerfLink, isClient: boolean, iterations: number): Promise<Float64Array> {
  const { verb } = link.args;
  if (verb === 'write') return writePingPong(link, isClient, iterations);
  if (verb === 'send') return sendPingPong(link, isClient, iterations);
  return isClient ? readInTurn(link, iterations) : new Float64Array(0);
}

async function writePingPong(link: PerfLink, isClient: boolean, iterations: number): Promise<Float64Array> {
  const { program, args, sends } = link;
  const { cpu, memory, verbs } = program;
  const { bytes } = memory.process;
  const startsPs = new Float64Array(iterations + 1);
  const watched = memory.process.physicalAddress(link.receiveAddress + args.sizeBytes - 1);
  const marked = memory.process.physicalAddress(link.sendAddress + args.sizeBytes - 1);
  let received = 0;
  const hasArrived = (): boolean => bytes[watched] === (received & 0xff);
  for (let sent = 0; sent < iterations || received < iterations; ) {
    if (received < iterations && !(isClient && sent === 0)) {
      received++;
      await cpu.settle();
      await cpu.spin(watched, verbs.costs.pollEmpty, hasArrived);
    }
    startsPs[sent] = cpu.localPs;
    if (sent === iterations) break;
    bytes[marked] = ++sent & 0xff;
    program.progress(sent, iterations);
    link.streams[0]!.post(true);
    await sends.wait();
  }
  return startsPs;
}

async function sendPingPong(link: PerfLink, isClient: boolean, iterations: number): Promise<Float64Array> {
  const { program, sends, args } = link;
  const interval = Math.min(sendSignalIntervalMax, args.txDepth);
  const startsPs = new Float64Array(iterations + 1);
  for (let count = 0; count < iterations; count++) {
    program.progress(count, iterations);
    if (isClient) startsPs[count] = program.cpu.localPs;
    else await takeOne(link);
    const isSignalled = count % interval === interval - 1 || count === iterations - 1;
    link.streams[0]!.post(isSignalled);
    if (isSignalled && !isClient) await sends.wait();
    if (isClient) await takeOne(link);
    if (isSignalled && isClient) await sends.wait();
  }
  startsPs[iterations] = program.cpu.localPs;
  return startsPs;
}

/** Receives the next message and reposts its receive. */
async function takeOne({ receives, repost }: PerfLink): Promise<void> {
  const count = await receives.wait();
  for (let at = 0; at < count; at++) repost(receives.taken[at]!.qpNum);
}

async function readInTurn(link: PerfLink, iterations: number): Promise<Float64Array> {
  const { program, sends } = link;
  const startsPs = new Float64Array(iterations + 1);
  for (let count = 0; count < iterations; count++) {
    program.progress(count, iterations);
    startsPs[count] = program.cpu.localPs;
    link.streams[0]!.post(true);
    await sends.wait();
  }
  startsPs[iterations] = program.cpu.localPs;
  return startsPs;
}

/** perftest's figures of the times between posts. */
export function resultOf(startsPs: Float64Array, divisor: number): LatencyResult {
  const times = startsPs.slice(1).map((ps, index) => (ps - startsPs[index]!) / divisor);
  const { iterations, ...figures } = distributionOf(times);
  return { iterations, firstPs: times[0]!, ...figures };
}

/** The figures of a latency test from any times; percentiles by nearest rank. */
export function distributionOf(times: Float64Array): Omit<LatencyResult, 'firstPs' | 'registrationPs'> {
  const sorted = times.toSorted();
  const iterations = sorted.length;
  const average = sorted.reduce((sum, ps) => sum + ps, 0) / iterations;
  const variance = sorted.reduce((sum, ps) => sum + (ps - average) ** 2, 0) / iterations;
  const rank = (share: number): number => rankOf(sorted, share);
  return {
    iterations,
    minPs: sorted[0]!,
    maxPs: sorted[iterations - 1]!,
    typicalPs: rank(0.5),
    averagePs: average,
    deviationPs: Math.sqrt(variance),
    p99Ps: rank(0.99),
    p999Ps: rank(0.999),
  };
}

/** From any times, by nearest rank. */
export const percentileOf = (times: Float64Array, share: number): number => rankOf(times.toSorted(), share);

const rankOf = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;
