/**
 * Makes a story smaller as long as it still fails in the same way: pieces are left out by halves, then one by one
 * (delta debugging: Zeller and Hildebrandt, IEEE TSE 28/2, 2002), then the rest is simplified.
 */
import { IBV_ACCESS_ON_DEMAND } from '../userlib/index.ts';
import type { Finding } from './finding.ts';
import { messagesWithoutReceive } from './receives-due.ts';
import { runStory } from './run-story.ts';
import type { ProgramPlan, SendPlan, Step, Story } from './story.ts';

export interface Shrunk {
  readonly story: Story;
  readonly findings: readonly Finding[];
  /** Stories that were played. */
  readonly tries: number;
}

/** The text of a finding without the numbers that change from story to story. */
export const kindOf = ({ judge, what }: Finding): string =>
  `${judge}: ${what
    .replace(/…[\s\S]*$/, '')
    .replace(/\([^)]*\)/g, '')
    .replace(/\d[\da-f.]*/gi, '#')
    .slice(0, 80)}`;

/**
 * @param findings the story's findings; the kind of the first one must stay, so that no other failure replaces it
 * @param triesMax stories to play at most
 * @param onTry called after each, with the number of steps that are left
 */
export async function shrinkStory(
  story: Story,
  findings: readonly Finding[],
  triesMax: number,
  onTry: (tries: number, stepsLeft: number) => void = () => {},
): Promise<Shrunk> {
  const shrinker = new Shrinker(story, findings, triesMax, onTry);
  await shrinker.run();
  return { story: shrinker.story, findings: shrinker.findings, tries: shrinker.tries };
}

class Shrinker {
  story: Story;
  findings: readonly Finding[];
  tries = 0;
  readonly #kind: string | undefined;
  /** A smaller story must not have more of them: it would wait indefinitely, which looks like the same failure. */
  readonly #messagesWithoutReceive: number;
  readonly #triesMax: number;
  readonly #onTry: (tries: number, stepsLeft: number) => void;

  constructor(
    story: Story,
    findings: readonly Finding[],
    triesMax: number,
    onTry: (tries: number, stepsLeft: number) => void,
  ) {
    this.story = story;
    this.findings = findings;
    this.#kind = findings[0] && kindOf(findings[0]);
    this.#messagesWithoutReceive = messagesWithoutReceive(story);
    this.#triesMax = triesMax;
    this.#onTry = onTry;
  }

  async run(): Promise<void> {
    for (let size = Number.POSITIVE_INFINITY; sizeOf(this.story) < size && this.tries < this.#triesMax; ) {
      size = sizeOf(this.story);
      await this.#try({ ...this.story, again: undefined });
      await this.#cut(stepKeys, withoutSteps);
      await this.#cut(({ faults }) => faults.map((_, index) => index), withoutFaults);
      await this.#cut(
        ({ set }) => Object.keys(set).filter((path) => path !== 'host.memory.sizeMib'),
        withoutParameters,
      );
      await this.#cut(wrKeys, withoutRequests);
      await this.#cut(({ links }) => links.map((_, index) => index), withoutLinks);
      await this.#dropPrograms();
      await this.#cut(turnKeys, withoutRenewals);
      await this.#dropTurns();
      for (const plainer of plainerStories(this.story)) await this.#try(plainer(this.story));
    }
  }

  /** @returns whether the smaller story fails as well, and is the story now */
  async #try(smaller: Story): Promise<boolean> {
    if (this.tries >= this.#triesMax || JSON.stringify(smaller) === JSON.stringify(this.story)) return false;
    if (messagesWithoutReceive(smaller) > this.#messagesWithoutReceive) return false;
    this.tries++;
    const { findings } = await runStory(smaller);
    const isSame = findings.some((finding) => kindOf(finding) === this.#kind);
    if (isSame) {
      this.story = smaller;
      this.findings = findings;
    }
    this.#onTry(this.tries, stepKeys(this.story).length);
    return isSame;
  }

  /** Leaves out pieces: first halves of them, at last each one. */
  async #cut<Key>(
    keysOf: (story: Story) => Key[],
    without: (story: Story, keys: ReadonlySet<Key>) => Story,
  ): Promise<void> {
    for (let size = keysOf(this.story).length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < keysOf(this.story).length; ) {
        const keys = keysOf(this.story).slice(at, at + size);
        if (!(await this.#try(without(this.story, new Set(keys))))) at += size;
      }
    }
  }

  /** Drops the last turns first: later steps refer to QPs that are then not created, and do nothing. */
  async #dropTurns(): Promise<void> {
    for (let count = this.story.turns?.length ?? 0; count > 0; count--)
      if (!(await this.#try({ ...this.story, turns: this.story.turns!.slice(0, count - 1) }))) return;
  }

  /** Programs without links and steps, the last first: those before keep their numbers. */
  async #dropPrograms(): Promise<void> {
    for (let index = this.story.programs.length - 1; index > 0; index--) {
      const isLinked = this.story.links.some(({ ends }) => ends.some(({ program }) => program >= index));
      const nodes = new Set(this.story.programs.slice(0, index).map(({ node }) => node));
      if (isLinked || nodes.size < 2) return;
      await this.#try({ ...this.story, programs: this.story.programs.slice(0, index) });
    }
  }
}

/** Returns `turn/program/list/index` of the renewed objects. */
const turnKeys = ({ turns = [] }: Story): string[] =>
  turns.flatMap(({ programs }, turn) =>
    programs.flatMap(({ cqs, areas }, program) => [
      ...cqs.map((cq) => `${turn}/${program}/cqs/${cq}`),
      ...areas.map((area) => `${turn}/${program}/areas/${area}`),
    ]),
  );

const withoutRenewals = (story: Story, keys: ReadonlySet<string>): Story =>
  story.turns === undefined
    ? story
    : {
        ...story,
        turns: story.turns.map(({ programs }, turn) => ({
          programs: programs.map(({ cqs, areas, isMoved }, program) => ({
            cqs: cqs.filter((cq) => !keys.has(`${turn}/${program}/cqs/${cq}`)),
            areas: areas.filter((area) => !keys.has(`${turn}/${program}/areas/${area}`)),
            isMoved,
          })),
        })),
      };

const sizeOf = (story: Story): number => JSON.stringify(story).length;

/** `program/list/index` of each step. */
function stepKeys({ programs }: Story): string[] {
  return programs.flatMap(({ early, steps }, program) => [
    ...steps.map((_, index) => `${program}/steps/${index}`),
    ...early.map((_, index) => `${program}/early/${index}`),
  ]);
}

function withoutSteps(story: Story, keys: ReadonlySet<string>): Story {
  const kept = (program: number, list: 'early' | 'steps', steps: readonly Step[]): Step[] =>
    steps.filter((_, index) => !keys.has(`${program}/${list}/${index}`));
  return withPrograms(story, (plan, program) => ({
    ...plan,
    early: kept(program, 'early', plan.early),
    steps: kept(program, 'steps', plan.steps),
  }));
}

/** Ids of the requests in lists of several. */
const wrKeys = ({ programs }: Story): number[] =>
  programs.flatMap(({ steps }) =>
    steps.flatMap((step) => (step.do === 'post' && step.wrs.length > 1 ? step.wrs.map(({ id }) => id) : [])),
  );

const withoutRequests = (story: Story, ids: ReadonlySet<number>): Story =>
  withSteps(story, (step) =>
    step.do === 'post' ? { ...step, wrs: step.wrs.filter(({ id }) => !ids.has(id)) } : step,
  );

const withoutFaults = (story: Story, keys: ReadonlySet<number>): Story => ({
  ...story,
  faults: story.faults.filter((_, index) => !keys.has(index)),
});

const withoutParameters = (story: Story, paths: ReadonlySet<string>): Story => ({
  ...story,
  set: Object.fromEntries(Object.entries(story.set).filter(([path]) => !paths.has(path))),
});

const withoutLinks = (story: Story, keys: ReadonlySet<number>): Story => ({
  ...story,
  links: story.links.filter((_, index) => !keys.has(index)),
});

const withPrograms = (story: Story, change: (plan: ProgramPlan, index: number) => ProgramPlan): Story => ({
  ...story,
  programs: story.programs.map(change),
});

const withSteps = (story: Story, change: (step: Step) => Step): Story =>
  withPrograms(story, (plan) => ({ ...plan, early: plan.early.map(change), steps: plan.steps.map(change) }));

const withSends = (story: Story, change: (send: SendPlan) => SendPlan): Story =>
  withSteps(story, (step) => (step.do === 'post' ? { ...step, wrs: step.wrs.map(change) } : step));

/** Changes that make a story easier to read, each to be tried alone. */
function plainerStories({ programs }: Story): ((story: Story) => Story)[] {
  const ids = programs.flatMap(({ steps }) =>
    steps.flatMap((step) => (step.do === 'post' ? step.wrs.map(({ id }) => id) : [])),
  );
  const qps = (change: object) => (story: Story) =>
    withPrograms(story, (plan) => ({ ...plan, qps: plan.qps.map((qp) => ({ ...qp, ...change })) }));
  const areas = (change: object) => (story: Story) =>
    withPrograms(story, (plan) => ({ ...plan, areas: plan.areas.map((area) => ({ ...area, ...change })) }));
  return [
    qps({ psn: 0 }),
    qps({ maxInline: 0 }),
    qps({ maxSendWr: 16, maxRecvWr: 16 }),
    qps({ isSignalAll: false }),
    qps({ timeout: 14, retryCount: 7 }),
    qps({ rnrRetry: 7, rnrTimer: 1 }),
    qps({ mtu: 5 }),
    qps({ mtu: 3 }),
    qps({ readsOut: 1, readsIn: 1 }),
    areas({ shiftBytes: 0 }),
    (story) =>
      withPrograms(story, (plan) => ({
        ...plan,
        areas: plan.areas.map((area) => ({ ...area, access: area.access & ~IBV_ACCESS_ON_DEMAND })),
      })),
    (story) => withSends(story, (send) => ({ ...send, isFenced: false, isSolicited: false })),
    (story) => withSends(story, (send) => ({ ...send, isInline: false })),
    (story) => withSends(story, (send) => ({ ...send, isSignalled: true })),
    ...ids
      .slice(0, 12)
      .flatMap((id) => [
        (story: Story) => withSends(story, (send) => (send.id === id ? joined(send) : send)),
        (story: Story) => withSends(story, (send) => (send.id === id ? halved(send) : send)),
      ]),
  ];
}

/** Replaces several buffers by one, as long as all of them. */
function joined(send: SendPlan): SendPlan {
  const [first] = send.sges;
  if (first === undefined || send.sges.length === 1) return send;
  return { ...send, sges: [{ ...first, length: send.sges.reduce((sum, { length }) => sum + length, 0) }] };
}

const halved = (send: SendPlan): SendPlan => ({
  ...send,
  sges: send.sges.map((sge) => ({ ...sge, length: sge.length === 8 ? 8 : Math.ceil(sge.length / 2) })),
});
