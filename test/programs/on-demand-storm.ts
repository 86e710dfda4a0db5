/**
 * Two-way traffic over on-demand regions, drawn from a seed: several connected pairs, each side posting SENDs, WRITEs, READs
 * and atomics of awkward sizes over scatter lists. Every request has its own slots at both ends, so its bytes can be checked
 * separately; pages are untouched, written, in use by a forked child, released with MADV_DONTNEED, or evicted while requests
 * are in progress. Every request is legal: all of them must succeed.
 */
import { pageBytes } from '../../base/index.ts';
import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { Random } from '../../sim/index.ts';
import {
  IBV_ACCESS_ON_DEMAND,
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND_WITH_IMM,
  type IbvCq,
  type IbvSendWr,
  type IbvSge,
  IbvWc,
  pollCq,
  postRecv,
  postSend,
  wcStatusStr,
} from '../../userlib/index.ts';
import {
  areEqual,
  compareSwapOf,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  remoteAt,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import { type Area, type Pair, type PairOptions, Side } from './side.ts';

export interface StormArgs {
  readonly seed: number;
  readonly pairs: number;
  /** Requests of each pair and direction. */
  readonly works: number;
  /** Requests of a pair and direction that are posted and not complete. */
  readonly window: number;
  readonly mtu: 1 | 2 | 3 | 4 | 5;
  readonly timeoutCode: number;
  readonly rnrTimerCode: number;
  readonly readsMax: number;
  /** Node whose regions are on demand, or both. */
  readonly onDemand: 0 | 1 | 'both';
}

const slotBytes = 3 * pageBytes;
/** Adjacent slots begin at different offsets of a page; all are multiples of 8, as atomics need. */
const slotStride = slotBytes + 1032;
const sizes = [0, 1, 8, 255, 1024, 1025, 2048, 4095, 4096, 4097, 8192, 10_000, slotBytes];
const kinds = ['SEND', 'SEND_IMM', 'WRITE', 'WRITE_IMM', 'READ', 'FETCH_ADD', 'CMP_SWAP'] as const;
const quiescentUntilPs = 10_000_000;
/** Limit in simulated time: ends a run without progress. */
const limitPs = 2e12;

interface Work {
  readonly kind: (typeof kinds)[number];
  readonly size: number;
  readonly cuts: readonly number[];
  readonly isFenced: boolean;
  /** A page inside the target is released before the request is posted. */
  readonly isGivenBack: boolean;
}

const isOnDemandAt = ({ onDemand }: StormArgs, node: number): boolean =>
  onDemand === 'both' || onDemand === node;
const isAtomic = ({ kind }: Work): boolean => kind === 'FETCH_ADD' || kind === 'CMP_SWAP';
const takesReceive = ({ kind }: Work): boolean =>
  kind === 'SEND' || kind === 'SEND_IMM' || kind === 'WRITE_IMM';

/** Requests of one pair that `node` posts. */
function planOf(args: StormArgs, pair: number, node: number): Work[] {
  const random = new Random(args.seed, `storm ${pair} ${node}`);
  return Array.from({ length: args.works }, () => {
    const kind = kinds[random.below(kinds.length)]!;
    const size = kind === 'FETCH_ADD' || kind === 'CMP_SWAP' ? 8 : sizes[random.below(sizes.length)]!;
    const cuts = [random.below(size + 1), random.below(size + 1)].sort((left, right) => left - right);
    return {
      kind,
      size,
      cuts: size === 8 ? [] : cuts,
      isFenced: random.chance(0.1),
      isGivenBack: random.chance(0.3),
    };
  });
}

const seedOf = (args: StormArgs, pair: number, node: number, index: number): number =>
  ((args.seed * 64 + pair) * 2 + node) * 1024 + index + 1;

/** The first half of an area holds the slots of requests posted here, the second half those that the peer's requests reach. */
const sourceAt = (index: number): number => index * slotStride;
const targetAt = (args: StormArgs, index: number): number => (args.works + index) * slotStride;

function cutUp(area: Area, offset: number, { size, cuts }: Work): IbvSge[] {
  const edges = [0, ...cuts, size];
  return edges
    .slice(1)
    .map((end, part) => segment(area, offset + edges[part]!, end - edges[part]!))
    .filter(({ length }) => length > 0);
}

/** One pair as one node sees it. */
class Party {
  readonly pair: Pair;
  readonly wrong: string[] = [];
  readonly out: readonly Work[];
  readonly in: readonly Work[];
  completed = 0;
  received = 0;
  readonly expectedReceives: number;
  readonly #args: StormArgs;
  readonly #number: number;
  readonly #side: Side;
  #posted = 0;

  constructor(side: Side, args: StormArgs, number: number, pair: Pair) {
    this.#side = side;
    this.#args = args;
    this.#number = number;
    this.pair = pair;
    this.out = planOf(args, number, side.program.node);
    this.in = planOf(args, number, side.program.peers[0]!);
    this.expectedReceives = this.in.filter(takesReceive).length;
  }

  get #isOnDemand(): boolean {
    return isOnDemandAt(this.#args, this.#side.program.node);
  }

  get isDone(): boolean {
    const isOver = this.completed === this.out.length && this.received === this.expectedReceives;
    return isOver || this.wrong.length > 0;
  }

  /** Data for the peer's READs are present before anything begins, and receives are posted. */
  prepare(): void {
    const { peers } = this.#side.program;
    this.in.forEach((work, index) => {
      const offset = targetAt(this.#args, index);
      const pattern = patternOf(seedOf(this.#args, this.#number, peers[0]!, index), work.size);
      if (work.kind === 'READ') this.#side.write(this.pair.buffer, pattern, offset);
      if (takesReceive(work)) postRecv(this.pair.qp, receiveOf(cutUp(this.pair.buffer, offset, work), index));
    });
  }

  /** Posts as many as the window allows. */
  pump(): void {
    while (this.#posted < this.out.length && this.#posted - this.completed < this.#args.window)
      this.#post(this.#posted++);
  }

  async drain(entries: IbvWc[]): Promise<number> {
    const sent = await this.#take(this.pair.sendCq, entries, (wrId) => {
      if (wrId !== this.completed) this.wrong.push(`${wrId} completed after ${this.completed - 1}`);
      this.completed++;
    });
    const received = await this.#take(this.pair.recvCq, entries, () => this.received++);
    return sent + received;
  }

  async #take(cq: IbvCq, entries: IbvWc[], done: (wrId: number) => void): Promise<number> {
    const count = await pollCq(cq, entries.length, entries);
    for (const { wrId, status } of entries.slice(0, count)) {
      const { kind, size } = (cq === this.pair.sendCq ? this.out : this.in)[wrId]!;
      if (status === 0) done(wrId);
      else this.wrong.push(`pair ${this.#number} ${kind} ${wrId} of ${size}: ${wcStatusStr(status)}`);
    }
    return count;
  }

  #post(index: number): void {
    const work = this.out[index]!;
    const { buffer } = this.pair;
    const { node, memory } = this.#side.program;
    const from = sourceAt(index);
    const to = remoteAt(this.pair, targetAt(this.#args, index));
    const isFromHere = work.kind !== 'READ' && !isAtomic(work);
    const firstPage = Math.ceil((buffer.address + from) / pageBytes) * pageBytes;
    // Releases the whole pages of a slot, whether the device has them or not: a pinned region would lose them.
    if (work.isGivenBack && this.#isOnDemand) memory.advise(firstPage, 2 * pageBytes, 'dontNeed');
    const pattern = patternOf(seedOf(this.#args, this.#number, node, index), work.size);
    if (isFromHere) this.#side.write(buffer, pattern, from);
    postSend(this.pair.qp, this.#requestOf(work, index, from, to));
  }

  #requestOf(work: Work, index: number, from: number, to: { address: number; rkey: number }): IbvSendWr {
    const list = cutUp(this.pair.buffer, from, work);
    const sendFlags = IBV_SEND_SIGNALED | (work.isFenced ? IBV_SEND_FENCE : 0);
    const more = { wrId: index, sendFlags, immData: index };
    switch (work.kind) {
      case 'SEND':
        return sendOf(list, more);
      case 'SEND_IMM':
        return sendOf(list, { ...more, opcode: IBV_WR_SEND_WITH_IMM });
      case 'WRITE':
        return writeOf(list, to, more);
      case 'WRITE_IMM':
        return writeOf(list, to, { ...more, opcode: IBV_WR_RDMA_WRITE_WITH_IMM });
      case 'READ':
        return readOf(list, to, more);
      case 'FETCH_ADD':
        return fetchAddOf(segment(this.pair.buffer, from, 8), to, 77n, more);
      default:
        return compareSwapOf(segment(this.pair.buffer, from, 8), to, 0n, 78n, more);
    }
  }

  /** Compares every slot with its expected contents. */
  check(): string[] {
    const { node, peers } = this.#side.program;
    const wrong: string[] = [];
    const expect = (what: string, offset: number, bytes: Uint8Array): void => {
      if (!areEqual(this.#side.read(this.pair.buffer, bytes.length, offset), bytes))
        wrong.push(`pair ${this.#number} ${what}`);
    };
    this.out.forEach((work, index) => {
      const pattern = patternOf(seedOf(this.#args, this.#number, node, index), work.size);
      if (isAtomic(work)) expect(`${work.kind} ${index}: value found`, sourceAt(index), new Uint8Array(8));
      else expect(`${work.kind} ${index}: own bytes`, sourceAt(index), pattern);
    });
    this.in.forEach((work, index) => {
      const pattern = patternOf(seedOf(this.#args, this.#number, peers[0]!, index), work.size);
      const counter = Uint8Array.from([work.kind === 'FETCH_ADD' ? 77 : 78, 0, 0, 0, 0, 0, 0, 0]);
      expect(
        `${work.kind} ${index}: bytes at the target`,
        targetAt(this.#args, index),
        isAtomic(work) ? counter : pattern,
      );
    });
    return wrong;
  }
}

/** Errors: statuses other than SUCCESS, completions out of order, wrong bytes. */
export async function storm(program: ProgramContext<StormArgs>): Promise<JsonValue> {
  const args = program.args;
  const side = await Side.open(program);
  const isOnDemand = isOnDemandAt(args, program.node);
  const options: PairOptions = {
    bufferBytes: 2 * args.works * slotStride,
    bufferAccess: allAccess | (isOnDemand ? IBV_ACCESS_ON_DEMAND : 0),
    mtu: args.mtu,
    timeoutCode: args.timeoutCode,
    rnrTimerCode: args.rnrTimerCode,
    readsMax: args.readsMax,
    cap: { maxSendWr: args.window, maxRecvWr: args.works },
  };
  const parties: Party[] = [];
  for (let number = 0; number < args.pairs; number++) {
    const pair = await side.pair(`storm ${number}`, {
      ...options,
      beforeReady: (made) => new Party(side, args, number, made).prepare(),
    });
    parties.push(new Party(side, args, number, pair));
  }
  await side.barrier('prepared');
  const random = new Random(args.seed, `forks ${program.node}`);
  const forkAt = isOnDemand ? random.below(2 * args.pairs * args.works) : -1;
  const entries = Array.from({ length: 16 }, () => new IbvWc());
  let hasForked = false;
  const deadlinePs = program.cpu.localPs + limitPs;
  while (!parties.every(({ isDone }) => isDone)) {
    let count = 0;
    for (const party of parties) {
      if (party.wrong.length > 0) continue;
      party.pump();
      count += await party.drain(entries);
    }
    if (!hasForked && parties.reduce((sum, { completed }) => sum + completed, 0) === forkAt) {
      hasForked = true;
      program.fork('child', async (context) => {
        await context.cpu.sleep(1e9);
        return null;
      });
      await program.cpu.settle();
    }
    if (count === 0) await program.cpu.sleep(quiescentUntilPs);
    if (parties.some(({ wrong }) => wrong.length > 0)) break;
    if (program.cpu.localPs > deadlinePs) return { wrong: ['no end'] };
  }
  await side.barrier('over');
  const failed = parties.flatMap(({ wrong }) => wrong);
  return { wrong: failed.length > 0 ? failed : parties.flatMap((party) => party.check()) };
}
