/** The table of steps that are not traffic: actions of a program between requests, and their frequencies. */
import type { Random } from '../../sim/index.ts';
import { type Climate, isCurrent, isOnDemandArea, type Step } from '../story.ts';
import { pick } from './choice.ts';
import { areaIndex, type Draft, type ProgramDraft } from './draft.ts';
import type { Feature } from './swarm.ts';

interface At {
  readonly draft: Draft;
  readonly random: Random;
  readonly program: ProgramDraft;
  /** The last turn. */
  readonly turn: number;
}

interface StepRow {
  /** Probability after each operation. */
  readonly chance: number;
  readonly feature?: Feature;
  readonly climates?: readonly Climate[];
  /** The step occurs only after a turn. */
  readonly isAfterTurn?: true;
  /** The steps; none if the program lacks the objects for them. */
  readonly steps: (at: At) => readonly Step[];
}

const anyCq = ({ random, program }: At): number => random.below(program.cqs.length);

const ofAnyQp =
  (steps: (qp: number, at: At) => readonly Step[]) =>
  (at: At): readonly Step[] =>
    at.program.qps.length === 0 ? [] : steps(at.random.below(at.program.qps.length), at);

const isReliable = ({ program }: At, qp: number): boolean => program.qps[qp]!.transport === 'RC';

const rows: readonly StepRow[] = [
  { chance: 0.06, steps: ({ random }) => [{ do: 'sleep', ns: random.below(20_000) }] },
  {
    chance: 0.05,
    feature: 'drains',
    steps: ({ random }) => [{ do: 'drain', outstanding: random.below(3) }],
  },
  { chance: 0.05, feature: 'drains', steps: () => [{ do: 'refill', area: areaIndex.source }] },
  { chance: 0.06, feature: 'peeks', steps: peek },
  {
    chance: 0.06,
    feature: 'resizes',
    steps: (at) => [{ do: 'resizeCq', cq: anyCq(at), entries: at.random.between(1, 1000) }],
  },
  {
    chance: 0.06,
    feature: 'moderation',
    steps: (at) => [
      { do: 'moderate', cq: anyCq(at), count: at.random.below(20), periodUs: at.random.below(40) },
    ],
  },
  { chance: 0.06, feature: 'events', steps: awaitEvent },
  {
    chance: 0.05,
    feature: 'churn',
    steps: ({ random }) => [{ do: 'churn', pages: random.between(1, 32) }],
  },
  { chance: 0.08, feature: 'quiesces', steps: ofAnyQp(quiesce) },
  { chance: 0.1, feature: 'limits', steps: armLimit },
  { chance: 0.15, feature: 'givesBack', steps: giveBack },
  { chance: 0.05, isAfterTurn: true, steps: () => [{ do: 'reregister', area: areaIndex.source }] },
  {
    chance: 0.05,
    isAfterTurn: true,
    steps: ({ random }) => [{ do: 'registerScratch', pages: random.between(1, 40), kept: random.below(4) }],
  },
  { chance: 0.02, climates: ['calm', 'lossy', 'broken'], steps: ofAnyQp(stopAndStart) },
  { chance: 0.004, climates: ['flawed'], steps: ofAnyQp((qp) => [{ do: 'modify', qp, to: 'ERR' }]) },
  { chance: 0.004, climates: ['flawed'], steps: ofAnyQp((qp) => [{ do: 'destroy', qp }]) },
  { chance: 0.004, climates: ['flawed'], steps: deregister },
  { chance: 0.001, climates: ['flawed'], steps: () => [{ do: 'exit' }] },
];

/** Appends a step of any program after an operation. */
export function addOtherSteps(draft: Draft, turn: number): void {
  const { random, climate } = draft;
  for (const { chance, feature, climates, isAfterTurn, steps } of rows) {
    if (feature !== undefined && !draft.has(feature)) continue;
    if (climates?.includes(climate) === false || (isAfterTurn === true && turn === 0)) continue;
    if (!random.chance(chance)) continue;
    const program = pick(random, draft.programs);
    program.steps.push(...steps({ draft, random, program, turn }));
  }
}

/** Memory is taken away while slow hardware has work with it. */
export function deregister({ draft, random }: Pick<At, 'draft' | 'random'>): readonly Step[] {
  const gone = { do: 'deregister', area: random.below(3), isRenewed: draft.has('renewsKeys') } as const;
  return random.chance(0.5) ? [gone] : [{ do: 'sleep', ns: random.below(6000) }, gone];
}

function peek({ random, program }: At): readonly Step[] {
  const { atomicWords, lengthBytes } = program.areas[areaIndex.target]!;
  if (lengthBytes <= 64) return [];
  const offset = atomicWords * 8 + random.below(lengthBytes - atomicWords * 8);
  return [{ do: 'peek', area: areaIndex.target, offset, length: Math.min(256, lengthBytes - offset) }];
}

function awaitEvent(at: At): readonly Step[] {
  const cq = anyCq(at);
  const { hasChannel } = at.program.cqs[cq]!;
  return hasChannel ? [{ do: 'awaitEvent', cq, solicitedOnly: at.random.chance(0.3) }] : [];
}

function quiesce(qp: number, at: At): readonly Step[] {
  return isReliable(at, qp) && isCurrent(at.program, qp, at.turn) ? [{ do: 'quiesce', qp }] : [];
}

function armLimit({ random, program }: At): readonly Step[] {
  const [shared] = program.srqs;
  return shared === undefined ? [] : [{ do: 'limitShared', srq: 0, limit: random.below(shared.maxWr + 1) }];
}

function giveBack({ random, program }: At): readonly Step[] {
  const area = random.below(program.areas.length);
  const plan = program.areas[area]!;
  const pageCount = Math.max(1, Math.ceil(plan.lengthBytes / 4096));
  const range = { page: random.below(pageCount), pages: random.between(1, pageCount) };
  return isOnDemandArea(plan) ? [{ do: 'giveBack', area, ...range }] : [];
}

/** A send queue is stopped and started again; at times requests are posted meanwhile, where the queue has room for them. */
function stopAndStart(qp: number, at: At): readonly Step[] {
  if (!isReliable(at, qp)) return [];
  const { draft, random, program } = at;
  const stop: Step = { do: 'modify', qp, to: 'SQD' };
  const start: Step = { do: 'modify', qp, to: 'RTS' };
  const pause: Step = { do: 'sleep', ns: random.below(5000) };
  const index = draft.programs.indexOf(program);
  const link = draft.current.find(({ ends }) => ends.some((end) => end.program === index && end.qp === qp));
  const room = program.qps[qp]!.maxSendWr >> 1;
  if (!draft.has('postsWhileStopped') || link === undefined || room === 0) return [stop, pause, start];
  const [left, right] = link.ends;
  const [from, to] = left.program === index && left.qp === qp ? [left, right] : [right, left];
  const post = draft.drawPost(from, to, Math.min(6, room));
  return post === undefined
    ? [stop, pause, start]
    : [{ do: 'drain', outstanding: 0 }, stop, pause, post, start];
}
