/**
 * Draws a story from a seed. Each story uses a random part of what there is (swarm testing: Groce et al., ISSTA 2012), so that
 * rare events coincide; and within it numbers prefer edges: sizes of 0, 1, MTU ± 1, 4 KiB ± 1, PSNs near the wrap.
 */

import { partitions } from '../machine/index.ts';
import { Random } from '../sim/index.ts';
import {
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_SEND_WITH_INV,
} from '../userlib/index.ts';
import { withControl } from './draw-control.ts';
import { drawFaults } from './draw-faults.ts';
import { drawHardware } from './draw-hardware.ts';
import { withKnots } from './draw-knots.ts';
import { withOnDemand } from './draw-on-demand.ts';
import {
  type Again,
  type AreaKind,
  type Climate,
  type CqPlan,
  climates,
  type Flaw,
  type Link,
  mtuBytes,
  type ProgramPlan,
  type QpPlan,
  type ReceivePlan,
  type SendPlan,
  type SgePlan,
  type SrqPlan,
  type Step,
  type Story,
  type Transport,
  type Turn,
} from './story.ts';

/** A story of players for each seed, the same as long as this file does not change. */
export function drawStory(seed: number): Story {
  const random = new Random(seed, 'story');
  const climate = pick(random, climates, [5, 3, 4, 2]);
  const set = drawHardware(new Random(seed, 'hardware'));
  const draft = new Draft(new Random(seed, 'programs'), climate);
  draft.draw();
  const turns = draft.drawTurns(new Random(seed, 'turns'));
  const faults = drawFaults(new Random(seed, 'faults'), climate);
  const isAgain = random.chance(0.3);
  const story: Story = {
    seed,
    climate,
    set,
    faults,
    again: isAgain ? drawAgain(random) : undefined,
    programs: draft.programs(),
    links: draft.links,
    ...(turns.length > 0 ? { turns } : {}),
  };
  const onDemand = withOnDemand(new Random(seed, 'on demand'), story);
  return withKnots(new Random(seed, 'knots'), withControl(new Random(seed, 'control'), onDemand));
}

/** Of the stories that are played again: threads that wait for each other take ten times as long where cores are busy. */
const singleShare = 0.93;

/** Other threads, another order of one instant, and at times epochs so short that many begin. */
export function drawAgain(random: Random): Again {
  const again = {
    partition: random.chance(singleShare) ? partitions[0] : partitions[1 + random.below(2)]!,
    shuffleSeed: random.below(2 ** 31),
  };
  const epochPs = random.chance(0.4) ? shortEpochPs * 2 ** random.below(12) : undefined;
  return epochPs === undefined ? again : { ...again, epochPs };
}

function pick<T>(random: Random, values: readonly T[], weights?: readonly number[]): T {
  if (weights === undefined) return values[random.below(values.length)]!;
  let left = random.unit() * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [index, value] of values.entries()) {
    left -= weights[index]!;
    if (left < 0) return value;
  }
  return values.at(-1)!;
}

/** The features that one story uses. */
interface Swarm {
  readonly transports: readonly Transport[];
  readonly verbs: ReadonlySet<number>;
  readonly hasSrqs: boolean;
  readonly hasEvents: boolean;
  readonly hasInline: boolean;
  readonly hasLists: boolean;
  readonly hasFences: boolean;
  readonly hasPeeks: boolean;
  readonly hasOverlaps: boolean;
  readonly hasResize: boolean;
  readonly hasModeration: boolean;
  readonly hasChurn: boolean;
  readonly hasDrains: boolean;
  readonly hasLateReceives: boolean;
  readonly sizes: 'tiny' | 'mtu' | 'large';
  readonly operations: number;
}

interface AreaDraft {
  readonly kind: AreaKind;
  readonly access: number;
  readonly isForeign: boolean;
  readonly shiftBytes: number;
  readonly atomicWords: number;
  usedBytes: number;
}

interface ProgramDraft {
  readonly node: number;
  readonly areas: AreaDraft[];
  readonly cqs: CqPlan[];
  readonly srqs: SrqPlan[];
  readonly qps: QpPlan[];
  /** Posted before anything else. */
  readonly early: Step[];
  readonly steps: Step[];
}

const remoteAll = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
const areaIndex = { source: 0, target: 1, sink: 2, foreign: 3 } as const;
const verbsOf: Readonly<Record<Transport, readonly number[]>> = {
  RC: [
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
  ],
  UC: [IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM],
  UD: [IBV_WR_SEND, IBV_WR_SEND_WITH_IMM],
};

/** Whether a request takes a receive at the other end. */
export const consumesReceive = (opcode: number): boolean =>
  opcode === IBV_WR_SEND ||
  opcode === IBV_WR_SEND_WITH_IMM ||
  opcode === IBV_WR_SEND_WITH_INV ||
  opcode === IBV_WR_RDMA_WRITE_WITH_IMM;

export const isAtomicVerb = (opcode: number): boolean =>
  opcode === IBV_WR_ATOMIC_CMP_AND_SWP || opcode === IBV_WR_ATOMIC_FETCH_AND_ADD;

/** The shortest that a machine takes is 3 µs. */
const shortEpochPs = 5_000_000;

/** Bytes of a global route in front of each received datagram (IBTA 11.6.2.1). */
export const grhBytes = 40;

/** Of a message of UC that takes a receive, and of a datagram. */
const unreliableBytesMax = 2048;

class Draft {
  readonly links: Link[] = [];
  readonly #random: Random;
  readonly #climate: Climate;
  readonly #swarm: Swarm;
  readonly #programs: ProgramDraft[] = [];
  readonly #lateQps = new Set<string>();
  /** Links whose QPs are there now. */
  readonly #current: Link[] = [];
  /** Areas that have had other keys, by `program.area`. */
  readonly #renewedAreas = new Set<string>();
  #nextId = 1;
  #budgetBytes: number;

  constructor(random: Random, climate: Climate) {
    this.#random = random;
    this.#climate = climate;
    this.#swarm = drawSwarm(random);
    this.#budgetBytes = this.#swarm.sizes === 'large' ? 1 << 21 : 1 << 18;
  }

  draw(): void {
    const random = this.#random;
    const countAt = [
      1 + random.below(random.chance(0.3) ? 3 : 1),
      1 + random.below(random.chance(0.3) ? 3 : 1),
    ];
    for (const [node, count] of countAt.entries())
      for (let index = 0; index < count; index++) this.#programs.push(this.#newProgram(node));
    const linkCount = 1 + random.below(random.chance(0.15) ? 24 : 4);
    for (let count = 0; count < linkCount; count++) this.#addLink();
    for (let count = 0; count < this.#swarm.operations; count++) {
      this.#addOperation();
      if (random.chance(0.25)) this.#addOther();
    }
  }

  /** Goes on, in one of five stories, after turns at which QPs, CQs and areas are made anew. */
  drawTurns(random: Random): Turn[] {
    if (!random.chance(0.2)) return [];
    const count = 1 + random.below(random.chance(0.3) ? 5 : 2);
    return Array.from({ length: count }, (_, index) => {
      const turn = this.#drawTurn(random, index + 1);
      this.#budgetBytes += 1 << 16;
      const operations = 1 + random.below(Math.min(40, this.#swarm.operations));
      for (let made = 0; made < operations; made++) {
        this.#addOperation();
        if (random.chance(0.25)) this.#addOther();
        if (random.chance(0.1)) this.#addRegistration(random);
      }
      return turn;
    });
  }

  #drawTurn(random: Random, turn: number): Turn {
    const share = pick(random, [0.3, 0.7, 1]);
    for (const [place, link] of this.#current.entries())
      if (random.chance(share)) this.#current[place] = this.#renew(random, link, turn);
    const programs = this.#programs.map(({ cqs, areas }, program) => {
      const renewed = areas.flatMap((_, area) => (random.chance(0.5) ? [area] : []));
      for (const area of renewed) this.#renewedAreas.add(`${program}.${area}`);
      this.#programs[program]!.steps.push({ do: 'turn', turn });
      return {
        cqs: cqs.flatMap((_, cq) => (random.chance(0.5) ? [cq] : [])),
        areas: renewed,
        isMoved: random.chance(0.5),
      };
    });
    return { programs };
  }

  #renew(random: Random, { ends }: Link, turn: number): Link {
    const common = drawConnection(random, this.#climate);
    const renewed = ends.map(({ program, qp }) => {
      const { qps } = this.#programs[program]!;
      const old = qps[qp]!;
      const how = random.chance(0.5) ? 'create' : 'reset';
      const index = this.#addQp(program, old.transport, common);
      const { psn } = qps[index]!;
      const made = how === 'create' ? qps[index]! : { ...old, ...common, psn };
      qps[index] = { ...made, renewal: { turn, of: qp, how } };
      return { program, qp: index };
    });
    const link: Link = { ends: [renewed[0]!, renewed[1]!] };
    this.links.push(link);
    return link;
  }

  #addRegistration(random: Random): void {
    const { steps } = pick(random, this.#programs);
    steps.push(
      random.chance(0.5)
        ? { do: 'reregister', area: areaIndex.source }
        : { do: 'registerScratch', pages: 1 + random.below(40), kept: random.below(4) },
    );
  }

  programs(): ProgramPlan[] {
    return this.#programs.map(({ node, areas, cqs, srqs, qps, early, steps }) => ({
      node,
      qpnGap: 0,
      areas: areas.map(({ kind, access, isForeign, shiftBytes, atomicWords, usedBytes }) => ({
        kind,
        lengthBytes: Math.max(usedBytes, 64),
        shiftBytes,
        access,
        isForeign,
        atomicWords,
      })),
      cqs,
      srqs: srqs.map((srq) => ({ ...srq })),
      qps,
      early,
      steps,
    }));
  }

  #newProgram(node: number): ProgramDraft {
    const random = this.#random;
    const shift = (): number => (random.chance(0.5) ? 0 : random.below(4096));
    const area = (kind: AreaKind, access: number, isForeign: boolean, atomicWords: number): AreaDraft => ({
      kind,
      access,
      isForeign,
      shiftBytes: kind === 'source' ? shift() : shift() & ~7,
      atomicWords,
      usedBytes: atomicWords * 8,
    });
    const cqCount = 1 + random.below(3);
    return {
      node,
      areas: [
        area('source', random.chance(0.5) ? 0 : IBV_ACCESS_REMOTE_READ, false, 0),
        area('target', IBV_ACCESS_LOCAL_WRITE | remoteAll, false, 4),
        area('sink', IBV_ACCESS_LOCAL_WRITE, false, 0),
        area('target', IBV_ACCESS_LOCAL_WRITE | remoteAll, true, 0),
      ],
      cqs: Array.from({ length: cqCount }, () => ({
        hasChannel: this.#swarm.hasEvents && random.chance(0.6),
        vector: random.below(4),
      })),
      srqs: this.#swarm.hasSrqs ? [{ maxWr: 1 + random.below(64), maxSge: 1 + random.below(4) }] : [],
      qps: [],
      early: [],
      steps: [],
    };
  }

  #addLink(): void {
    const random = this.#random;
    const transport = pick(random, this.#swarm.transports);
    const left = random.below(this.#programs.length);
    const others = this.#programs.flatMap(({ node }, index) =>
      node !== this.#programs[left]!.node || (index === left && random.chance(0.3)) ? [index] : [],
    );
    const right = pick(random, others);
    const common = drawConnection(random, this.#climate);
    const ends = [left, right].map((program) => ({ program, qp: this.#addQp(program, transport, common) }));
    const link: Link = { ends: [ends[0]!, ends[1]!] };
    this.links.push(link);
    this.#current.push(link);
  }

  #addQp(program: number, transport: Transport, common: Connection): number {
    const random = this.#random;
    const { cqs, srqs, qps } = this.#programs[program]!;
    qps.push({
      transport,
      sendCq: random.below(cqs.length),
      recvCq: random.below(cqs.length),
      srq: srqs.length > 0 && random.chance(0.5) ? 0 : -1,
      maxSendWr: 1 + random.below(random.chance(0.5) ? 8 : 100),
      maxRecvWr: 1 + random.below(random.chance(0.3) ? 4 : 100),
      maxSge: 1 + random.below(6),
      maxInline: this.#swarm.hasInline ? pick(random, [0, 16, 60, 128, 400]) : 0,
      isSignalAll: random.chance(0.3),
      ...common,
      psn: random.chance(0.3) ? 0xffffff - random.below(40) : random.below(1 << 24),
      access: remoteAll,
    });
    return qps.length - 1;
  }

  #addOperation(): void {
    const random = this.#random;
    const link = pick(random, this.#current);
    const from = link.ends[random.below(2)]!;
    const to = link.ends[0] === from ? link.ends[1]! : link.ends[0];
    const listLength = this.#swarm.hasLists && random.chance(0.3) ? 1 + random.below(6) : 1;
    const wrs: SendPlan[] = [];
    for (let count = 0; count < listLength; count++) {
      const plan = this.#drawSend(from, to);
      if (plan !== undefined) wrs.push(plan);
    }
    if (wrs.length > 0) this.#programs[from.program]!.steps.push({ do: 'post', qp: from.qp, wrs });
  }

  #drawSend(from: Link['ends'][0], to: Link['ends'][0]): SendPlan | undefined {
    const random = this.#random;
    const own = this.#programs[from.program]!;
    const peer = this.#programs[to.program]!;
    const qp = own.qps[from.qp]!;
    const verbs = verbsOf[qp.transport].filter((verb) => this.#swarm.verbs.has(verb));
    if (verbs.length === 0) return undefined;
    const opcode = pick(random, verbs);
    const isAtomic = isAtomicVerb(opcode);
    const isRead = opcode === IBV_WR_RDMA_READ;
    const length = isAtomic
      ? 8
      : this.#drawLength(qp, consumesReceive(opcode), consumesReceive(opcode) && peer.qps[to.qp]!.srq >= 0);
    if (length > this.#budgetBytes) return undefined;
    this.#budgetBytes -= length;
    const flaw = this.#drawFlaw(opcode, qp.transport, from.program, to.program);
    const isInline =
      !isRead && !isAtomic && length <= qp.maxInline && length > 0 && flaw === 'none' && random.chance(0.6);
    const sges = this.#drawSges(
      own,
      isRead || isAtomic ? areaIndex.sink : areaIndex.source,
      length,
      isAtomic ? 1 : qp.maxSge,
      flaw,
    );
    const plan: SendPlan = {
      id: this.#nextId++,
      opcode,
      sges,
      isSignalled: random.chance(0.6),
      isFenced: this.#swarm.hasFences && qp.transport === 'RC' && random.chance(0.2),
      isSolicited: random.chance(0.3),
      isInline,
      flaw,
      ...(opcode === IBV_WR_SEND || opcode === IBV_WR_RDMA_WRITE || isRead || isAtomic
        ? {}
        : { imm: random.uint32() }),
      ...(opcode === IBV_WR_SEND || opcode === IBV_WR_SEND_WITH_IMM
        ? {}
        : { remote: this.#drawRemote(peer, opcode, length, flaw) }),
      ...(isAtomic
        ? {
            compareAdd: random.uint32().toString(16) + random.uint32().toString(16).padStart(8, '0'),
            swap: random.uint32().toString(16),
          }
        : {}),
    };
    if (consumesReceive(opcode)) this.#addReceive(to, plan, length, qp.transport);
    return plan;
  }

  #drawLength(qp: QpPlan, isReceived: boolean, isShared: boolean): number {
    const random = this.#random;
    const mtu = mtuBytes(qp.mtu);
    if (isShared) return random.below(Math.min(512, mtu));
    if (qp.transport === 'UC' && isReceived) return edge(random, unreliableBytesMax);
    if (qp.transport === 'UD') return edge(random, Math.min(mtu, unreliableBytesMax));
    if (this.#swarm.sizes === 'tiny') return random.below(80);
    if (this.#swarm.sizes === 'large' && random.chance(0.3)) return random.below(1 << 18);
    const packets = random.below(6) * mtu;
    const edges = [
      0,
      1,
      4,
      64,
      mtu - 1,
      mtu,
      mtu + 1,
      packets,
      packets + 1,
      4095,
      4096,
      4097,
      packets + random.below(mtu),
    ];
    return pick(random, edges);
  }

  #drawFlaw(opcode: number, transport: Transport, program: number, peer: number): Flaw {
    const random = this.#random;
    if (this.#climate !== 'flawed' || !random.chance(0.06) || transport !== 'RC') return 'none';
    const all: Flaw[] = ['localKey', 'localBounds'];
    if (opcode === IBV_WR_SEND || opcode === IBV_WR_SEND_WITH_IMM) all.push('tooLong');
    else all.push('remoteKey', 'remoteBounds', 'remoteRight', 'foreignKey');
    if (opcode === IBV_WR_RDMA_READ) all.push('localRight');
    if (isAtomicVerb(opcode)) all.push('misaligned');
    const isFromSink = opcode === IBV_WR_RDMA_READ || isAtomicVerb(opcode);
    if (this.#renewedAreas.has(`${program}.${isFromSink ? areaIndex.sink : areaIndex.source}`))
      all.push('oldLocalKey');
    const hasRemote = opcode !== IBV_WR_SEND && opcode !== IBV_WR_SEND_WITH_IMM;
    if (hasRemote && this.#renewedAreas.has(`${peer}.${areaIndex.target}`)) all.push('oldRemoteKey');
    return pick(random, all);
  }

  /** Pieces of an area that add up to a length: of a source anywhere, of a sink where nothing came before. */
  #drawSges(program: ProgramDraft, area: number, length: number, maxSge: number, flaw: Flaw): SgePlan[] {
    const random = this.#random;
    const draft = program.areas[area]!;
    const sges: SgePlan[] = [];
    const count = length === 0 ? 0 : Math.min(length, 1 + random.below(maxSge));
    let left = length;
    for (let index = 0; index < count; index++) {
      const isLast = index === count - 1;
      const piece = isLast ? left : 1 + random.below(left - (count - 1 - index));
      left -= piece;
      sges.push({
        area: flaw === 'localRight' ? areaIndex.source : area,
        offset: this.#place(draft, piece),
        length: piece,
      });
    }
    if (flaw === 'localRight') this.#place(program.areas[areaIndex.source]!, length);
    return sges;
  }

  #place(draft: AreaDraft, length: number): number {
    const random = this.#random;
    if (draft.kind === 'source' && draft.usedBytes > length && random.chance(0.7))
      return random.below(draft.usedBytes - length + 1);
    const offset = draft.usedBytes + (random.chance(0.5) ? 0 : random.below(64));
    draft.usedBytes = offset + length;
    return offset;
  }

  #drawRemote(
    peer: ProgramDraft,
    opcode: number,
    length: number,
    flaw: Flaw,
  ): { area: number; offset: number } {
    const random = this.#random;
    const target = peer.areas[areaIndex.target]!;
    if (isAtomicVerb(opcode) && flaw === 'remoteRight') {
      // Aligned, or that would be wrong as well.
      const offset = this.#place(peer.areas[areaIndex.sink]!, 16);
      return { area: areaIndex.sink, offset: Math.ceil(offset / 8) * 8 };
    }
    if (isAtomicVerb(opcode)) {
      const offset = 8 * random.below(target.atomicWords) + (flaw === 'misaligned' ? 4 : 0);
      return { area: flaw === 'foreignKey' ? areaIndex.foreign : areaIndex.target, offset };
    }
    if (flaw === 'foreignKey')
      return { area: areaIndex.foreign, offset: this.#place(peer.areas[areaIndex.foreign]!, length) };
    if (flaw === 'remoteRight')
      return { area: areaIndex.sink, offset: this.#place(peer.areas[areaIndex.sink]!, length) };
    const room = target.usedBytes - target.atomicWords * 8 - length;
    if (
      room > 0 &&
      (opcode === IBV_WR_RDMA_READ ? random.chance(0.7) : this.#swarm.hasOverlaps && random.chance(0.3))
    )
      return { area: areaIndex.target, offset: target.atomicWords * 8 + random.below(room) };
    return { area: areaIndex.target, offset: this.#place(target, length) };
  }

  #addReceive(at: Link['ends'][0], send: SendPlan, length: number, transport: Transport): void {
    const random = this.#random;
    const program = this.#programs[at.program]!;
    const { srq } = program.qps[at.qp]!;
    const room = send.opcode === IBV_WR_RDMA_WRITE_WITH_IMM ? random.below(40) : length;
    // What one message of an unreliable service misses, the next one takes: each fits any of them.
    const wanted =
      transport !== 'RC'
        ? unreliableBytesMax
        : srq >= 0
          ? 600
          : room + (random.chance(0.6) ? 0 : random.below(100));
    const lengthBytes =
      (send.flaw === 'tooLong' ? Math.max(0, wanted - 1) : wanted) +
      (transport === 'UD' || srq >= 0 ? grhBytes : 0);
    const maxSge = srq >= 0 ? program.srqs[srq]!.maxSge : program.qps[at.qp]!.maxSge;
    const isBroken = this.#climate === 'flawed' && transport === 'RC' && random.chance(0.01);
    const plan: ReceivePlan = {
      id: this.#nextId++,
      sges: this.#drawSges(program, areaIndex.sink, lengthBytes, maxSge, 'none'),
      flaw: isBroken && lengthBytes > 0 ? 'localKey' : 'none',
    };
    const key = `${at.program}.${at.qp}`;
    // Receives are taken in order: what comes after a late one is late as well.
    const isLate =
      this.#lateQps.has(key) || (this.#swarm.hasLateReceives && random.chance(0.3) && transport === 'RC');
    if (isLate) this.#lateQps.add(key);
    const steps = isLate ? program.steps : program.early;
    if (srq >= 0) steps.push({ do: 'receiveShared', srq, wrs: [plan] });
    else steps.push({ do: 'receive', qp: at.qp, wrs: [plan] });
  }

  /** Something that is not traffic. */
  #addOther(): void {
    const random = this.#random;
    const swarm = this.#swarm;
    const program = pick(random, this.#programs);
    const { steps, cqs, areas, qps } = program;
    const cq = random.below(cqs.length);
    const target = areas[areaIndex.target]!;
    const all: Step[] = [{ do: 'sleep', ns: random.below(20_000) }];
    if (swarm.hasDrains)
      all.push({ do: 'drain', outstanding: random.below(3) }, { do: 'refill', area: areaIndex.source });
    if (swarm.hasPeeks && target.usedBytes > 64) {
      const offset = target.atomicWords * 8 + random.below(target.usedBytes - target.atomicWords * 8);
      all.push({
        do: 'peek',
        area: areaIndex.target,
        offset,
        length: Math.min(256, target.usedBytes - offset),
      });
    }
    if (swarm.hasResize) all.push({ do: 'resizeCq', cq, entries: 1 + random.below(1000) });
    if (swarm.hasModeration)
      all.push({ do: 'moderate', cq, count: random.below(20), periodUs: random.below(40) });
    if (swarm.hasEvents && cqs[cq]!.hasChannel)
      all.push({ do: 'awaitEvent', cq, solicitedOnly: random.chance(0.3) });
    if (swarm.hasChurn) all.push({ do: 'churn', pages: 1 + random.below(32) });
    if (this.#climate === 'flawed' && qps.length > 0 && random.chance(0.08)) {
      const qp = random.below(qps.length);
      all.push(
        { do: 'modify', qp, to: 'ERR' },
        { do: 'destroy', qp },
        { do: 'deregister', area: random.below(3) },
      );
      if (random.chance(0.2)) all.push({ do: 'exit' });
    }
    if (this.#climate !== 'flawed' && qps.length > 0 && random.chance(0.1)) {
      const qp = random.below(qps.length);
      if (qps[qp]!.transport === 'RC') {
        steps.push({ do: 'modify', qp, to: 'SQD' }, { do: 'sleep', ns: random.below(5000) });
        all.splice(0, all.length, { do: 'modify', qp, to: 'RTS' });
      }
    }
    steps.push(pick(random, all));
  }
}

type Connection = Pick<
  QpPlan,
  'mtu' | 'timeout' | 'retryCount' | 'rnrRetry' | 'rnrTimer' | 'readsOut' | 'readsIn'
>;

/** Attributes that both ends of a connection share: a responder must take as many READs as the requester sends. */
function drawConnection(random: Random, climate: Climate): Connection {
  const reads = 1 + random.below(random.chance(0.5) ? 2 : 16);
  const isLossy = climate === 'lossy' || climate === 'broken';
  return {
    mtu: 1 + random.below(5),
    // 4.096 us × 2^code: 8 ms to 67 ms mostly, so that traffic of slow hardware does not run into it by itself.
    timeout: isLossy
      ? pick(random, [random.below(32), 8 + random.below(8)], [1, 4])
      : pick(random, [0, 14, 18, 1 + random.below(31)], [1, 6, 2, 1]),
    retryCount: pick(random, [0, 1, 7, random.below(8)], isLossy ? [1, 1, 6, 2] : [1, 1, 3, 2]),
    rnrRetry: pick(random, [7, random.below(8)], [4, 1]),
    rnrTimer: pick(random, [1 + random.below(12), random.below(32)], [4, 1]),
    readsOut: reads,
    readsIn: reads,
  };
}

function drawSwarm(random: Random): Swarm {
  const some = <T>(values: readonly T[], probability: number): T[] => {
    const kept = values.filter(() => random.chance(probability));
    return kept.length > 0 ? kept : [pick(random, values)];
  };
  const flag = (probability = 0.5): boolean => random.chance(probability);
  return {
    transports: flag(0.6) ? ['RC'] : some(['RC', 'UC', 'UD'] as const, 0.6),
    verbs: new Set(flag(0.5) ? verbsOf.RC : [...some(verbsOf.RC, 0.4), IBV_WR_SEND]),
    hasSrqs: flag(0.25),
    hasEvents: flag(0.4),
    hasInline: flag(),
    hasLists: flag(),
    hasFences: flag(0.3),
    hasPeeks: flag(0.3),
    hasOverlaps: flag(0.4),
    hasResize: flag(0.15),
    hasModeration: flag(0.2),
    hasChurn: flag(0.2),
    hasDrains: flag(0.6),
    hasLateReceives: flag(0.4),
    sizes: pick(random, ['tiny', 'mtu', 'large'] as const, [3, 5, 1]),
    operations: pick(random, [random.below(10) + 1, random.below(60) + 1, random.below(300) + 1], [3, 4, 1]),
  };
}

const edge = (random: Random, most: number): number =>
  pick(random, [0, 1, most - 1, most, random.below(most + 1)]);
