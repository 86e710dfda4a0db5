/** Draws a story of players: climate, hardware, programs with their links and steps, turns, faults, cable. */
import { partitions } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_ACCESS_MW_BIND } from '../../userlib/index.ts';
import { withBearableRnr } from '../patience.ts';
import {
  type Again,
  climates,
  isOnDemandArea,
  type Link,
  type ProgramPlan,
  type Story,
  type Turn,
} from '../story.ts';
import { pick } from './choice.ts';
import { Draft } from './draft.ts';
import { withFaults } from './draw-faults.ts';
import { acceptable, drawHardware } from './draw-hardware.ts';
import { withEthernet } from './ethernet.ts';
import { type Facts, slowKnots } from './knobs.ts';
import { addOtherSteps, deregister } from './steps.ts';
import { drawSwarm } from './swarm.ts';
import { windowEpisode } from './windows.ts';

/** Numbers that differ in no low bit look equal to a block that uses the low bits only. */
const qpnGaps = [255, 1023, 2047];

export function drawPlayers(random: Random, seed: number): Story {
  const climate = pick(random, climates, [5, 3, 4, 2]);
  const draft = new Draft(random, climate, drawSwarm(random, climate));
  const { programs, turns } = new Telling(draft).tell();
  const facts: Facts = {
    climate,
    isOfPlayers: true,
    hasOnDemand: programs.some(({ areas }) => areas.some(isOnDemandArea)),
    sleeps: draft.has('sleeps'),
  };
  const hardware = drawHardware(random, facts);
  const hasKnot = (draft.has('lostAnswers') || draft.has('suddenDeregistration')) && random.chance(0.6);
  const drawn: Story = {
    seed,
    climate,
    set: hasKnot ? acceptable({ ...pick(random, slowKnots), ...hardware }) : hardware,
    faults: [],
    again: undefined,
    programs,
    links: draft.links,
    ...(turns.length > 0 ? { turns } : {}),
  };
  const faulty = withFaults(random, drawn, draft.has('lostAnswers') ? 1 - askingNode : undefined);
  return withBearableRnr(withEthernet(random, faulty, facts));
}

/** Node that sends requests if only one side does. */
const askingNode = 0;

/** Fills a draft with operations, one after the other. */
class Telling {
  readonly #draft: Draft;
  readonly #random: Random;
  readonly #turns: Turn[] = [];
  /** Episodes of windows that have begun. */
  readonly #episodes: Generator<void>[] = [];
  #episodesLeft: number;

  constructor(draft: Draft) {
    const { random } = draft;
    this.#draft = draft;
    this.#random = random;
    this.#episodesLeft = draft.has('windows') ? random.between(1, random.chance(0.3) ? 6 : 2) : 0;
  }

  tell(): { readonly programs: readonly ProgramPlan[]; readonly turns: readonly Turn[] } {
    const { swarm } = this.#draft;
    const random = this.#random;
    for (const node of [0, 1])
      for (let left = random.between(1, random.chance(0.3) ? 3 : 1); left > 0; left--)
        this.#draft.addProgram(node);
    for (let left = random.between(1, random.chance(0.15) ? 24 : 4); left > 0; left--) this.#draft.addLink();
    const turnCount = this.#draft.has('turns') ? random.between(1, random.chance(0.3) ? 5 : 2) : 0;
    this.#addOperations(swarm.operations, turnCount === 0);
    for (let turn = 1; turn <= turnCount; turn++) {
      this.#takeTurn(turn);
      this.#draft.budgetBytes += 1 << 16;
      this.#addOperations(random.between(1, Math.min(40, swarm.operations)), turn === turnCount);
    }
    return { programs: this.#programs(), turns: this.#turns };
  }

  /** @param isLast whether all episodes of windows that are left begin here */
  #addOperations(count: number, isLast: boolean): void {
    const random = this.#random;
    const suddenAt = this.#draft.has('suddenDeregistration') ? random.below(count) : -1;
    for (let at = 0; at < count; at++) {
      this.#addPost(at === suddenAt);
      addOtherSteps(this.#draft, this.#turns.length);
      if (this.#episodesLeft > 0 && random.below(count) < 2) this.#beginEpisode();
      if (this.#episodes.length > 0 && random.chance(0.5)) this.#advance();
    }
    while (isLast && this.#episodesLeft > 0) this.#beginEpisode();
    while (this.#episodes.length > 0) this.#advance();
  }

  #beginEpisode(): void {
    this.#episodesLeft--;
    const episode = windowEpisode(this.#draft, this.#turns.length);
    if (episode !== undefined) this.#episodes.push(episode);
  }

  #advance(): void {
    const at = this.#random.below(this.#episodes.length);
    if (this.#episodes[at]!.next().done === true) this.#episodes.splice(at, 1);
  }

  #addPost(isDeregistered: boolean): void {
    const { programs, current } = this.#draft;
    const random = this.#random;
    const { ends } = pick(random, current);
    const from = pick(random, ends);
    const { node, steps, cqs, qps } = programs[from.program]!;
    if (this.#draft.has('lostAnswers') && node !== askingNode) return;
    const post = this.#draft.drawPost(from, from === ends[0] ? ends[1] : ends[0]);
    if (post === undefined) return;
    steps.push(post);
    const cq = qps[from.qp]!.sendCq;
    if (this.#draft.has('sleeps') && cqs[cq]!.hasChannel && random.chance(0.3))
      steps.push({ do: 'awaitAll', cq });
    if (isDeregistered) steps.push(...deregister({ draft: this.#draft, random }));
  }

  #takeTurn(turn: number): void {
    const random = this.#random;
    const { programs, current, renewedAreas } = this.#draft;
    const share = pick(random, [0.3, 0.7, 1]);
    for (const [place, link] of current.entries())
      if (random.chance(share)) current[place] = this.#renew(link, turn);
    const some = (all: readonly unknown[]): number[] =>
      all.flatMap((_, index) => (random.chance(0.5) ? [index] : []));
    this.#turns.push({
      programs: programs.map(({ cqs, areas, steps }, program) => {
        // A region with windows bound to it is not deregistered.
        const renewed = some(areas.filter(({ access }) => (access & IBV_ACCESS_MW_BIND) === 0));
        for (const area of renewed) renewedAreas.add(`${program}.${area}`);
        steps.push({ do: 'turn', turn });
        return { cqs: some(cqs), areas: renewed, isMoved: random.chance(0.5) };
      }),
    });
  }

  #renew({ ends }: Link, turn: number): Link {
    const random = this.#random;
    const common = this.#draft.drawConnection();
    const [left, right] = ends.map(({ program, qp }) => {
      const { qps } = this.#draft.programs[program]!;
      const old = qps[qp]!;
      const how = random.chance(0.5) ? 'create' : 'reset';
      const index = this.#draft.addQp(program, old.transport, common);
      const created = qps[index]!;
      const made =
        how === 'create' ? created : { ...old, ...common, psn: created.psn, access: created.access };
      qps[index] = { ...made, renewal: { turn, of: qp, how } };
      return { program, qp: index };
    });
    const link: Link = { ends: [left!, right!] };
    this.#draft.links.push(link);
    return link;
  }

  #programs(): ProgramPlan[] {
    const random = this.#random;
    const { programs } = this.#draft;
    const gap = this.#draft.has('qpnGap') ? pick(random, qpnGaps) : 0;
    // One program per node: the QPs of several at once do not fit in memory.
    const passers = [0, 1].map((node) =>
      programs.find((program) => program.node === node && program.qps.length > 1),
    );
    return programs.map((draft): ProgramPlan => {
      const { windows, ...rest } = draft;
      return {
        ...rest,
        ...(windows.length > 0 ? { windows } : {}),
        qpnGap: passers.includes(draft) ? gap : 0,
        areas: draft.areas.map((area) => ({ ...area, lengthBytes: Math.max(area.lengthBytes, 64) })),
      };
    });
  }
}

/** Weights of a second play: none, in another partition, unwatched, without shortcuts, with all observers. */
const agains = [0.58, 0.2, 0.07, 0.1, 0.05];
/**
 * Share of the single partition among those played elsewhere: threads that wait for each other take ten times as long
 * if cores are busy.
 */
const singleShare = 0.93;
/** Length of short epochs; a machine accepts 3 µs at least. */
const shortEpochPs = 5_000_000;

/** @param mayBeShort whether its epochs may be so short that many begin */
export function drawAgain(random: Random, mayBeShort: boolean): Again | undefined {
  const once = { partition: 'single', shuffleSeed: undefined } as const;
  const elsewhere = {
    partition: random.chance(singleShare) ? partitions[0] : pick(random, partitions.slice(1, 3)),
    shuffleSeed: random.below(2 ** 31),
    ...(mayBeShort && random.chance(0.4) ? { epochPs: shortEpochPs * 2 ** random.below(12) } : {}),
  };
  const kinds: readonly (Again | undefined)[] = [
    undefined,
    elsewhere,
    { ...once, isUnwatched: true },
    { ...once, isPlain: true },
    { ...once, isObserved: true },
  ];
  return pick(random, kinds, agains);
}
