/**
 * The CM with hostile peers: programs of two nodes connect, accept, reject and disconnect at random, while messages are lost,
 * duplicated, delayed, changed or forged. Judged by the events that the programs receive and by the state that is left at the
 * end.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CmAttribute, cmMad } from './cm-mad.ts';
import type { CmState } from './connection.ts';
import { CmBench, type Program, parameters } from './testing-cm.ts';

/** Number of forged messages, and steps of a story: `npm run fuzz` sets the first. */
const messages = Number(process.env['HOSTILE_PACKETS'] ?? 1_000);
const perStory = 60;
const seed = Number(process.env['HOSTILE_SEED'] ?? 19);
const dayPs = 86_400e12;
const bodyAt = 24;

type Step =
  | {
      readonly does: 'connect' | 'accept' | 'use' | 'reject' | 'disconnect' | 'abandon';
      readonly which: number;
    }
  | { readonly does: 'lose' | 'double'; readonly count: number }
  | { readonly does: 'wait'; readonly log: number }
  | { readonly does: 'deliver' }
  | {
      readonly does: 'replay';
      readonly which: number;
      readonly changes: readonly (readonly [number, number])[];
    }
  | {
      readonly does: 'invent';
      readonly attribute: CmAttribute;
      readonly node: number;
      readonly body: Uint8Array;
    };

/** Messages that make connections are more frequent than those that end them. */
const acts = [
  'connect',
  'connect',
  'accept',
  'accept',
  'use',
  'use',
  'disconnect',
  'abandon',
  'reject',
] as const;
const which = fc.nat(99);
const at = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: bodyAt, max: bodyAt + 40 }) },
  fc.integer({ min: 0, max: 255 }),
);
const changes = fc.array(fc.tuple(at, fc.nat(255)), { maxLength: 3 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constantFrom(...acts),
      which,
    }),
  },
  { weight: 3, arbitrary: fc.constant<Step>({ does: 'deliver' }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('lose', 'double'), count: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('wait'), log: fc.double({ min: 6, max: 14, noNaN: true }) }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('replay'), which, changes }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('invent'),
      attribute: fc.constantFrom(...Object.values(CmAttribute)),
      node: fc.nat(1),
      body: fc.uint8Array({ minLength: 232, maxLength: 232 }),
    }),
  },
);
const stories = fc.array(steps, { minLength: 1, maxLength: perStory, size: 'max' });

/** Events that a program may receive: it is connected at most once, ends at most once, and receives its Timewait event last. */
const lawful = /^(replied )?(established )?((disconnected|unreachable|rejected \d+) )?(timewait exit )?$/;
const answerable: readonly CmState[] = ['ReqRcvd', 'MraReqSent'];
const answered: readonly CmState[] = ['RepRcvd', 'MraRepSent'];
const refusable: readonly CmState[] = [...answerable, ...answered, 'ReqSent', 'MraReqRcvd'];

class Scene {
  readonly bench = new CmBench();
  readonly active: Program[] = [];
  readonly passive = this.bench.listen();
  #losing = 0;
  #doubling = 0;

  constructor() {
    this.bench.pass = () => {
      if (this.#losing > 0) return this.#losing-- === 0;
      return this.#doubling > 0 ? Math.sign(this.#doubling--) + 1 : 1;
    };
  }

  async step(step: Step): Promise<void> {
    const { bench } = this;
    switch (step.does) {
      case 'connect':
        this.active.push(bench.connect(0x40 + this.active.length));
        break;
      case 'deliver':
        return bench.deliver();
      case 'wait':
        return bench.elapse(Math.round(10 ** step.log));
      case 'lose':
        this.#losing = step.count;
        break;
      case 'double':
        this.#doubling = step.count;
        break;
      case 'replay':
        this.#replay(step.which, step.changes);
        break;
      case 'invent': {
        const bytes = cmMad(step.attribute, 1n, {});
        bytes.set(step.body, bodyAt);
        bench.forge(step.node, bytes);
        break;
      }
      default:
        this.#program(step.does, step.which);
    }
  }

  /** All listeners are closed, all programs have released their IDs, and enough time passes that no packet and no timer can be left. */
  async end(): Promise<void> {
    this.bench.stopListening();
    for (const { connection } of this.programs) connection!.abandon(this.bench.cpu);
    await this.bench.elapse(dayPs);
  }

  get programs(): Program[] {
    return [...this.active, ...this.passive];
  }

  /** Actions of a program when its connection allows them, as the calls of rdma_cm check. */
  #program(does: 'accept' | 'use' | 'reject' | 'disconnect' | 'abandon', which: number): void {
    const { cpu } = this.bench;
    const may = (states: readonly CmState[]): Program[] =>
      this.programs.filter(({ connection }) => states.includes(connection!.state));
    const pick = (programs: readonly Program[]) => programs[which % programs.length]?.connection;
    if (does === 'accept') pick(may(answerable))?.reply(cpu, parameters(0x800 + which));
    else if (does === 'use') pick(may(answered))?.readyToUse(cpu);
    else if (does === 'reject') pick(may(refusable))?.reject(cpu, new Uint8Array());
    else if (does === 'disconnect') pick(this.programs)?.disconnect(cpu);
    else pick(this.programs)?.abandon(cpu);
  }

  #replay(which: number, changes: readonly (readonly [number, number])[]): void {
    const { sent } = this.bench;
    if (sent.length === 0) return;
    const { bytes, from } = sent[which % sent.length]!;
    const copy = bytes.slice();
    for (const [place, value] of changes) copy[place] = value;
    this.bench.forge(1 - from, copy);
  }
}

it(
  'IBTA 12.9: for any messages of hostile peers, each program receives a legal sequence of events, and nothing is left',
  async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const scene = new Scene();
        for (const step of story) await scene.step(step);
        await scene.end();
        for (const { events } of scene.programs)
          expect(events.map((event) => `${event} `).join('')).toMatch(lawful);
        expect(scene.bench.managers.map(({ connectionCount }) => connectionCount)).toEqual([0, 0]);
        expect(scene.bench.timerCount).toBe(0);
      }),
      { seed, numRuns: Math.ceil((messages * 8) / perStory), endOnFailure: false },
    );
  },
  24 * 3600_000,
);
