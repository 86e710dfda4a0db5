/**
 * Memory windows in stories of players: bound over an area that nothing else reaches, used by the peer, and invalidated
 * by a local invalidate, a SEND with Invalidate, another binding, a deallocation, or not at all.
 *
 *     owner: bind ── tells the key ─────────── (awaits that it is used) ── takes back ── tells ── fills the area again
 *     user:                └── requests ── tells that they have ended ─┘                   └── one more, by the stale key
 *
 * An episode is a generator: it stops where other operations may come in between. Where requests may fail the owner
 * does not wait: windows go in the middle of traffic, and stale keys are used.
 */
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import {
  type BindPlan,
  type Flaw,
  isCurrent,
  type Link,
  type LinkEnd,
  lengthOf,
  type SendPlan,
  type SgePlan,
  type Step,
} from '../story.ts';
import { consumesReceive, isAtomicVerb, isFetching, verbs } from '../verbs.ts';
import { pick } from './choice.ts';
import { areaIndex, type Draft, type ProgramDraft, remoteAll, verbsOf } from './draft.ts';

const atomicWords = 4;

type Taking = 'localInvalidate' | 'remoteInvalidate' | 'unbind' | 'elsewhere' | 'deallocate' | 'left';

/** One binding of a window. */
interface Round {
  readonly bindId: number;
  readonly bind: BindPlan;
  /** Whether the owner waits until the user has ended. */
  readonly isAwaited: boolean;
  readonly taking: Taking;
  /** The flaw of the whole round: after it the connection has failed. */
  readonly flaw: Flaw;
}

const flawsOfUse: readonly Flaw[] = ['windowKey', 'windowBounds', 'windowRight'];
const flawsOfBind: readonly Flaw[] = ['bindBounds', 'bindRight'];
const flaws: readonly Flaw[] = [...flawsOfUse, ...flawsOfBind, 'invalidKey', 'remoteInvalidKey'];

/** Returns an episode of a link; undefined if the link cannot have one. */
export function windowEpisode(draft: Draft, turn: number): Generator<void> | undefined {
  const isUsable = ({ program, qp }: LinkEnd): boolean => {
    const plan = draft.programs[program]!;
    const { transport, access } = plan.qps[qp]!;
    return transport === 'RC' && access === remoteAll && isCurrent(plan, qp, turn);
  };
  const links = draft.current.filter(({ ends }: Link) => ends.every(isUsable));
  if (links.length === 0) return undefined;
  const { ends } = pick(draft.random, links);
  const side = draft.random.below(2);
  return new Episode(draft, ends[side]!, ends[1 - side]!).play();
}

class Episode {
  readonly #draft: Draft;
  readonly #random: Random;
  readonly #owner: LinkEnd;
  readonly #user: LinkEnd;
  readonly #isType2: boolean;
  readonly #isTroubled: boolean;

  constructor(draft: Draft, owner: LinkEnd, user: LinkEnd) {
    this.#draft = draft;
    this.#random = draft.random;
    this.#owner = owner;
    this.#user = user;
    this.#isType2 = draft.random.chance(0.6);
    this.#isTroubled = draft.climate === 'flawed' || draft.climate === 'broken';
  }

  /** A window bound once or some times; one of type 1 may be left to the next binding. */
  *play(): Generator<void> {
    const area = this.#area();
    const window = this.#owners.windows.push({ isType2: this.#isType2 }) - 1;
    const roundCount = this.#random.between(1, this.#random.chance(0.5) ? 3 : 1);
    for (let left = roundCount; left > 0; left--) {
      const round = this.#drawRound(window, area, left === 1);
      yield* this.#play(round);
      if (round.taking === 'deallocate') return;
    }
  }

  get #owners(): ProgramDraft {
    return this.#draft.programs[this.#owner.program]!;
  }

  /** The owner's area for windows, which nothing else reaches. */
  #area(): number {
    const { areas } = this.#owners;
    const known = areas.findIndex(({ access }) => (access & ibv.IBV_ACCESS_MW_BIND) !== 0);
    if (known >= 0) return known;
    const random = this.#random;
    return (
      areas.push({
        kind: 'target',
        lengthBytes: 256 + 4096 * random.below(4) + random.below(300),
        shiftBytes: random.chance(0.5) ? 0 : 8 * random.below(512),
        access: ibv.IBV_ACCESS_LOCAL_WRITE | ibv.IBV_ACCESS_MW_BIND,
        isForeign: false,
        atomicWords,
      }) - 1
    );
  }

  #drawRound(window: number, area: number, isLast: boolean): Round {
    const random = this.#random;
    const { lengthBytes } = this.#owners.areas[area]!;
    const offset = random.chance(0.5) ? 0 : 8 * random.below((lengthBytes >> 3) - 8);
    const rest = lengthBytes - offset;
    const takings: Taking[] = this.#isType2
      ? ['localInvalidate', 'remoteInvalidate']
      : ['unbind', 'elsewhere'];
    if (isLast) takings.push('deallocate', 'left');
    return {
      bindId: this.#draft.nextId(),
      isAwaited: !this.#isTroubled || random.chance(0.4),
      taking: pick(random, takings),
      flaw: this.#draft.climate === 'flawed' && random.chance(0.4) ? pick(random, flaws) : 'none',
      bind: {
        window,
        area,
        offset,
        length: random.chance(0.3) ? rest : random.between(64, rest),
        access: random.chance(0.5) ? remoteAll : remoteAll & random.below(32),
        isZeroBased: this.#isType2 && random.chance(0.4),
      },
    };
  }

  #put({ program }: LinkEnd, step: Step): void {
    this.#draft.programs[program]!.steps.push(step);
  }

  #post(end: LinkEnd, wrs: readonly SendPlan[]): void {
    if (wrs.length > 0) this.#put(end, { do: 'post', qp: end.qp, wrs });
  }

  *#play(round: Round): Generator<void> {
    const random = this.#random;
    const [
      owner,
      user,
      {
        bindId: bind,
        bind: { area },
      },
    ] = [this.#owner, this.#user, round];
    this.#post(owner, this.#bindRequests(round));
    this.#put(owner, { do: 'tell', what: 'bound', bind });
    yield;
    const uses = this.#drawUses(round);
    for (const list of random.chance(0.5) ? [uses] : uses.map((use) => [use])) this.#post(user, list);
    // The user's requests end before another binding replaces the key, or before the user invalidates the key itself.
    const isAwaited = round.isAwaited && round.taking !== 'remoteInvalidate';
    if (isAwaited) this.#put(user, { do: 'tell', what: 'used', bind });
    yield;
    if (isAwaited) this.#put(owner, { do: 'await', what: 'used', bind });
    else if (random.chance(0.5)) this.#put(owner, { do: 'sleep', ns: random.below(10_000) });
    if (round.taking === 'left' || round.taking === 'elsewhere') return;
    this.#takeBack(round);
    yield;
    const isStaleUsed = this.#isTroubled && random.chance(0.4);
    const other = round.taking === 'remoteInvalidate' ? owner : user;
    if (round.taking === 'remoteInvalidate' || isStaleUsed)
      this.#put(other, { do: 'await', what: 'gone', bind });
    if (random.chance(0.7)) this.#put(owner, { do: 'refillTarget', area });
    if (isStaleUsed)
      this.#post(
        user,
        [this.#drawUse(round, 'none')].filter((use) => use !== undefined),
      );
    yield;
  }

  #takeBack(round: Round): void {
    const { taking, bindId: bind } = round;
    const by = taking === 'remoteInvalidate' ? this.#user : this.#owner;
    if (taking === 'deallocate') this.#put(by, { do: 'deallocateWindow', window: round.bind.window, bind });
    else this.#post(by, [this.#takingRequest(round)]);
    this.#put(by, { do: 'tell', what: 'gone', bind });
  }

  /** The bind; one of type 2 at times in a list, followed by an ordinary WRITE of 0 bytes. */
  #bindRequests({ bindId, bind, flaw }: Round): SendPlan[] {
    const drawn = this.#draft.request(ibv.IBV_WR_BIND_MW, flawsOfBind.includes(flaw) ? flaw : 'none');
    const request = { ...drawn, id: bindId, bind };
    if (!this.#isType2 || !this.#random.chance(0.3)) return [request];
    const nothing = this.#draft.request(ibv.IBV_WR_RDMA_WRITE);
    return [request, { ...nothing, remote: { area: areaIndex.target, offset: 8 * atomicWords } }];
  }

  #takingRequest({ bind, bindId: through, taking, flaw }: Round): SendPlan {
    const { random } = this.#draft;
    const request = (opcode: number, own: Flaw): SendPlan =>
      this.#draft.request(opcode, flaw === own ? flaw : 'none');
    if (taking === 'unbind') return { ...request(ibv.IBV_WR_BIND_MW, 'none'), bind: { ...bind, length: 0 } };
    if (taking === 'localInvalidate') return { ...request(ibv.IBV_WR_LOCAL_INV, 'invalidKey'), through };
    const length = random.chance(0.4) ? 0 : random.below(65);
    const send: SendPlan = {
      ...request(ibv.IBV_WR_SEND_WITH_INV, 'remoteInvalidKey'),
      // READs and atomics before it use the key that it invalidates (10.8.3.3, table 79).
      isFenced: !this.#isTroubled || random.chance(0.5),
      through,
      sges: length === 0 ? [] : [this.#local(areaIndex.source, length)],
    };
    this.#draft.addReceive(this.#owner, send, lengthOf(send.sges), 'RC');
    return send;
  }

  /** The last one is signalled: the user sees the end of all. */
  #drawUses(round: Round): SendPlan[] {
    const count = this.#random.between(1, this.#random.chance(0.3) ? 6 : 2);
    const uses = Array.from({ length: count }, () => this.#drawUse(round, 'none'));
    if (flawsOfUse.includes(round.flaw)) uses.push(this.#drawUse(round, round.flaw));
    const all = uses.filter((use) => use !== undefined);
    return all.map((use, index) => (index === all.length - 1 ? { ...use, isSignalled: true } : use));
  }

  #drawUse({ bind, bindId }: Round, flaw: Flaw): SendPlan | undefined {
    const random = this.#random;
    const possible = verbsOf.RC.filter((verb) => {
      const { right } = verbs.get(verb)!;
      const isRight = right !== 0 && ((bind.access & right) !== 0) !== (flaw === 'windowRight');
      return isRight && !consumesReceive(verb) && (!isAtomicVerb(verb) || bind.offset < 8 * atomicWords);
    });
    if (possible.length === 0) return undefined;
    const opcode = pick(random, possible);
    const isAtomic = isAtomicVerb(opcode);
    const end = bind.offset + bind.length;
    const first = Math.max(bind.offset, isAtomic ? 0 : 8 * atomicWords);
    const room = end - first;
    if (room < 8) return undefined;
    const length = isAtomic ? 8 : random.chance(0.2) ? room : random.between(1, Math.min(room, 6000));
    const offset = isAtomic
      ? bind.offset + 8 * random.below(atomicWords - (bind.offset >> 3))
      : first + random.below(room - length + 1);
    const beyond = isAtomic ? 8 * Math.ceil(end / 8) : end - length + 1;
    return {
      ...this.#draft.request(opcode, flaw),
      isSignalled: random.chance(0.6),
      isFenced: random.chance(0.2),
      sges: [this.#local(isFetching(opcode) ? areaIndex.sink : areaIndex.source, length)],
      through: bindId,
      remote: { area: bind.area, offset: flaw === 'windowBounds' ? beyond : offset },
      ...(isAtomic ? { compareAdd: random.uint32().toString(16), swap: random.uint32().toString(16) } : {}),
    };
  }

  #local(area: number, length: number): SgePlan {
    const offset = this.#draft.place(this.#draft.programs[this.#user.program]!, area, length);
    return { area, offset, length };
  }
}
