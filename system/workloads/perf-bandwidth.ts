/**
 * The bandwidth tests, as perftest runs them: as many messages in flight as the send queues hold, one completion for
 * every `cqModeration` of a QP; the client measures from its first post to its last completion.
 */
import type { IbvQp, IbvWc } from '../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../machine/program.ts';
import { openPerfLink, type PerfLink, type PerfStream, postReceive } from './perf-link.ts';
import type { BandwidthResult, PerfArgs } from './perf-plan.ts';
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

async function sendAll({ program, args, streams, sends }: PerfLink): Promise<BandwidthResult> {
  const messages = new Messages(args, streams);
  while (messages.doneCount < messages.total) {
    messages.post();
    messages.completed(sends.checked(await sends.arrival()), sends.taken);
    program.progress(messages.doneCount, messages.total);
  }
  return messages.result();
}

/** The messages of a client: how many are in flight, and the instants that its result is made of. */
class Messages {
  readonly total: number;
  /** Messages that have completed. */
  doneCount = 0;
  readonly #args: PerfArgs;
  readonly #moderation: number;
  readonly #streams: readonly PerfStream[];
  readonly #streamOf: ReadonlyMap<number, PerfStream>;
  /** When each message was posted, in the order of all QPs together, and how many had completed when. */
  readonly #postedPs: number[] = [];
  readonly #doneCounts: number[] = [];
  readonly #donePs: number[] = [];

  constructor(args: PerfArgs, streams: readonly PerfStream[]) {
    const { iterations, qpCount, cqModeration, txDepth } = args;
    this.#args = args;
    this.#streams = streams;
    this.#streamOf = new Map(streams.map((stream) => [stream.qp.qpNum, stream]));
    this.#moderation = Math.max(1, Math.min(cqModeration, txDepth, iterations));
    this.total = iterations * qpCount;
  }

  /** Posts as many as may be in flight. */
  post(): void {
    for (const stream of this.#streams) this.#fill(stream);
  }

  #fill(stream: PerfStream): void {
    const { iterations, txDepth } = this.#args;
    const moderation = this.#moderation;
    const end = Math.min(iterations, stream.completed + txDepth);
    for (let number = stream.posted; number < end; number++) {
      this.#postedPs.push(stream.qp.cpu.localPs);
      stream.post(number % moderation === moderation - 1 || number === iterations - 1);
    }
  }

  /** So many completions were taken, now: each stands for those before it in its queue. */
  completed(count: number, taken: readonly IbvWc[]): void {
    for (let at = 0; at < count; at++) {
      const stream = this.#streamOf.get(taken[at]!.qpNum)!;
      const finished = Math.min(this.#moderation, this.#args.iterations - stream.completed);
      stream.completed += finished;
      this.doneCount += finished;
    }
    this.#doneCounts.push(this.doneCount);
    this.#donePs.push(this.#streams[0]!.qp.cpu.localPs);
  }

  result(): BandwidthResult {
    const { sizeBytes, qpCount } = this.#args;
    return resultOf(sizeBytes, this.total, this.#postedPs, this.#doneCounts, this.#donePs, qpCount);
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

/**
 * The peak is the best rate of all pairs of a post and a completion, counted over all QPs in the order of both, as perftest
 * has it (perftest_parameters.c, print_report_bw): when as many have completed as had been posted before message `i`, and
 * `m` more, then `m` messages posted since have gone through the link. So the peak never beats the link.
 */
export function resultOf(
  sizeBytes: number,
  total: number,
  postedPs: readonly number[],
  doneCounts: readonly number[],
  donePs: readonly number[],
  qpCount: number,
): BandwidthResult {
  const durationPs = donePs[donePs.length - 1]! - postedPs[0]!;
  const peak = steepest(postedPs, doneCounts, donePs);
  const messagesPerSecond = (total / durationPs) * 1e12;
  return {
    iterations: total / qpCount,
    durationPs,
    peakBytesPerSecond: peak * 1e12 * sizeBytes,
    averageBytesPerSecond: messagesPerSecond * sizeBytes,
    messagesPerSecond,
  };
}

/**
 * The best of (done − i) / (its time − the time of post i): the steepest line from a point (time, number) of a post to a later
 * one of a completion. Of the posts only the lower convex hull counts; along it the slope to a completion rises and then falls,
 * and where it is greatest is near the place for the completion before.
 */
function steepest(
  postedPs: readonly number[],
  doneCounts: readonly number[],
  donePs: readonly number[],
): number {
  const hull: number[] = [];
  let [best, added, place] = [0, 0, 0];
  for (let index = 0; index < doneCounts.length; index++) {
    const [done, atPs] = [doneCounts[index]!, donePs[index]!];
    for (; added < done; added++) {
      while (hull.length > 1 && !isBelow(postedPs, hull.at(-2)!, hull.at(-1)!, added)) hull.pop();
      hull.push(added);
    }
    place = Math.min(place, hull.length - 1);
    const slopeFrom = (at: number): number => (done - hull[at]!) / (atPs - postedPs[hull[at]!]!);
    let slope = slopeFrom(place);
    for (; place + 1 < hull.length && slopeFrom(place + 1) >= slope; place++) slope = slopeFrom(place + 1);
    for (; place > 0 && slopeFrom(place - 1) > slope; place--) slope = slopeFrom(place - 1);
    if (slope > best) best = slope;
  }
  return best;
}

/** Whether post `middle` lies below the line from post `from` to post `to`. */
function isBelow(postedPs: readonly number[], from: number, middle: number, to: number): boolean {
  const [fromPs, middlePs, toPs] = [postedPs[from]!, postedPs[middle]!, postedPs[to]!];
  return (middle - from) * (toPs - fromPs) < (to - from) * (middlePs - fromPs);
}
