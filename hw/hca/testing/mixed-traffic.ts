/**
 * A load of all operations at once: several connected pairs, each side posting a seeded sequence of work requests of
 * every kind and awkward sizes, with scatter/gather over odd offsets. Every byte moved has a place of its own, so the
 * result of each work request can be checked independently of concurrent requests.
 */
import { expect } from 'vitest';
import type { addressPath } from '../../../abi/address-path.ts';
import { CqeSyndrome, ReceiveOpcode } from '../../../abi/cqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Initial } from '../../../base/index.ts';
import { Random } from '../../../sim/index.ts';
import type { DataPathBench, DataPathNode } from './data-path-bench.ts';
import { type Completion, Cq, pattern, Qp, Region, type Segment } from './data-path-verbs.ts';

const { TRANSPORT_RETRY_EXC_ERR, WR_FLUSH_ERR } = CqeSyndrome;
const MTU = 1024;
const sizes = [0, 1, 63, 64, MTU - 1, MTU, MTU + 1, 2 * MTU, 4095, 4096, 4097, 5000];
const SLOT_BYTES = 5120;
/** Slots begin at odd places, so that pages, MTUs and DMA reads never fall together. */
const SLOT_STRIDE = SLOT_BYTES + 13;
const WINDOW = 8;

const kinds = [
  WqeOpcode.SEND,
  WqeOpcode.SEND_IMM,
  WqeOpcode.RDMA_WRITE,
  WqeOpcode.RDMA_WRITE_IMM,
  WqeOpcode.RDMA_READ,
  WqeOpcode.ATOMIC_FA,
  WqeOpcode.ATOMIC_CS,
] as const;

interface Work {
  readonly opcode: number;
  readonly size: number;
  readonly isInline: boolean;
  readonly isFenced: boolean;
  readonly isUnsignalled: boolean;
  readonly cuts: readonly number[];
}

function plan(random: Random, count: number): Work[] {
  return Array.from({ length: count }, (_, index) => {
    const opcode = kinds[random.below(kinds.length)]!;
    const isAtomic = opcode === WqeOpcode.ATOMIC_CS || opcode === WqeOpcode.ATOMIC_FA;
    const size = isAtomic ? 8 : sizes[random.below(sizes.length)]!;
    const cuts = [random.below(size + 1), random.below(size + 1)].sort((left, right) => left - right);
    return {
      opcode,
      size,
      isInline: size > 0 && size <= 64 && !isAtomic && opcode !== WqeOpcode.RDMA_READ && random.chance(0.5),
      isFenced: random.chance(0.2),
      isUnsignalled: index % WINDOW !== WINDOW - 1 && index < count - 1 && random.chance(0.3),
      cuts: isAtomic ? [] : cuts,
    };
  });
}

/** The segments of a slot, cut at the given places: an empty one is left out, as libmlx4 would. */
function cutUp(region: Region, offset: number, size: number, cuts: readonly number[]): Segment[] {
  const edges = [0, ...cuts, size];
  return edges
    .slice(1)
    .map((end, index) => region.part(offset + edges[index]!, end - edges[index]!))
    .filter(({ bytes }) => bytes > 0);
}

/** One direction of a pair: `from` posts, `to` answers and receives. */
class Direction {
  readonly works: readonly Work[];
  readonly sent: Completion[] = [];
  readonly received: Completion[] = [];
  readonly #source: Region;
  readonly #target: Region;
  readonly #from: Qp;
  readonly #to: Qp;
  readonly #seed: number;
  #posted = 0;
  #receivesPosted = 0;
  #completedThrough = 0;
  readonly #receiving: number[] = [];

  constructor(seed: number, from: Qp, to: Qp, count: number) {
    this.#seed = seed;
    this.#from = from;
    this.#to = to;
    this.works = plan(new Random(seed), count);
    this.#source = new Region(from.node, SLOT_STRIDE * count, { pageOffset: 1032 });
    this.#target = new Region(to.node, SLOT_STRIDE * count, { pageOffset: 3400 });
    this.works.forEach((work, index) => {
      const isRead = work.opcode === WqeOpcode.RDMA_READ;
      const origin = isRead ? this.#target : this.#source;
      origin.write(pattern(seed + index, work.size), this.#offset(index));
      if (this.#takesReceive(work)) this.#receiving.push(index);
    });
  }

  #takesReceive({ opcode }: Work): boolean {
    return opcode === WqeOpcode.SEND || opcode === WqeOpcode.SEND_IMM || opcode === WqeOpcode.RDMA_WRITE_IMM;
  }

  /** Slots keep the alignment that atomics need. */
  #offset(index: number): number {
    const isAtomic = this.works[index]!.cuts.length === 0;
    return index * SLOT_STRIDE + (isAtomic ? (8 - ((index * SLOT_STRIDE) % 8)) % 8 : 0);
  }

  get isDone(): boolean {
    return this.#completedThrough === this.works.length && this.received.length === this.#receiving.length;
  }

  /** All that was posted has ended, well or not. */
  get isOver(): boolean {
    return this.isDone || (this.hasFailed && this.#completedThrough === this.#posted);
  }

  /** True if none of its requests waits for a response: the last posted one has ended. */
  get isAnswered(): boolean {
    return this.#completedThrough === this.#posted;
  }

  get hasFailed(): boolean {
    return this.sent.some(({ syndrome }) => syndrome !== 0);
  }

  /** Posts the requests that the window allows, receives first. */
  pump(): void {
    if (this.hasFailed) return;
    while (this.#receivesPosted < this.#receiving.length && this.#receivesPosted - this.received.length < 8) {
      const index = this.#receiving[this.#receivesPosted++]!;
      const { size, cuts } = this.works[index]!;
      const room = cutUp(this.#target, this.#offset(index), size, cuts);
      this.#to.receive(room);
    }
    while (this.#posted < this.works.length && this.#posted - this.#completedThrough < 2 * WINDOW)
      this.#post(this.#posted++);
  }

  #post(index: number): void {
    const { opcode, size, isInline, isFenced, isUnsignalled, cuts } = this.works[index]!;
    const offset = this.#offset(index);
    const segments = cutUp(this.#source, offset, size, cuts);
    this.#from.send({
      opcode,
      isFenced,
      isUnsignalled,
      immediate: index,
      remote: { address: this.#target.address + offset, key: this.#target.key },
      ...(isInline ? { inline: pattern(this.#seed + index, size) } : { segments }),
      ...(opcode === WqeOpcode.ATOMIC_FA ? { swapOrAdd: BigInt(index) << 20n } : {}),
      ...(opcode === WqeOpcode.ATOMIC_CS ? { swapOrAdd: BigInt(index), compare: 0n } : {}),
    });
  }

  takeSent(completion: Completion): void {
    this.sent.push(completion);
    this.#completedThrough = completion.wqeCounter + 1;
  }

  takeReceived(completion: Completion): void {
    this.received.push(completion);
  }

  /** Bytes of every slot, and all completions in order, once each. */
  check(): void {
    const signalled = this.works.flatMap((work, index) => (work.isUnsignalled ? [] : [index]));
    expect(this.sent.map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
      signalled.map((index) => [index, 0]),
    );
    expect(
      this.received.map(({ wqeCounter, opcode, byteCount, immediate, syndrome }) => [
        wqeCounter,
        opcode,
        byteCount,
        immediate,
        syndrome,
      ]),
    ).toEqual(this.#receiving.map((index, counter) => [counter, ...this.#receiveFields(index), 0]));
    for (const index of this.works.keys()) this.#checkBytes(index);
  }

  /**
   * Checks a connection that may have exhausted its retries: requests that completed with success did so once, in
   * order, with their bytes in place; then one request has the error of exhausted retries, and the others are flushed.
   * Requests that failed were executed once or not at all.
   */
  checkEnding(): void {
    if (!this.hasFailed && this.isDone) return this.check();
    const good = this.sent.findIndex(({ syndrome }) => syndrome !== 0);
    const failed = good < 0 ? this.#completedThrough : this.sent[good]!.wqeCounter;
    const signalled = this.works.flatMap((work, index) =>
      work.isUnsignalled || index >= failed ? [] : [index],
    );
    const ended = good < 0 ? this.sent : this.sent.slice(0, good);
    expect(ended.map(({ wqeCounter }) => wqeCounter)).toEqual(signalled);
    const flushed = good < 0 ? [] : this.sent.slice(good + 1);
    if (good >= 0) expect([TRANSPORT_RETRY_EXC_ERR, WR_FLUSH_ERR]).toContain(this.sent[good]!.syndrome);
    expect(flushed.map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
      flushed.map((_, place) => [failed + 1 + place, WR_FLUSH_ERR]),
    );
    const takenIndices = this.received
      .filter(({ syndrome }) => syndrome === 0)
      .map((_, at) => this.#receiving[at]!);
    this.received.forEach(({ wqeCounter, opcode, byteCount, immediate, syndrome }, counter) => {
      if (syndrome !== 0) expect([wqeCounter, syndrome]).toEqual([counter, WR_FLUSH_ERR]);
      else
        expect([wqeCounter, opcode, byteCount, immediate]).toEqual([
          counter,
          ...this.#receiveFields(takenIndices[counter]!),
        ]);
    });
    for (let index = 0; index < failed; index++) this.#checkBytes(index);
    const receivesOfEnded = this.#receiving.filter((index) => index < failed).length;
    expect(takenIndices.length).toBeGreaterThanOrEqual(receivesOfEnded);
    for (let index = failed; index < this.#posted; index++) this.#checkExecutedOnceAtMost(index);
  }

  #checkBytes(index: number): void {
    const work = this.works[index]!;
    const offset = this.#offset(index);
    if (work.cuts.length === 0) {
      this.#checkAtomic(work, index, offset);
      return;
    }
    const reached = work.opcode === WqeOpcode.RDMA_READ ? this.#source : this.#target;
    expect(reached.read(offset, work.size), `slot ${index}`).toEqual(pattern(this.#seed + index, work.size));
  }

  #checkExecutedOnceAtMost(index: number): void {
    const { opcode, cuts } = this.works[index]!;
    if (cuts.length > 0) return;
    const executed = opcode === WqeOpcode.ATOMIC_FA ? BigInt(index) << 20n : BigInt(index);
    const held = new DataView(this.#target.read(this.#offset(index), 8).buffer).getBigUint64(0, true);
    expect([0n, executed]).toContain(held);
  }

  #receiveFields(index: number): number[] {
    const { opcode, size } = this.works[index]!;
    if (opcode === WqeOpcode.SEND) return [ReceiveOpcode.SEND, size, 0];
    if (opcode === WqeOpcode.SEND_IMM) return [ReceiveOpcode.SEND_IMM, size, index];
    return [ReceiveOpcode.RDMA_WRITE_IMM, size, index];
  }

  #checkAtomic({ opcode }: Work, index: number, offset: number): void {
    // Counters begin at zero; each is used once. The requester's slot was filled with a pattern and holds the old value.
    const wanted = opcode === WqeOpcode.ATOMIC_FA ? BigInt(index) << 20n : BigInt(index);
    const read = (region: Region): bigint =>
      new DataView(region.read(offset, 8).buffer).getBigUint64(0, true);
    expect([read(this.#target), read(this.#source)], `atomic ${index}`).toEqual([wanted, 0n]);
  }
}

/**
 * Runs `pairCount` pairs with `workCount` work requests each way to their end, and checks everything. The pairs are between
 * the bench's nodes, or where `nodes` says: within one, they are a loopback.
 */
export async function runMixedTraffic(
  bench: DataPathBench,
  pairCount: number,
  workCount: number,
  seed = 1,
  ackTimeout = 0,
  nodes: { readonly a: DataPathNode; readonly b: DataPathNode } = bench,
  path: Initial<typeof addressPath> = {},
): Promise<void> {
  const traffic = mixedTraffic(nodes, pairCount, workCount, seed, ackTimeout, path);
  await bench.run(2);
  await bench.until(traffic.step, 20_000);
  traffic.check();
}

export interface MixedTraffic {
  /**
   * Executes software's turn: polls completions and posts the requests that the windows allow. Returns true when all is
   * done.
   */
  step(): boolean;
  /** The same for connections that may exhaust their retries: returns true when everything has ended that will. */
  stepToEnd(): boolean;
  /** Every byte and every completion, of connections that may have used up their retries. @returns how many have */
  checkEndings(): number;
  /** Every byte and every completion of traffic that is done. */
  check(): void;
}

/** Makes the same traffic, to be driven step by step. */
export function mixedTraffic(
  nodes: { readonly a: DataPathNode; readonly b: DataPathNode },
  pairCount: number,
  workCount: number,
  seed = 1,
  ackTimeout = 0,
  path: Initial<typeof addressPath> = {},
): MixedTraffic {
  const cqs = { a: new Cq(nodes.a, 8), b: new Cq(nodes.b, 8) };
  const directions = new Map<number, { out: Direction; in: Direction }>();
  const all: Direction[] = [];
  for (let pair = 0; pair < pairCount; pair++) {
    const a = new Qp(nodes.a, {
      sendCq: cqs.a,
      fields: { logMaxRequesterReads: 1, logMaxResponderReads: 1 },
    });
    const b = new Qp(nodes.b, {
      sendCq: cqs.b,
      fields: { logMaxRequesterReads: 1, logMaxResponderReads: 1 },
    });
    a.connect(b.qpn, 0xff_fff0 + pair, 7, ackTimeout, { remoteLid: b.node.address.lid, ...path });
    b.connect(a.qpn, 7, 0xff_fff0 + pair, ackTimeout, { remoteLid: a.node.address.lid, ...path });
    const outward = new Direction(seed + 10 * pair, a, b, workCount);
    const back = new Direction(seed + 10 * pair + 5, b, a, workCount);
    directions.set(a.qpn, { out: outward, in: back });
    directions.set(b.qpn, { out: back, in: outward });
    all.push(outward, back);
  }
  const pump = (): void => {
    for (const cq of [cqs.a, cqs.b])
      for (const completion of cq.drain()) {
        const { out, in: inward } = directions.get(completion.qpn)!;
        if (completion.isSend) out.takeSent(completion);
        else inward.takeReceived(completion);
      }
    for (const direction of all) direction.pump();
  };
  return {
    step: () => {
      pump();
      return all.every(({ isDone }) => isDone);
    },
    stepToEnd: () => {
      pump();
      return [...directions.values()].every(
        ({ out, in: back }) => out.isOver || (back.isOver && back.hasFailed && out.isAnswered),
      );
    },
    check: () => {
      for (const direction of all) direction.check();
    },
    checkEndings: () => {
      for (const direction of all) direction.checkEnding();
      return all.filter(({ hasFailed }) => hasFailed).length;
    },
  };
}

/** Everything that counts something, of one node: equal whatever the order of same-instant events. */
export function countersOf({ dataPath, port, lp }: DataPathNode): unknown {
  const { accounts } = dataPath;
  const { responses, transmitter } = dataPath.blocks;
  const { mptCache, mttCache, qpcCache, cqcCache } = dataPath.parts;
  const caches = [
    ...[qpcCache, cqcCache].map(({ evictionCount, users }) => [
      evictionCount,
      ...users.map(({ useCount, missCount }) => [useCount, missCount]),
    ]),
    [mptCache.directory.evictionCount, mttCache.directory.evictionCount],
    ...dataPath.parts.translator.users.map(({ mptUses, mptMisses, mttUses, mttMisses }) => [
      mptUses,
      mptMisses,
      mttUses,
      mttMisses,
    ]),
  ];
  return {
    nowPs: lp.nowPs,
    packets: port.packets.map(({ timePs, opcode, psn }) => `${timePs} ${opcode} ${psn}`),
    blocks: accounts.map((account) => [
      account.name,
      account.busyCycles,
      account.idleCycles,
      ...account.stalledCycles,
    ]),
    caches,
    acknowledgements: responses.acknowledgementCount,
    coalesced: responses.coalescedCount,
    atomics: responses.atomicCount,
    repeated: transmitter.repeatedPacketCount,
    dropped: transmitter.droppedPacketCount,
    violations: dataPath.parts.violations.report(),
    stagePs: dataPath.parts.operations.rows.flatMap(({ stagesPs }) => Object.values(stagesPs)),
  };
}
