/**
 * The bandwidth tests under an offered load: a message is posted when it has arrived and a send queue has room. Its
 * latency lasts from its arrival to its completion, or, if echoed, to its answer.
 */
import type { IbvWc } from '../../userlib/index.ts';
import { endOwnWork } from './host-work.ts';
import { OfferedLoad } from './offered-load.ts';
import { confirmArrival } from './perf-arrival.ts';
import type { PerfLink } from './perf-link.ts';
import { resultOf } from './perf-rates.ts';
import { isReceive, Receiver } from './perf-receiver.ts';
import type { PerfSide } from './perf-result.ts';
import type { PerfStream } from './perf-stream.ts';

/** A QP with the arrival times of its uncompleted messages, oldest first. */
interface LoadedStream {
  readonly stream: PerfStream;
  readonly arrivedPs: Float64Array;
  postedCount: number;
  /** Messages that have completed, or have been answered. */
  doneCount: number;
}

/** Sends this many messages of each QP as they arrive, and receives as many as the peer sends or answers. */
export async function offerAll(link: PerfLink, iterations: number): Promise<Partial<PerfSide>> {
  const { program, args, sends } = link;
  const { verb, isBidirectional, isEchoed } = args;
  const messages = new LoadedMessages(link, iterations);
  const receives = isEchoed === true || (isBidirectional === true && verb === 'send');
  const receiver = receives ? new Receiver(link) : undefined;
  const expected = receives ? messages.total : 0;
  while (!messages.isAllDone || (receiver?.count ?? 0) < expected) {
    messages.post();
    const count = sends.checked(await sends.arrival(messages.nextPs));
    messages.completed(count, sends.taken);
    receiver?.take(count, sends.taken);
    program.progress(messages.doneCount, messages.total);
  }
  await confirmArrival(link);
  if (link.completesEarly) messages.arrived();
  await endOwnWork(program);
  const side = messages.side();
  return receiver === undefined ? side : { ...side, received: { count: receiver.count, expected } };
}

class LoadedMessages {
  readonly total: number;
  doneCount = 0;
  #sentCount = 0;
  readonly #link: PerfLink;
  readonly #iterations: number;
  readonly #moderation: number;
  readonly #load: OfferedLoad;
  readonly #startPs: number;
  readonly #streams: readonly LoadedStream[];
  readonly #streamOf: ReadonlyMap<number, LoadedStream>;
  /** QP at which the search for room begins, in rotation. */
  #turn = 0;
  readonly #timesPs: Float64Array;
  #lastPs = 0;

  constructor(link: PerfLink, iterations: number) {
    const { args, program, streams } = link;
    const { qpCount, txDepth, cqModeration, threads = 1, thread = 0, allQpCount = qpCount } = args;
    this.#link = link;
    this.#iterations = iterations;
    this.#moderation = Math.max(1, Math.min(cqModeration, txDepth, iterations));
    this.total = iterations * qpCount;
    this.#startPs = program.cpu.localPs;
    // Each QP has equally many messages: programs with more QPs offer more, and all end at the same time.
    const share = { thread, threads, oneIn: allQpCount / qpCount };
    this.#load = new OfferedLoad(args.load!, this.total, program.random, this.#startPs, share);
    this.#streams = streams.map((stream) => ({
      stream,
      arrivedPs: new Float64Array(txDepth),
      postedCount: 0,
      doneCount: 0,
    }));
    this.#streamOf = new Map(
      this.#streams.flatMap((loaded) => [
        [loaded.stream.qp.qpNum, loaded],
        [loaded.stream.receivesAt, loaded],
      ]),
    );
    this.#timesPs = new Float64Array(this.total);
  }

  /** When the next message is due, if it could be posted immediately. */
  get nextPs(): number | undefined {
    return this.#load.waitingCount > 0 ? undefined : this.#load.nextPs;
  }

  get isAllDone(): boolean {
    return this.doneCount === this.total && this.#sentCount === this.total;
  }

  /** Posts the arrived messages while a queue has room. */
  post(): void {
    const { cpu } = this.#link.program;
    for (;;) {
      this.#load.admit(cpu.localPs);
      if (this.#load.waitingCount === 0) return;
      const loaded = this.#nextWithRoom();
      if (loaded === undefined) return;
      loaded.arrivedPs[loaded.postedCount++ % loaded.arrivedPs.length] = this.#load.take();
      loaded.stream.post(this.#isSignalled(loaded.postedCount - 1));
    }
  }

  #nextWithRoom(): LoadedStream | undefined {
    const streams = this.#streams;
    for (let tried = 0; tried < streams.length; tried++) {
      const loaded = streams[this.#turn]!;
      this.#turn = (this.#turn + 1) % streams.length;
      const { stream, postedCount, doneCount, arrivedPs } = loaded;
      const inFlight = postedCount - Math.min(stream.completed, doneCount);
      if (postedCount < this.#iterations && inFlight < arrivedPs.length) return loaded;
    }
    return;
  }

  #isSignalled(number: number): boolean {
    return number % this.#moderation === this.#moderation - 1 || number === this.#iterations - 1;
  }

  /** Records this many completions, now. */
  completed(count: number, taken: readonly IbvWc[]): void {
    const { program, args } = this.#link;
    const nowPs = program.cpu.localPs;
    for (let at = 0; at < count; at++) {
      const loaded = this.#streamOf.get(taken[at]!.qpNum)!;
      if (isReceive(taken[at]!)) {
        if (args.isEchoed === true) this.#done(loaded, nowPs);
        continue;
      }
      const finished = Math.min(this.#moderation, this.#iterations - loaded.stream.completed);
      loaded.stream.completed += finished;
      this.#sentCount += finished;
      if (args.isEchoed !== true) for (let left = finished; left > 0; left--) this.#done(loaded, nowPs);
    }
  }

  #done(loaded: LoadedStream, nowPs: number): void {
    const arrivedPs = loaded.arrivedPs[loaded.doneCount++ % loaded.arrivedPs.length]!;
    this.#timesPs[this.doneCount++] = nowPs - arrivedPs;
    this.#lastPs = nowPs;
  }

  /** All messages have arrived, now. */
  arrived(): void {
    this.#lastPs = this.#link.program.cpu.localPs;
  }

  side(): Pick<PerfSide, 'result' | 'load'> {
    const { args } = this.#link;
    const bytes = this.#streams.reduce((sum, { stream }) => sum + stream.drawnBytes, 0);
    const meanBytes = args.sizes === undefined ? args.sizeBytes : bytes / this.total;
    const result = resultOf(
      meanBytes,
      this.total,
      [this.#startPs],
      [this.total],
      [this.#lastPs],
      args.qpCount,
    );
    return { result, load: { ...this.#load.counts(), timesPs: [...this.#timesPs] } };
  }
}
