/**
 * The bandwidth tests, as perftest runs them: as many messages in flight as the send queues hold, one completion for
 * every `cqModeration` of a QP; the client measures from its first post to its last completion.
 */
import type { IbvQp, IbvWc } from '../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../program.ts';
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

async function sendAll({ args, streams, sends }: PerfLink): Promise<BandwidthResult> {
  const messages = new Messages(args, streams);
  while (messages.doneCount < messages.total) {
    messages.post();
    messages.completed(sends.checked(await sends.arrival()), sends.taken);
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
  /** When each message of the first QP was posted, and how many had completed when. */
  readonly #postedPs: Float64Array;
  readonly #doneCounts: number[] = [];
  readonly #donePs: number[] = [];

  constructor(args: PerfArgs, streams: readonly PerfStream[]) {
    const { iterations, qpCount, cqModeration, txDepth } = args;
    this.#args = args;
    this.#streams = streams;
    this.#streamOf = new Map(streams.map((stream) => [stream.qp.qpNum, stream]));
    this.#moderation = Math.max(1, Math.min(cqModeration, txDepth, iterations));
    this.#postedPs = new Float64Array(iterations);
    this.total = iterations * qpCount;
  }

  /** Posts as many as may be in flight. */
  post(): void {
    this.#fill(this.#streams[0]!, this.#postedPs);
    for (let qp = 1; qp < this.#streams.length; qp++) this.#fill(this.#streams[qp]!);
  }

  #fill(stream: PerfStream, postedPs?: Float64Array): void {
    const { iterations, txDepth } = this.#args;
    const moderation = this.#moderation;
    const end = Math.min(iterations, stream.completed + txDepth);
    for (let number = stream.posted; number < end; number++) {
      if (postedPs !== undefined) postedPs[number] = stream.qp.cpu.localPs;
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
    const { sizeBytes, qpCount, txDepth } = this.#args;
    const { total } = this;
    return resultOf(sizeBytes, total, this.#postedPs, this.#doneCounts, this.#donePs, qpCount, 4 * txDepth);
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
export function resultOf(
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
      const messages = done - from * qpCount;
      // A product is at hand sooner than the quotient, which is seldom needed.
      if (ps > 0 && messages > best * ps) best = messages / ps;
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
