/**
 * Every field of a class in the model that keeps an instant or an edge from one event to the next is moved when a new epoch
 * begins (sim/epoch.ts). Fields are found by their names: Ps is an instant or a duration, Cycle an edge, Cycles a duration.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('..', import.meta.url);
const folders = ['sim', 'hw', 'wire', 'host', 'net', 'machine/node', 'guests/serve', 'machine/partition'];

/** Names of durations, and of values that do not outlast an event. */
const durations = new Set([
  // Times of configuration and constants.
  ...['latencyPs', 'returnLatencyPs', 'timeoutPs', 'ackLatencyPs', 'aheadPs', 'deliveryPs', 'walkPs'],
  ...['overheadPs', 'limitPs', 'initialPs', 'minPs', 'maxPs', 'numeratorPs', 'periodPs', 'halfStepPs'],
  ...['cyclesPerPs', 'ackTimeoutPs', 'moderationPeriodPs', 'completionTimeoutPs', 'stretchPs', 'epochPs'],
  ...['windowPs', 'drainPs', 'storePs', 'flowControlPs', 'durationPs'],
  // Sums and remainders.
  ...['busyPs', 'heldPs', 'busHeldPs', 'stallPs', 'creditWaitPs', 'serializerWaitPs', 'lifePs', 'takenPs'],
  ...['headerPs', 'pausedPs', 'stoppingPs', 'pauseWaitPs', 'sumsPs', 'retiredWaitsPs'],
  ...['priorityPausedPs', 'priorityWaitPs'],
  ...[
    'farTakenPs',
    'delaysPs',
    'differencePs',
    'debtPs',
    'smoothedPs',
    'variationPs',
    'basePs',
    'deadlineRestPs',
    'followedPs',
    'stagesPs',
  ],
  // Times kept together with their epoch.
  ...['raisedPs'],
  // Times in observers, which receive instants, and in memory management without a host.
  ...['instantPs', 'nowPs'],
  // Times used up within one call, or set at the beginning of a run.
  ...[
    'reachedPs',
    'atPs',
    'actPs',
    'reachPs',
    'arrivalPs',
    'stopPs',
    'startPs',
    'promisedPs',
    'quiescentUntilPs',
  ],
]);

/** Files of tests and benches, or that describe a machine without being part of one. */
const isModel = (path: string): boolean =>
  path.endsWith('.ts') &&
  !/\.spec\.ts$|\/testing|testing\.ts$|-bench\.ts$|parameters\.ts$|toy-|\.d\.ts$/.test(path);

const filesOf = (folder: string): string[] =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path}`)
    .filter(isModel);

/** Fields of classes that change: `name = value;` or with a type, at the indent of a class body. */
const field = /^ {2}(?:readonly |protected |private |public )*#?([a-zA-Z]+)(?:: [^=(]+)? = (?!\()[^;]*;$/gm;
const typedArray = /^ {2}readonly #?([a-zA-Z]*(?:Ps|Cycle)): (?:Float64|Int32)Array;$/gm;

function keptTimes(text: string): string[] {
  const names = [...text.matchAll(field), ...text.matchAll(typedArray)].map(([, name]) => name!);
  return [...new Set(names)].filter((name) => /(Ps|(?<!Per)Cycle)$/.test(name) && !durations.has(name));
}

/** The text of all methods of a file that move times. */
const movedIn = (text: string): string =>
  [
    ...text.matchAll(/^ {2}(?:override |protected )?(?:rebase[A-Za-z]*|#beginEpoch)\([\s\S]*?^ {2}\}$/gm),
  ].join('\n');

describe.each(folders)('%s', (folder) => {
  it('moves every instant and edge that its classes keep', () => {
    const texts = filesOf(folder).map((path) => ({ path, text: readFileSync(new URL(path, root), 'utf8') }));
    const moved = texts.map(({ text }) => movedIn(text)).join('\n');
    const left = texts.flatMap(({ path, text }) =>
      keptTimes(text)
        .filter((name) => !new RegExp(`\\b${name}\\b`).test(moved))
        .map((name) => `${path}: ${name}`),
    );
    expect(left).toEqual([]);
  });
});
