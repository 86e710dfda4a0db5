/**
 * The bandwidth tests, as perftest runs them: as many messages in flight as the send queues hold, one completion for
 * every `cqModeration` of a QP; the client measures from its first post to its last completion.
 */
import type { IbvQp } from '../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../program.ts';
import { openPerfLink, type PerfLink, type PerfStream, postReceive } from './perf-link.ts';
import type { BandwidthResult } from './perf-plan.ts';
import { barrier } from './rc-endpoint.ts';

export async function bandwidthClient(program: ProgramContext): Promise<JsonValue> {
  const link = await openPerfLink(program);
  const result = await sendAll(link);
  await barrier(program, 'done');
  return result as unknown as JsonValue;
}

export async function bandwidthServer(program: ProgramContext): Promise<undefined> {
  const link = await openPerfLink(program);
  if (link.args.verb === 'send') await receiveAll(link);
  await barrier(program, 'done');
}

async function sendAll(link: PerfLink): Promise<BandwidthResult> {
  const { program, args, streams, sends } = link;
  const { cpu } = program;
  const { iterations, qpCount } = args;
  const moderation = Math.max(1, Math.min(args.cqModeration, args.txDepth, iterations));
  const streamOf = new Map(streams.map((stream) => [stream.qp.qpNum, stream]));
  const postedPs = new Float64Array(iterations);
  const doneCounts: number[] = [];
  const donePs: number[] = [];
  const total = iterations * qpCount;
  for (let done = 0; done < total; ) {
    fill(streams[0]!, iterations, args.txDepth, moderation, postedPs);
    for (let qp = 1; qp < qpCount; qp++) fill(streams[qp]!, iterations, args.txDepth, moderation);
    const count = sends.checked(await sends.arrival());
    for (let at = 0; at < count; at++) {
      const stream = streamOf.get(sends.taken[at]!.qpNum)!;
      const finished = Math.min(moderation, iterations - stream.completed);
      stream.completed += finished;
      done += finished;
    }
    doneCounts.push(done);
    donePs.push(cpu.localPs);
  }
  return resultOf(args.sizeBytes, total, postedPs, doneCounts, donePs, qpCount, 4 * args.txDepth);
}

/** Posts as many messages of a stream as it may have in flight, and notes the instant of each. */
function fill(
  stream: PerfStream,
  iterations: number,
  depth: number,
  moderation: number,
  postedPs?: Float64Array,
): void {
  const end = Math.min(iterations, stream.completed + depth);
  for (let number = stream.posted; number < end; number++) {
    if (postedPs !== undefined) postedPs[number] = stream.qp.cpu.localPs;
    stream.post(number % moderation === moderation - 1 || number === iterations - 1);
  }
}

async function receiveAll({ args, qps, receives, receiveWr }: PerfLink): Promise<void> {
  const byNumber = new Map<number, IbvQp>(qps.map((qp) => [qp.qpNum, qp]));
  const total = args.iterations * args.qpCount;
  for (let done = 0; done < total; ) {
    const count = await receives.wait();
    for (let at = 0; at < count; at++) postReceive(byNumber.get(receives.taken[at]!.qpNum)!, receiveWr);
    done += count;
  }
}

/** The peak is the best rate from a post to a completion within some queue depths of it: perftest looks at all pairs. */
function resultOf(
  sizeBytes: number,
  total: number,
  postedPs: Float64Array,
  doneCounts: readonly number[],
  donePs: readonly number[],
  qpCount: number,
  peakWindow: number,
): BandwidthResult {
  const durationPs = donePs[donePs.length - 1]! - postedPs[0]!;
  const perSecond = (messages: number, ps: number): number => (messages / ps) * 1e12;
  // The best ratio of messages to time is found first: as many steps as there are messages, and each without a call.
  let best = 0;
  for (let index = 0; index < doneCounts.length; index++) {
    const done = doneCounts[index]!;
    const atPs = donePs[index]!;
    const first = Math.max(0, Math.floor(done / qpCount) - peakWindow);
    for (let from = first; from * qpCount < done; from++) {
      const ps = atPs - postedPs[from]!;
      const ratio = (done - from * qpCount) / ps;
      if (ps > 0 && ratio > best) best = ratio;
    }
  }
  const peak = Math.max(perSecond(total, durationPs), best * 1e12);
  const messagesPerSecond = perSecond(total, durationPs);
  return {
    iterations: total / qpCount,
    durationPs,
    peakBytesPerSecond: peak * sizeBytes,
    averageBytesPerSecond: messagesPerSecond * sizeBytes,
    messagesPerSecond,
  };
}
