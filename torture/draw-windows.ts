/**
 * Memory windows in stories of players: bound over an area that nothing else reaches, used by the peer, and taken back by a local
 * invalidate, a SEND with Invalidate, another binding, a deallocation, or not at all. Added to a finished story from random numbers
 * of its own, so that the rest of it stays as it was.
 *
 *     owner: bind ── tells the key ─────────── (awaits that it is used) ── takes back ── tells ── fills the area anew
 *     user:                └── requests ── tells that they have ended ─┘                   └── one more, by the stale key
 *
 * Steps are put into the lists of both in the order of one time, within one turn, so that none waits for what comes later. Where
 * requests may fail the owner does not wait: windows go in the middle of traffic, and stale keys are used.
 */
import type { Random } from '../sim/index.ts';
import {
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND_WITH_INV,
} from '../userlib/index.ts';
import { consumesReceive, isAtomicVerb } from './draw-story.ts';
import {
  type AreaPlan,
  type BindPlan,
  type Flaw,
  isCurrent,
  type LinkEnd,
  lengthOf,
  type ProgramPlan,
  type ReceivePlan,
  type SendPlan,
  type Step,
  type Story,
  type WindowPlan,
} from './story.ts';

/** Of the stories of players that have a reliable connection. */
const share = 0.3;
const atomicWords = 4;
/** Of each receive of a shared queue: room for the longest message there, and a global route. */
const sharedBytes = 640;
const remoteAll = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
const [sourceArea, sinkArea] = [0, 2];

/** @returns the story, in some cases with windows */
export function withWindows(random: Random, story: Story): Story {
  if (!random.chance(share)) return story;
  const draft = new WindowDraft(random, story);
  const count = 1 + random.below(random.chance(0.3) ? 6 : 2);
  for (let made = 0; made < count; made++) draft.addEpisode();
  return draft.story();
}

/** A step that is put into a list at a part of a segment's length. */
interface Insertion {
  readonly segment: number;
  readonly at: number;
  readonly step: Step;
}

interface ProgramDraft {
  readonly plan: ProgramPlan;
  readonly areas: AreaPlan[];
  readonly windows: WindowPlan[];
  readonly insertions: Insertion[];
  windowArea: number;
}

type Take = 'localInvalidate' | 'remoteInvalidate' | 'unbind' | 'elsewhere' | 'deallocate' | 'left';

/** One binding of a window. */
interface Round {
  readonly owner: LinkEnd;
  readonly user: LinkEnd;
  readonly segment: number;
  readonly bindId: number;
  readonly bind: BindPlan;
  readonly isType2: boolean;
  /** Whether the owner waits until the user has ended. */
  readonly isAwaited: boolean;
  readonly take: Take;
}

class WindowDraft {
  readonly #random: Random;
  readonly #story: Story;
  readonly #programs: ProgramDraft[];
  #nextId: number;

  constructor(random: Random, story: Story) {
    this.#random = random;
    this.#story = story;
    this.#programs = story.programs.map((plan) => ({
      plan,
      areas: [...plan.areas],
      windows: [],
      insertions: [],
      windowArea: -1,
    }));
    this.#nextId = 1 + lastIdOf(story);
  }

  /** A window of one side of a connection, bound once or some times. */
  addEpisode(): void {
    const random = this.#random;
    const segment = random.below(1 + (this.#story.turns?.length ?? 0));
    const links = this.#story.links.filter(({ ends }) => ends.every((end) => this.#isUsable(end, segment)));
    if (links.length === 0) return;
    const { ends } = links[random.below(links.length)]!;
    const side = random.below(2);
    const [owner, user] = [ends[side]!, ends[1 - side]!];
    const isType2 = random.chance(0.6);
    const window = this.#addWindow(owner.program, isType2);
    const roundCount = 1 + random.below(random.chance(0.5) ? 3 : 1);
    let from = 0.8 * random.unit();
    for (let round = 0; round < roundCount; round++) {
      const until = from + (1 - from) * (round === roundCount - 1 ? 1 : 0.3 + 0.4 * random.unit());
      const take = this.#drawTake(isType2, round === roundCount - 1);
      const drawn = this.#drawRound(owner, user, segment, window, isType2, take);
      this.#addRound(drawn, from, until);
      if (take === 'deallocate') return;
      from = until;
    }
  }

  story(): Story {
    const programs = this.#programs.map(({ plan, areas, windows, insertions }): ProgramPlan => {
      if (insertions.length === 0 && windows.length === 0) return { ...plan, areas };
      return { ...plan, areas, windows, steps: inserted(plan.steps, insertions) };
    });
    return withReceives(this.#random, { ...this.#story, programs }, this.#nextId);
  }

  #isUsable({ program, qp }: LinkEnd, segment: number): boolean {
    const plan = this.#story.programs[program]!;
    const { transport, access } = plan.qps[qp]!;
    return transport === 'RC' && access === remoteAll && isCurrent(plan, qp, segment);
  }

  #addWindow(program: number, isType2: boolean): number {
    const random = this.#random;
    const draft = this.#programs[program]!;
    if (draft.windowArea < 0) {
      draft.windowArea = draft.areas.length;
      draft.areas.push({
        kind: 'target',
        lengthBytes: 256 + 4096 * random.below(4) + random.below(300),
        shiftBytes: random.chance(0.5) ? 0 : 8 * random.below(512),
        access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
        isForeign: false,
        atomicWords,
      });
    }
    draft.windows.push({ isType2 });
    return draft.windows.length - 1;
  }

  get #isFlawed(): boolean {
    return this.#story.climate === 'flawed' || this.#story.climate === 'broken';
  }

  #drawTake(isType2: boolean, isLast: boolean): Take {
    const all: Take[] = isType2 ? ['localInvalidate', 'remoteInvalidate'] : ['unbind', 'elsewhere'];
    if (isLast) all.push('deallocate', 'left');
    return all[this.#random.below(all.length)]!;
  }

  #drawRound(
    owner: LinkEnd,
    user: LinkEnd,
    segment: number,
    window: number,
    isType2: boolean,
    take: Take,
  ): Round {
    const random = this.#random;
    const { areas, windowArea } = this.#programs[owner.program]!;
    const { lengthBytes } = areas[windowArea]!;
    const offset = random.chance(0.5) ? 0 : 8 * random.below((lengthBytes >> 3) - 8);
    const rest = lengthBytes - offset;
    const rights = [IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC];
    return {
      owner,
      user,
      segment,
      bindId: this.#nextId++,
      isType2,
      isAwaited: !this.#isFlawed || random.chance(0.4),
      take,
      bind: {
        window,
        area: windowArea,
        offset,
        length: random.chance(0.3) ? rest : 64 + random.below(rest - 63),
        access: random.chance(0.5)
          ? remoteAll
          : rights.reduce((sum, right) => sum | (random.chance(0.7) ? right : 0), 0),
        isZeroBased: isType2 && random.chance(0.4),
      },
    };
  }

  #put(end: LinkEnd, segment: number, at: number, step: Step): void {
    this.#programs[end.program]!.insertions.push({ segment, at, step });
  }

  /** The steps of both sides between two instants of a segment's time. */
  #addRound(round: Round, from: number, until: number): void {
    const random = this.#random;
    const { owner, user, segment, bindId, isAwaited } = round;
    const spread = (part: number): number => from + (until - from) * part * (0.7 + 0.3 * random.unit());
    const flaw = this.#climateFlaw();
    this.#put(owner, segment, from, { do: 'post', qp: owner.qp, wrs: this.#bindRequests(round, flaw) });
    this.#put(owner, segment, from, { do: 'tell', what: 'bound', bind: bindId });
    const used = spread(0.3);
    const uses = this.#drawUses(round, flaw);
    const isList = random.chance(0.5) && uses.length > 0;
    if (isList) this.#put(user, segment, used, { do: 'post', qp: user.qp, wrs: uses });
    else for (const use of uses) this.#put(user, segment, used, { do: 'post', qp: user.qp, wrs: [use] });
    // The user ends what it began before another binding takes the key, also where it takes the key back itself.
    const taken = spread(0.6);
    if (isAwaited && round.take !== 'remoteInvalidate') {
      this.#put(user, segment, used, { do: 'tell', what: 'used', bind: bindId });
      this.#put(owner, segment, taken, { do: 'await', what: 'used', bind: bindId });
    } else if (random.chance(0.5))
      this.#put(owner, segment, taken, { do: 'sleep', ns: random.below(10_000) });
    this.#takeBack(round, flaw, Math.max(used, taken), until);
  }

  #takeBack(round: Round, flaw: Flaw, taken: number, until: number): void {
    const random = this.#random;
    const { owner, user, segment, bindId, bind, take } = round;
    if (take === 'left' || take === 'elsewhere') return;
    const gone: Step = { do: 'tell', what: 'gone', bind: bindId };
    const [by, other] = take === 'remoteInvalidate' ? [user, owner] : [owner, user];
    if (take === 'deallocate')
      this.#put(owner, segment, taken, { do: 'deallocateWindow', window: bind.window, bind: bindId });
    else {
      const request = this.#takingRequest(round, flaw);
      this.#put(by, segment, taken, { do: 'post', qp: by.qp, wrs: [request] });
    }
    this.#put(by, segment, taken, gone);
    const after = Math.min(until, taken + (until - taken) * random.unit());
    const isStaleUsed = this.#isFlawed && random.chance(0.4);
    if (take === 'remoteInvalidate' || isStaleUsed)
      this.#put(other, segment, after, { do: 'await', what: 'gone', bind: bindId });
    if (random.chance(0.7)) this.#put(owner, segment, after, { do: 'refillTarget', area: bind.area });
    if (!isStaleUsed) return;
    const use = this.#drawUse(round, 'none');
    if (use !== undefined) this.#put(user, segment, until, { do: 'post', qp: user.qp, wrs: [use] });
  }

  /** One flaw for a whole round: after it the connection is gone. */
  #climateFlaw(): Flaw {
    const random = this.#random;
    if (this.#story.climate !== 'flawed' || !random.chance(0.4)) return 'none';
    const all: Flaw[] = [
      'windowKey',
      'windowBounds',
      'windowRight',
      'bindBounds',
      'bindRight',
      'invalidKey',
      'remoteInvalidKey',
    ];
    return all[random.below(all.length)]!;
  }

  #request(opcode: number, flaw: Flaw): SendPlan {
    return {
      id: this.#nextId++,
      opcode,
      sges: [],
      isSignalled: true,
      isFenced: false,
      isSolicited: false,
      isInline: false,
      flaw,
    };
  }

  /** The bind; one of type 2 at times in a list with an ordinary WRITE or READ of nothing behind it. */
  #bindRequests({ bindId, bind, isType2 }: Round, flaw: Flaw): SendPlan[] {
    const isWrong = flaw === 'bindBounds' || flaw === 'bindRight';
    const request = { ...this.#request(IBV_WR_BIND_MW, isWrong ? flaw : 'none'), id: bindId, bind };
    if (!isType2 || !this.#random.chance(0.3)) return [request];
    const nothing = this.#request(IBV_WR_RDMA_WRITE, 'none');
    return [request, { ...nothing, remote: { area: 1, offset: 8 * atomicWords } }];
  }

  #takingRequest(round: Round, flaw: Flaw): SendPlan {
    const random = this.#random;
    const { user, bind, bindId, take } = round;
    if (take === 'unbind') return { ...this.#request(IBV_WR_BIND_MW, 'none'), bind: { ...bind, length: 0 } };
    if (take === 'localInvalidate')
      return {
        ...this.#request(IBV_WR_LOCAL_INV, flaw === 'invalidKey' ? flaw : 'none'),
        through: bindId,
      };
    const length = random.chance(0.4) ? 0 : random.below(65);
    const source = this.#programs[user.program]!.areas[sourceArea]!;
    const sges =
      length === 0
        ? []
        : [{ area: sourceArea, offset: random.below(source.lengthBytes - length + 1), length }];
    return {
      ...this.#request(IBV_WR_SEND_WITH_INV, flaw === 'remoteInvalidKey' ? flaw : 'none'),
      // What READs and atomics in front of it bring, they bring by the key that it takes (10.8.3.3, table 79).
      isFenced: !this.#isFlawed || random.chance(0.5),
      through: bindId,
      sges,
    };
  }

  /** The last one is signalled: the user sees the end of all. */
  #drawUses(round: Round, flaw: Flaw): SendPlan[] {
    const random = this.#random;
    const count = 1 + random.below(random.chance(0.3) ? 6 : 2);
    const uses = Array.from({ length: count }, () => this.#drawUse(round, 'none')).filter(
      (use) => use !== undefined,
    );
    const isOfUse = flaw === 'windowKey' || flaw === 'windowBounds' || flaw === 'windowRight';
    const wrong = isOfUse ? this.#drawUse(round, flaw) : undefined;
    const all = wrong === undefined ? uses : [...uses, wrong];
    return all.map((use, index) => (index === all.length - 1 ? { ...use, isSignalled: true } : use));
  }

  #drawUse(round: Round, flaw: Flaw): SendPlan | undefined {
    const random = this.#random;
    const { user, bind, bindId } = round;
    const verbs = verbsByRight.filter(
      ([right, verb]) =>
        ((bind.access & right) !== 0) !== (flaw === 'windowRight') &&
        (!isAtomicVerb(verb) || bind.offset < 8 * atomicWords),
    );
    if (verbs.length === 0) return undefined;
    const [, opcode] = verbs[random.below(verbs.length)]!;
    const isAtomic = isAtomicVerb(opcode);
    const first = Math.max(bind.offset, isAtomic ? 0 : 8 * atomicWords);
    const room = bind.offset + bind.length - first;
    if (room < 8) return undefined;
    const length = isAtomic ? 8 : random.chance(0.2) ? room : 1 + random.below(Math.min(room, 6000));
    const words = atomicWords - (bind.offset >> 3);
    const offset = isAtomic ? bind.offset + 8 * random.below(words) : first + random.below(room - length + 1);
    const end = bind.offset + bind.length;
    const beyond = isAtomic ? 8 * Math.ceil(end / 8) : end - length + 1;
    return {
      ...this.#request(opcode, flaw),
      isSignalled: random.chance(0.6),
      isFenced: random.chance(0.2),
      sges: [this.#localOf(user.program, opcode, length)],
      through: bindId,
      remote: {
        area: bind.area,
        offset: flaw === 'windowBounds' ? beyond : offset,
      },
      ...(isAtomic ? { compareAdd: random.uint32().toString(16), swap: random.uint32().toString(16) } : {}),
    };
  }

  /** Of a source anywhere, of a sink where nothing came before. */
  #localOf(program: number, opcode: number, length: number): SendPlan['sges'][number] {
    const { areas } = this.#programs[program]!;
    if (opcode !== IBV_WR_RDMA_WRITE) return takenFrom(areas, sinkArea, length);
    const { lengthBytes } = areas[sourceArea]!;
    if (lengthBytes <= length) return takenFrom(areas, sourceArea, length);
    return { area: sourceArea, offset: this.#random.below(lengthBytes - length + 1), length };
  }
}

const verbsByRight: readonly (readonly [right: number, verb: number])[] = [
  [IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE],
  [IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ],
  [IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD],
  [IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP],
];

/** New bytes at the end of an area. */
function takenFrom(areas: AreaPlan[], area: number, length: number): SendPlan['sges'][number] {
  const plan = areas[area]!;
  areas[area] = { ...plan, lengthBytes: plan.lengthBytes + length };
  return { area, offset: plan.lengthBytes, length };
}

function lastIdOf({ programs }: Story): number {
  let last = 0;
  for (const { early, steps } of programs)
    for (const step of [...early, ...steps])
      if ('wrs' in step) for (const { id } of step.wrs) last = Math.max(last, id);
  return last;
}

/** Steps put between others, in the order of their times; none while a send queue is stopped, where nothing ends. */
function inserted(steps: readonly Step[], insertions: readonly Insertion[]): Step[] {
  const bounds = [0];
  for (const [index, step] of steps.entries()) if (step.do === 'turn') bounds.push(index + 1);
  const isStopped = stoppedBefore(steps);
  const placed = insertions
    .toSorted((left, right) => left.segment - right.segment || left.at - right.at)
    .map(({ segment, at, step }) => {
      const start = bounds[segment] ?? steps.length;
      const end = (bounds[segment + 1] ?? steps.length + 1) - 1;
      let place = start + Math.floor(Math.min(1, at) * (end - start));
      while (isStopped[place] === true) place++;
      return { place, step };
    });
  return Array.from({ length: steps.length + 1 }, (_, index): Step[] => [
    ...placed.filter(({ place }) => place === index).map(({ step }) => step),
    ...steps.slice(index, index + 1),
  ]).flat();
}

/** Of each place whether some queue is stopped there. */
function stoppedBefore(steps: readonly Step[]): boolean[] {
  const stopped = new Set<number>();
  const found = [false];
  for (const step of steps) {
    if (step.do === 'modify' && step.to === 'SQD') stopped.add(step.qp);
    else if (step.do === 'modify') stopped.delete(step.qp);
    found.push(stopped.size > 0);
  }
  // A stop that no start follows is one to the end of the list: there is no other place then.
  return found[steps.length] === true ? found.map(() => false) : found;
}

/** A receive for each SEND with Invalidate, at its place among the receives of the queue that it takes. */
function withReceives(random: Random, story: Story, firstId: number): Story {
  let nextId = firstId;
  const programs = story.programs.map((plan) => ({
    ...plan,
    areas: [...plan.areas],
    early: [...plan.early],
    steps: [...plan.steps],
  }));
  for (const { ends } of story.links)
    for (const [from, to] of [ends, ends.toReversed()] as [LinkEnd, LinkEnd][]) {
      const sends = programs[from.program]!.steps.flatMap((step) =>
        step.do === 'post' && step.qp === from.qp
          ? step.wrs.filter(({ opcode }) => consumesReceive(opcode))
          : [],
      );
      for (const [place, send] of sends.entries()) {
        if (send.opcode !== IBV_WR_SEND_WITH_INV) continue;
        const peer = programs[to.program]!;
        const isShared = peer.qps[to.qp]!.srq >= 0;
        const lengthBytes = isShared ? sharedBytes : random.below(40) + lengthOf(send.sges);
        const sges = lengthBytes === 0 ? [] : [takenFrom(peer.areas, sinkArea, lengthBytes)];
        insertReceive(peer, to.qp, place, { id: nextId++, sges, flaw: 'none' });
      }
    }
  return { ...story, programs };
}

/** @param place of the message among those that take a receive of the QP */
function insertReceive(
  program: Pick<ProgramPlan, 'qps'> & { early: Step[]; steps: Step[] },
  qp: number,
  place: number,
  receive: ReceivePlan,
): void {
  const { srq } = program.qps[qp]!;
  // Any message may take any receive of a shared queue.
  if (srq >= 0) return void program.early.push({ do: 'receiveShared', srq, wrs: [receive] });
  const step: Step = { do: 'receive', qp, wrs: [receive] };
  if (place === 0) return void program.early.unshift(step);
  let before = place;
  for (const list of [program.early, program.steps])
    for (const [index, other] of list.entries()) {
      if (other.do !== 'receive' || other.qp !== qp) continue;
      before -= other.wrs.length;
      if (before <= 0) return void list.splice(index + 1, 0, step);
    }
  program.steps.push(step);
}
