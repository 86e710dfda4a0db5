/**
 * The bandwidth tests, as perftest runs them: as many messages in flight as the send queues hold, and one completion
 * for every `cqModeration` messages of a QP; the client measures from its first post to its last completion.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { IbvWc } from '../../userlib/index.ts';
import { countCycles } from './core-cycles.ts';
import { awaitPeerEnd, hostWorkOf } from './host-work.ts';
import { confirmArrival } from './perf-arrival.ts';
import { openPerfLink, type PerfLink } from './perf-link.ts';
import { offerAll } from './perf-load.ts';
import { isReliable, type PerfArgs } from './perf-plan.ts';
import { resultOf } from './perf-rates.ts';
import { isReceive, Receiver } from './perf-receiver.ts';
import type { BandwidthResult, PerfSide } from './perf-result.ts';
import { announceEnd, labelOf, startsTogether, startTogether } from './perf-start.ts';
import type { PerfStream } from './perf-stream.ts';
import { barrier } from './rc-endpoint.ts';

export const bandwidthClient = (program: ProgramContext<PerfArgs>): Promise<PerfSide> =>
  runSide(program, true);
export const bandwidthServer = (program: ProgramContext<PerfArgs>): Promise<PerfSide> =>
  runSide(program, false);

async function runSide(program: ProgramContext<PerfArgs>, isClient: boolean): Promise<PerfSide> {
  const link = await openPerfLink(program, isClient);
  const { args, streams } = link;
  if (args.warmupIterations !== undefined) {
    await runPhase(link, isClient, args.warmupIterations);
    for (const stream of streams) stream.restart();
  }
  if (startsTogether(args)) await startTogether(program, isClient);
  const cyclesSpent = countCycles(program);
  const done = await runPhase(link, isClient, args.iterations);
  const side: PerfSide = { ...done, cycles: done.cycles ?? cyclesSpent() };
  await announceEnd(program);
  await barrier(program, labelOf('done', args));
  return side;
}

/**
 * Runs this many messages of each QP, in the direction or directions of the test; under an offered load, also measures
 * the work of the host.
 */
async function runPhase(link: PerfLink, isClient: boolean, iterations: number): Promise<Partial<PerfSide>> {
  const { program, args } = link;
  if (args.load === undefined) return runMessages(link, isClient, iterations);
  const cyclesSpent = countCycles(program);
  const done = await runMessages(link, isClient, iterations);
  const cycles = done.cycles ?? cyclesSpent();
  if (!isClient || args.isBidirectional === true) await awaitPeerEnd(program);
  return { ...done, cycles, ...hostWorkOf(program) };
}

async function runMessages(
  link: PerfLink,
  isClient: boolean,
  iterations: number,
): Promise<Partial<PerfSide>> {
  const { verb, isBidirectional, isEchoed, connection, load } = link.args;
  const isLoaded = load !== undefined;
  if (isEchoed === true && !isClient) return answerAll(link, iterations);
  if (isEchoed === true) return isLoaded ? offerAll(link, iterations) : askAll(link, iterations);
  if (isBidirectional === true) return isLoaded ? offerAll(link, iterations) : exchangeAll(link, iterations);
  if (!isClient) {
    if (verb !== 'send') return {};
    return isReliable(connection)
      ? { received: await receiveAll(link, iterations) }
      : await receiveUntilEnd(link, iterations);
  }
  const cyclesSpent = countCycles(link.program);
  const sent = isLoaded ? await offerAll(link, iterations) : { result: await sendAll(link, iterations) };
  const cycles = cyclesSpent();
  if (verb === 'send' && !isReliable(connection)) await sendEnd(link);
  return { ...sent, cycles };
}

async function sendAll(link: PerfLink, iterations: number): Promise<BandwidthResult> {
  const { program, args, streams, sends } = link;
  const messages = new Messages(args, streams, iterations);
  while (messages.doneCount < messages.total) {
    messages.post();
    messages.completed(sends.checked(await sends.arrival()), sends.taken);
    program.progress(messages.doneCount, messages.total);
  }
  return arrivedResult(link, messages);
}

/** The result, when the peer has all messages. */
async function arrivedResult(link: PerfLink, messages: Messages): Promise<BandwidthResult> {
  if (!link.completesEarly) return messages.result();
  await confirmArrival(link);
  return messages.resultAtArrival();
}

/** Sends and, if the peer also sends by SEND, receives the same number: all complete into one CQ. */
async function exchangeAll(link: PerfLink, iterations: number): Promise<Partial<PerfSide>> {
  const { program, args, streams, sends } = link;
  const messages = new Messages(args, streams, iterations);
  const receiver = new Receiver(link);
  const expected = args.verb === 'send' ? messages.total : 0;
  while (messages.doneCount < messages.total || receiver.count < expected) {
    messages.post();
    const count = sends.checked(await sends.arrival());
    messages.completed(count, sends.taken);
    receiver.take(count, sends.taken);
    program.progress(messages.doneCount, messages.total);
  }
  const result = await arrivedResult(link, messages);
  return expected === 0 ? { result } : { result, received: { count: receiver.count, expected } };
}

/** Sends, and sends again after each answer: messages in flight are unanswered ones. */
async function askAll(link: PerfLink, iterations: number): Promise<Partial<PerfSide>> {
  const { program, args, streams, sends } = link;
  const messages = new Messages(args, streams, iterations);
  const receiver = new Receiver(link);
  while (!messages.isAllDone) {
    messages.post();
    const count = sends.checked(await sends.arrival());
    receiver.take(count, sends.taken);
    messages.completed(count, sends.taken);
    program.progress(messages.doneCount, messages.total);
  }
  return { result: messages.result(), received: { count: receiver.count, expected: messages.total } };
}

/** Answers each message on the QP that it arrived on. */
async function answerAll(link: PerfLink, iterations: number): Promise<Partial<PerfSide>> {
  const { args, streams, sends } = link;
  const answers = new Messages(args, streams, iterations, true);
  const receiver = new Receiver(link);
  while (!answers.isAllDone) {
    const count = sends.checked(await sends.arrival());
    receiver.take(count, sends.taken);
    answers.completed(count, sends.taken);
    answers.post();
  }
  return { received: { count: receiver.count, expected: answers.total } };
}

/** The messages of a sending side: the number in flight, and the instants for its result. */
class Messages {
  readonly total: number;
  /** Messages that have completed, or whose arrival was observed. */
  doneCount = 0;
  /** Messages whose sends have completed. */
  #sentCount = 0;
  /** Received messages of each QP: answers, or requests to answer if messages are echoed. */
  readonly #echoes: ReadonlyMap<PerfStream, { count: number }> | undefined;
  readonly #isAnswering: boolean;
  readonly #args: PerfArgs;
  readonly #iterations: number;
  readonly #moderation: number;
  readonly #listLength: number;
  readonly #streams: readonly PerfStream[];
  readonly #streamOf: ReadonlyMap<number, PerfStream>;
  /** Time of each post, in the order of all QPs together, and the number of completions over time. */
  readonly #postedPs: number[] = [];
  readonly #doneCounts: number[] = [];
  readonly #donePs: number[] = [];

  /** @param isAnswering whether the peer sends requests, and each message of this side is an answer */
  constructor(args: PerfArgs, streams: readonly PerfStream[], iterations: number, isAnswering = false) {
    const { qpCount, cqModeration, txDepth, postList = 1, isEchoed } = args;
    this.#isAnswering = isAnswering;
    if (isEchoed === true) this.#echoes = new Map(streams.map((stream) => [stream, { count: 0 }]));
    this.#args = args;
    this.#iterations = iterations;
    this.#streams = streams;
    this.#streamOf = new Map(
      streams.flatMap((stream) => [
        [stream.qp.qpNum, stream],
        [stream.receivesAt, stream],
      ]),
    );
    this.#moderation = Math.max(1, Math.min(cqModeration, txDepth, iterations));
    this.#listLength = postList;
    this.total = iterations * qpCount;
  }

  /** Posts as many messages as may be in flight. */
  post(): void {
    for (const stream of this.#streams) {
      if (this.#listLength === 1) this.#fill(stream);
      else this.#fillWithLists(stream);
    }
  }

  #fill(stream: PerfStream): void {
    const end = this.#endOf(stream);
    for (let number = stream.posted; number < end; number++) {
      this.#postedPs.push(stream.qp.cpu.localPs);
      stream.post(this.#isSignalled(number));
    }
  }

  /** Only whole lists are posted, except for the last one. */
  #fillWithLists(stream: PerfStream): void {
    const end = this.#endOf(stream);
    for (;;) {
      const first = stream.posted;
      const length = Math.min(this.#listLength, this.#iterations - first);
      if (length === 0 || first + length > end) return;
      for (let at = 0; at < length; at++) this.#postedPs.push(stream.qp.cpu.localPs);
      stream.postList(length, (index) => this.#isSignalled(first + index));
    }
  }

  /** Every message has been sent and, if applicable, answered. */
  get isAllDone(): boolean {
    return this.doneCount === this.total && this.#sentCount === this.total;
  }

  #endOf(stream: PerfStream): number {
    const { txDepth } = this.#args;
    const end = Math.min(this.#iterations, stream.completed + txDepth);
    const echo = this.#echoes?.get(stream);
    if (echo === undefined) return end;
    return Math.min(end, this.#isAnswering ? echo.count : echo.count + txDepth);
  }

  #isSignalled(number: number): boolean {
    return number % this.#moderation === this.#moderation - 1 || number === this.#iterations - 1;
  }

  /** Records this many completions now; a completion of a send also covers the earlier ones in its queue. */
  completed(count: number, taken: readonly IbvWc[]): void {
    for (let at = 0; at < count; at++) {
      const stream = this.#streamOf.get(taken[at]!.qpNum)!;
      const echo = this.#echoes?.get(stream);
      if (isReceive(taken[at]!)) {
        if (echo === undefined) continue;
        echo.count++;
        this.doneCount++;
        continue;
      }
      const finished = Math.min(this.#moderation, this.#iterations - stream.completed);
      stream.completed += finished;
      this.#sentCount += finished;
      if (echo === undefined) this.doneCount += finished;
    }
    this.#doneCounts.push(this.doneCount);
    this.#donePs.push(this.#streams[0]!.qp.cpu.localPs);
  }

  result(): BandwidthResult {
    return this.#resultOf(this.#doneCounts, this.#donePs);
  }

  /** Counts all messages at the present instant: earlier completions do not tell which messages had arrived. */
  resultAtArrival(): BandwidthResult {
    return this.#resultOf([this.total], [this.#streams[0]!.qp.cpu.localPs]);
  }

  #resultOf(doneCounts: readonly number[], donePs: readonly number[]): BandwidthResult {
    const { sizeBytes, qpCount, sizes } = this.#args;
    const bytes = this.#streams.reduce((sum, { drawnBytes }) => sum + drawnBytes, 0);
    const meanBytes = sizes === undefined ? sizeBytes : bytes / this.total;
    return resultOf(meanBytes, this.total, this.#postedPs, doneCounts, donePs, qpCount);
  }
}

type Received = NonNullable<PerfSide['received']>;

async function receiveAll(link: PerfLink, iterations: number): Promise<Received> {
  const { args, receives } = link;
  const receiver = new Receiver(link);
  const expected = iterations * args.qpCount;
  while (receiver.count < expected) receiver.take(await receives.wait(), receives.taken);
  return { count: receiver.count, expected };
}

/**
 * An unreliable service loses messages that find no receive: a final message with immediate data follows long after the
 * others. The core is measured until the last message that arrived.
 */
async function receiveUntilEnd(link: PerfLink, iterations: number): Promise<Partial<PerfSide>> {
  const { program, args, receives } = link;
  const receiver = new Receiver(link);
  const cyclesSpent = countCycles(program);
  let cycles = cyclesSpent();
  for (let before = 0; !receiver.isEnded; before = receiver.count) {
    receiver.take(await receives.wait(), receives.taken);
    if (receiver.count > before) cycles = cyclesSpent();
  }
  return { received: { count: receiver.count, expected: iterations * args.qpCount }, cycles };
}

/** Announces the end after the receiver has reposted its receives. */
async function sendEnd({ program, streams, sends }: PerfLink): Promise<void> {
  await program.cpu.sleep(endPausePs);
  streams[0]!.postEnd();
  await sends.wait();
}

/** Longer than the peer needs for everything that it has received. */
const endPausePs = 10 * psPerMs;
