/**
 * A story of players while it is drawn: programs with areas, queues and steps, and the links between them. Every step
 * is appended to its program's list when it is drawn, so that the lists of all programs follow one order of time, and
 * no step waits for a later one. Numbers prefer edges: sizes of 0, 1, MTU ± 1, 4 KiB ± 1, PSNs near the wrap.
 */
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import {
  type AreaKind,
  type AreaPlan,
  type Climate,
  type Flaw,
  type Link,
  type LinkEnd,
  mtuBytes,
  type ProgramPlan,
  patternInto,
  type QpPlan,
  type ReceivePlan,
  type SendPlan,
  type SgePlan,
  type Step,
  type Transport,
  type WindowPlan,
} from '../story.ts';
import { consumesReceive, grhBytes, hasImmediate, isAtomicVerb, isFetching, verbs } from '../verbs.ts';
import { edge, pick } from './choice.ts';
import type { Feature, Swarm } from './swarm.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key] };

/** The program's plan; `lengthBytes` of an area is the part that requests use so far. */
export type ProgramDraft = Mutable<Omit<ProgramPlan, 'areas' | 'windows'>> & {
  readonly areas: Mutable<AreaPlan>[];
  readonly windows: WindowPlan[];
};

export const remoteAll =
  ibv.IBV_ACCESS_REMOTE_WRITE | ibv.IBV_ACCESS_REMOTE_READ | ibv.IBV_ACCESS_REMOTE_ATOMIC;
export const areaIndex = { source: 0, target: 1, sink: 2, foreign: 3 } as const;

const messages = [ibv.IBV_WR_SEND, ibv.IBV_WR_SEND_WITH_IMM];
const writes = [ibv.IBV_WR_RDMA_WRITE, ibv.IBV_WR_RDMA_WRITE_WITH_IMM];
const reliableOnly = [ibv.IBV_WR_RDMA_READ, ibv.IBV_WR_ATOMIC_CMP_AND_SWP, ibv.IBV_WR_ATOMIC_FETCH_AND_ADD];
export const verbsOf: Readonly<Record<Transport, readonly number[]>> = {
  RC: [...messages, ...writes, ...reliableOnly],
  UC: [...messages, ...writes],
  UD: messages,
};

/** Longest message of UC that consumes a receive, and longest datagram. */
const unreliableBytesMax = 2048;
/** Size of each receive of a shared queue: room for the longest message there. */
const sharedBytes = 600;

type Connection = Pick<
  QpPlan,
  'mtu' | 'timeout' | 'retryCount' | 'rnrRetry' | 'rnrTimer' | 'readsOut' | 'readsIn'
>;

export class Draft {
  readonly random: Random;
  readonly climate: Climate;
  readonly swarm: Swarm;
  readonly programs: ProgramDraft[] = [];
  readonly links: Link[] = [];
  /** Links with their present QPs. */
  readonly current: Link[] = [];
  /** Areas that have had other keys, by `program.area`. */
  readonly renewedAreas = new Set<string>();
  /** Bytes that requests may still carry. */
  budgetBytes: number;
  readonly #lateQps = new Set<string>();
  /** First value of a word of atomics, or the value that a COMPARE_SWAP stores. */
  readonly #words = new Map<string, string[]>();
  /** The end that allows less than its peer requests, and the missing right. */
  #strict: { readonly end: LinkEnd; readonly right: number } | undefined;
  #nextId = 1;

  constructor(random: Random, climate: Climate, swarm: Swarm) {
    this.random = random;
    this.climate = climate;
    this.swarm = swarm;
    this.budgetBytes = swarm.sizes === 'large' ? 1 << 21 : 1 << 18;
  }

  has(feature: Feature): boolean {
    return this.swarm.features.has(feature);
  }

  nextId(): number {
    return this.#nextId++;
  }

  // Objects.

  addProgram(node: number): void {
    const { random } = this;
    this.programs.push({
      node,
      qpnGap: 0,
      areas: [
        this.#newArea('source', random.chance(0.5) ? 0 : ibv.IBV_ACCESS_REMOTE_READ),
        this.#newArea('target', ibv.IBV_ACCESS_LOCAL_WRITE | remoteAll, 4),
        this.#newArea('sink', ibv.IBV_ACCESS_LOCAL_WRITE),
        { ...this.#newArea('target', ibv.IBV_ACCESS_LOCAL_WRITE | remoteAll), isForeign: true },
      ],
      cqs: Array.from({ length: random.between(1, 3) }, () => ({
        hasChannel: this.has('events') && random.chance(0.6),
        vector: random.below(4),
      })),
      srqs: this.has('srqs') ? [{ maxWr: random.between(1, 64), maxSge: random.between(1, 4) }] : [],
      qps: [],
      windows: [],
      early: [],
      steps: [],
    });
  }

  #newArea(kind: AreaKind, access: number, atomicWords = 0): Mutable<AreaPlan> {
    const { random } = this;
    const shiftBytes = random.chance(0.5) ? 0 : random.below(4096);
    const isOnDemand = this.has('allOnDemand') || (this.has('someOnDemand') && random.chance(0.5));
    return {
      kind,
      lengthBytes: atomicWords * 8,
      shiftBytes: kind === 'source' ? shiftBytes : shiftBytes & ~7,
      access: isOnDemand ? access | ibv.IBV_ACCESS_ON_DEMAND : access,
      isForeign: false,
      atomicWords,
    };
  }

  addLink(): void {
    const { random, programs } = this;
    const transport = pick(random, this.swarm.transports);
    const left = random.below(programs.length);
    const others = programs.flatMap(({ node }, index) =>
      node !== programs[left]!.node || (index === left && random.chance(0.3)) ? [index] : [],
    );
    const common = this.drawConnection();
    const ends = [left, pick(random, others)].map((program) => ({
      program,
      qp: this.addQp(program, transport, common),
    }));
    this.links.push({ ends: [ends[0]!, ends[1]!] });
    this.current.push(this.links.at(-1)!);
    if (this.has('strictQp') && this.#strict === undefined && transport === 'RC')
      this.#makeStrict(pick(random, ends));
  }

  #makeStrict(end: LinkEnd): void {
    const right = pick(this.random, [
      ibv.IBV_ACCESS_REMOTE_READ,
      ibv.IBV_ACCESS_REMOTE_WRITE,
      ibv.IBV_ACCESS_REMOTE_ATOMIC,
    ]);
    this.#strict = { end, right };
    const { qps } = this.programs[end.program]!;
    qps[end.qp] = { ...qps[end.qp]!, access: remoteAll & ~right };
  }

  addQp(program: number, transport: Transport, common: Connection): number {
    const { random } = this;
    const { cqs, srqs, qps } = this.programs[program]!;
    return (
      qps.push({
        transport,
        sendCq: random.below(cqs.length),
        recvCq: random.below(cqs.length),
        srq: srqs.length > 0 && random.chance(0.5) ? 0 : -1,
        maxSendWr: random.between(1, random.chance(0.5) ? 8 : 100),
        maxRecvWr: random.between(1, random.chance(0.3) ? 4 : 100),
        maxSge: random.between(1, 6),
        maxInline: this.has('inline') ? pick(random, [0, 16, 60, 128, 400]) : 0,
        isSignalAll: random.chance(0.3),
        ...common,
        psn: random.chance(0.3) ? 0xffffff - random.below(40) : random.below(1 << 24),
        access: remoteAll,
      }) - 1
    );
  }

  /** Attributes that both ends of a connection share: a responder must take as many READs as the requester sends. */
  drawConnection(): Connection {
    const { random, climate } = this;
    const reads = random.between(1, random.chance(0.5) ? 2 : 16);
    const isLossy = climate === 'lossy' || climate === 'broken';
    return {
      mtu: random.between(1, 5),
      // ACK timeout of 4.096 us × 2^code: mostly 8 ms to 67 ms, so that slow hardware does not exceed it by itself.
      timeout: isLossy
        ? pick(random, [random.below(32), 8 + random.below(8)], [1, 4])
        : pick(random, [0, 14, 18, random.between(1, 31)], [1, 6, 2, 1]),
      retryCount: pick(random, [0, 1, 7, random.below(8)], isLossy ? [1, 1, 6, 2] : [1, 1, 3, 2]),
      rnrRetry: pick(random, [7, random.below(8)], [4, 1]),
      rnrTimer: this.has('longestRnrDelay')
        ? 0
        : pick(random, [random.between(1, 12), random.below(32)], [4, 1]),
      readsOut: reads,
      readsIn: reads,
    };
  }

  // Requests.

  /** Draws some requests of one end of a link to the other, as one list; undefined if none is possible. */
  drawPost(from: LinkEnd, to: LinkEnd, most = 6): Step | undefined {
    const { random } = this;
    const count = this.has('lists') && random.chance(0.3) ? random.between(1, most) : 1;
    const wrs = Array.from({ length: count }, () => this.#drawSend(from, to)).filter(
      (plan) => plan !== undefined,
    );
    return wrs.length === 0 ? undefined : { do: 'post', qp: from.qp, wrs };
  }

  #drawSend(from: LinkEnd, to: LinkEnd): SendPlan | undefined {
    const { random } = this;
    const [own, peer] = [this.programs[from.program]!, this.programs[to.program]!];
    const qp = own.qps[from.qp]!;
    const possible = verbsOf[qp.transport].filter((verb) => this.swarm.verbs.has(verb));
    if (possible.length === 0) return undefined;
    const opcode = pick(random, possible);
    const isAtomic = isAtomicVerb(opcode);
    const isShared = consumesReceive(opcode) && peer.qps[to.qp]!.srq >= 0;
    const length = isAtomic ? 8 : this.#drawLength(qp, consumesReceive(opcode), isShared);
    if (length > this.budgetBytes) return undefined;
    this.budgetBytes -= length;
    const flaw = this.#drawFlaw(opcode, qp.transport, from, to);
    const canBeInline = !isFetching(opcode) && length <= qp.maxInline && length > 0 && flaw === 'none';
    const remote = verbs.get(opcode)!.right === 0 ? undefined : this.#drawRemote(peer, opcode, length, flaw);
    const plan: SendPlan = {
      ...this.request(opcode, flaw),
      sges: this.#drawSges(own, areaOf(opcode), length, isAtomic ? 1 : qp.maxSge, flaw),
      isSignalled: random.chance(0.6),
      isFenced: this.has('fences') && qp.transport === 'RC' && random.chance(0.2),
      isSolicited: random.chance(0.3),
      isInline: canBeInline && random.chance(0.6),
      ...(hasImmediate(opcode) ? { imm: random.uint32() } : {}),
      ...(remote === undefined ? {} : { remote }),
      ...(isAtomic ? this.#drawOperands(opcode, to.program, remote!) : {}),
    };
    if (consumesReceive(opcode)) this.addReceive(to, plan, length, qp.transport);
    return plan;
  }

  /** A request without anything that a verb need not have. */
  request(opcode: number, flaw: Flaw = 'none'): SendPlan {
    const flags = { isSignalled: true, isFenced: false, isSolicited: false, isInline: false };
    return { id: this.nextId(), opcode, sges: [], ...flags, flaw };
  }

  #drawLength({ transport, mtu: code }: QpPlan, isReceived: boolean, isShared: boolean): number {
    const { random } = this;
    const mtu = mtuBytes(code);
    if (isShared) return random.below(Math.min(512, mtu));
    if (transport === 'UC' && isReceived) return edge(random, unreliableBytesMax);
    if (transport === 'UD') return edge(random, Math.min(mtu, unreliableBytesMax));
    if (this.swarm.sizes === 'tiny') return random.below(80);
    if (this.swarm.sizes === 'large' && random.chance(0.3)) return random.below(1 << 18);
    const packets = random.below(6) * mtu;
    const nearPackets = [packets, packets + 1, packets + random.below(mtu)];
    return pick(random, [0, 1, 4, 64, mtu - 1, mtu, mtu + 1, 4095, 4096, 4097, ...nearPackets]);
  }

  #drawFlaw(opcode: number, transport: Transport, from: LinkEnd, to: LinkEnd): Flaw {
    const { random } = this;
    if (this.#isRefused(opcode, to)) return 'qpRight';
    if (this.climate !== 'flawed' || !random.chance(0.06) || transport !== 'RC') return 'none';
    const hasRemote = verbs.get(opcode)!.right !== 0;
    const isRenewed = (program: number, area: number): boolean => this.renewedAreas.has(`${program}.${area}`);
    const all: readonly (readonly [flaw: Flaw, isPossible: boolean])[] = [
      ['localKey', true],
      ['localBounds', true],
      ['tooLong', !hasRemote],
      ['remoteKey', hasRemote],
      ['remoteBounds', hasRemote],
      ['remoteRight', hasRemote],
      ['foreignKey', hasRemote],
      ['localRight', opcode === ibv.IBV_WR_RDMA_READ],
      ['misaligned', isAtomicVerb(opcode)],
      ['oldLocalKey', isRenewed(from.program, areaOf(opcode))],
      ['oldRemoteKey', hasRemote && isRenewed(to.program, areaIndex.target)],
    ];
    return pick(
      random,
      all.flatMap(([flaw, isPossible]) => (isPossible ? [flaw] : [])),
    );
  }

  #isRefused(opcode: number, { program, qp }: LinkEnd): boolean {
    const { end, right } = this.#strict ?? {};
    return end?.program === program && end.qp === qp && verbs.get(opcode)!.right === right;
  }

  /**
   * Half of the COMPARE_SWAPs compare with the word's initial value, or with a value that another request has written.
   */
  #drawOperands(
    opcode: number,
    program: number,
    { area, offset }: NonNullable<SendPlan['remote']>,
  ): Pick<SendPlan, 'compareAdd' | 'swap'> {
    const { random } = this;
    const swap = random.uint32().toString(16);
    const word = random.uint32().toString(16) + random.uint32().toString(16).padStart(8, '0');
    if (opcode !== ibv.IBV_WR_ATOMIC_CMP_AND_SWP) return { compareAdd: word, swap };
    const place = `${program}.${area}.${offset}`;
    const known = this.#words.get(place) ?? [firstWord(program, area, offset)];
    this.#words.set(place, [known[0]!, swap]);
    return { compareAdd: random.chance(0.5) ? pick(random, known) : word, swap };
  }

  /** Draws pieces of an area that add up to a length: anywhere in a source, in an unused part of a sink. */
  #drawSges(program: ProgramDraft, area: number, length: number, maxSge: number, flaw: Flaw): SgePlan[] {
    const { random } = this;
    const count = length === 0 ? 0 : Math.min(length, random.between(1, maxSge));
    let left = length;
    const sges = Array.from({ length: count }, (_, index): SgePlan => {
      const behind = count - 1 - index;
      const piece = behind === 0 ? left : random.between(1, left - behind);
      left -= piece;
      const offset = this.place(program, area, piece);
      return { area: flaw === 'localRight' ? areaIndex.source : area, offset, length: piece };
    });
    if (flaw === 'localRight') this.place(program, areaIndex.source, length);
    return sges;
  }

  /** Draws an offset of this many bytes in an area: in a source often an offset of another request, else at its end. */
  place({ areas }: ProgramDraft, area: number, length: number): number {
    const { random } = this;
    const draft = areas[area]!;
    if (draft.kind === 'source' && draft.lengthBytes > length && random.chance(0.7))
      return random.below(draft.lengthBytes - length + 1);
    const offset = draft.lengthBytes + (random.chance(0.5) ? 0 : random.below(64));
    draft.lengthBytes = offset + length;
    return offset;
  }

  #drawRemote(
    peer: ProgramDraft,
    opcode: number,
    length: number,
    flaw: Flaw,
  ): { area: number; offset: number } {
    const { random } = this;
    const area =
      flaw === 'remoteRight' ? areaIndex.sink : flaw === 'foreignKey' ? areaIndex.foreign : areaIndex.target;
    const { atomicWords, lengthBytes } = peer.areas[areaIndex.target]!;
    if (isAtomicVerb(opcode)) {
      // Aligned, or that would be wrong as well.
      if (flaw === 'remoteRight') return { area, offset: Math.ceil(this.place(peer, area, 16) / 8) * 8 };
      return { area, offset: 8 * random.below(atomicWords) + (flaw === 'misaligned' ? 4 : 0) };
    }
    const room = lengthBytes - atomicWords * 8 - length;
    const overlaps =
      opcode === ibv.IBV_WR_RDMA_READ ? random.chance(0.7) : this.has('overlaps') && random.chance(0.3);
    if (area === areaIndex.target && room > 0 && overlaps)
      return { area, offset: atomicWords * 8 + random.below(room) };
    return { area, offset: this.place(peer, area, length) };
  }

  /** Adds the receive of a message at the other end, early or late. */
  addReceive(at: LinkEnd, send: SendPlan, length: number, transport: Transport): void {
    const { random } = this;
    const program = this.programs[at.program]!;
    const { srq } = program.qps[at.qp]!;
    const room = send.opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM ? random.below(40) : length;
    const spare = random.chance(0.6) ? 0 : random.below(100);
    // The next message of an unreliable service takes the receive of a lost one: each receive fits any of them.
    const wanted = transport !== 'RC' ? unreliableBytesMax : srq >= 0 ? sharedBytes : room + spare;
    const lengthBytes =
      (send.flaw === 'tooLong' ? Math.max(0, wanted - 1) : wanted) +
      (transport === 'UD' || srq >= 0 ? grhBytes : 0);
    const maxSge = srq >= 0 ? program.srqs[srq]!.maxSge : program.qps[at.qp]!.maxSge;
    const isBroken = this.climate === 'flawed' && transport === 'RC' && random.chance(0.01);
    const plan: ReceivePlan = {
      id: this.nextId(),
      sges: this.#drawSges(program, areaIndex.sink, lengthBytes, maxSge, 'none'),
      flaw: isBroken && lengthBytes > 0 ? 'localKey' : 'none',
    };
    const steps = this.#isLate(at, transport) ? program.steps : program.early;
    steps.push(
      srq >= 0 ? { do: 'receiveShared', srq, wrs: [plan] } : { do: 'receive', qp: at.qp, wrs: [plan] },
    );
  }

  /** Receives are consumed in order: those after a late one are late as well. */
  #isLate({ program, qp }: LinkEnd, transport: Transport): boolean {
    const { random } = this;
    const key = `${program}.${qp}`;
    const isLate =
      this.#lateQps.has(key) || (this.has('lateReceives') && random.chance(0.3) && transport === 'RC');
    if (isLate) this.#lateQps.add(key);
    return isLate;
  }
}

/** Area from which a request takes its bytes, or into which it places them. */
const areaOf = (opcode: number): number => (isFetching(opcode) ? areaIndex.sink : areaIndex.source);

function firstWord(program: number, area: number, offset: number): string {
  const word = new Uint8Array(8);
  patternInto(word, program, area, 0, offset);
  return Buffer.from(word).readBigUInt64LE().toString(16);
}
