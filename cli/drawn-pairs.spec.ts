/**
 * `hca rerun` and `hca diff` on outputs of random tests on random machines. A rerun output is byte-equal; an output
 * does not differ from itself; the differences of two outputs mirror those in the other direction. PAIR_SEEDS=from..to
 * runs other seeds.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { drawShortRun, type ShortRun } from '../experiments/bottleneck/testing/short-run.ts';
import type { ReportDiff } from '../explain/diff/index.ts';
import { seedsOf } from '../explain/timeline/testing/seeds.ts';
import { makeTemporaryFolder } from '../guests/linux/temporary-folder.ts';
import { Random } from '../sim/index.ts';
import { rowsOf } from '../test/extent.ts';
import { countFailures, mirrorFailures } from './testing/diff-judge.ts';
import { type Ended, hcaWithin } from './testing/in-process.ts';

const folder = makeTemporaryFolder('hca-drawn-pairs-');
afterAll(() => folder.remove());

const hca = (...words: string[]): Promise<Ended> => hcaWithin({ cwd: folder.path }, words);
const textOf = (name: string): string => readFileSync(join(folder.path, name), 'utf8');

const optionOf = (field: string): string =>
  `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** The arguments of `hca perf` for a randomly drawn run. */
function wordsOf({ fields, profile, set, faults }: ShortRun): string[] {
  const { test, ...options } = fields;
  return [
    ...['perf', String(test)],
    ...Object.entries(options).flatMap(([name, value]) =>
      value === true ? [optionOf(name)] : [optionOf(name), String(value)],
    ),
    ...(profile === undefined ? [] : ['--profile', profile]),
    ...Object.entries(set).flatMap(([path, value]) => ['--set', `${path}=${value}`]),
    ...faults.flatMap((fault) => ['--fault', fault]),
  ];
}

const messages = 40;

/** Another run altogether, one with a different parameter, or one with another number of messages and without faults. */
function partnerOf(seed: number, run: ShortRun): ShortRun {
  const how = new Random(seed, 'pair').below(3);
  if (how === 0) return drawShortRun(seed + 100_000, messages);
  const lanes = run.set['pcie.link.lanes'] === 4 ? 2 : 4;
  if (how === 1) return { ...run, set: { ...run.set, 'pcie.link.lanes': lanes } };
  return { ...run, fields: { ...run.fields, iters: Number(run.fields['iters']) + 1 }, faults: [] };
}

interface Output {
  readonly rows: readonly { readonly args: { readonly sizeBytes: number } }[];
}
const outputOf = (name: string): Output => JSON.parse(textOf(name)) as Output;
const diffOf = (name: string): ReportDiff => JSON.parse(textOf(name)) as ReportDiff;

/** Parameters are repeated one by one, without the name of a profile. */
const withoutProfile = (text: string): string => text.replace(/"profile": ".*"/, '');

const seeds = seedsOf(
  'PAIR_SEEDS',
  rowsOf(
    [3, 9, 13],
    Array.from({ length: 16 }, (_, index) => 20 + index),
  ),
);

it.each(seeds)('an output again, with itself, and with another, of seed %i', async (seed) => {
  const run = drawShortRun(seed, messages);
  const words = wordsOf(run);
  const said = words.join(' ');
  expect((await hca(...words, '--json', 'a.json')).err, said).toBe('');
  await hca(...wordsOf(partnerOf(seed, run)), '--json', 'b.json');
  expect(await hca('diff', 'a.json', 'a.json', '--json', 'same.json'), said).toMatchObject({ code: 0 });
  const same = { isEqual: true, changed: 0, beyond: 0, groups: [], request: [] };
  expect(diffOf('same.json'), said).toMatchObject(same);
  expect(await hca('rerun', 'a.json', '--json', 'rerun.json'), said).toMatchObject({ code: 0 });
  const { command, isEqual } = JSON.parse(textOf('rerun.json')) as { command: string[]; isEqual: boolean };
  expect(isEqual, said).toBe(true);
  await hca(...command, '--json', 'again.json');
  expect(withoutProfile(textOf('again.json')), said).toBe(withoutProfile(textOf('a.json')));
  const there = await hca('diff', 'a.json', 'b.json', '--json', 'there.json');
  const back = await hca('diff', 'b.json', 'a.json', '--json', 'back.json');
  expect([there.code, back.code], said).toEqual([1, 1]);
  expect(mirrorFailures(diffOf('there.json'), diffOf('back.json')), said).toEqual([]);
  const [left, right] = [outputOf('a.json').rows, outputOf('b.json').rows];
  if (left[0]!.args.sizeBytes === right[0]!.args.sizeBytes)
    expect(countFailures([left, right], diffOf('there.json')), said).toEqual([]);
});

describe('the judge of differences finds', () => {
  const row = { path: 'rows.size=64.result.durationPs', before: 100, after: 150, change: 0.5 };
  const diff = (changes: readonly object[], rest: object = {}): ReportDiff =>
    ({
      ...{ schema: 'hca-diff/1', compared: 'hca-perf/2', isEqual: false, request: [] },
      ...{ figures: 9, changed: changes.length, beyond: changes.length },
      groups: [{ group: 'times', changes }],
      ...rest,
    }) as ReportDiff;
  const there = diff([row]);
  const backRow = { ...row, before: 150, after: 100, change: -1 / 3 };

  it.each([
    ['nothing in what is the same', diff([backRow]), /^$/],
    ['a value that is another', diff([{ ...backRow, before: 151 }]), /back 151 to 100/],
    ['a row that is missing', diff([]), /changed: 1, back 0.*the order is another/],
    ['another path', diff([{ ...backRow, path: 'x' }]), /the order is another/],
    ['another request', diff([backRow], { request: [{ what: 'seed', name: 'seed' }] }), /not the same back/],
  ] as const)('%s', (_, back, words) => {
    expect(mirrorFailures(there, back).join('; ')).toMatch(words);
  });

  it('a change that does not match its values', () => {
    const wrong = diff([{ ...row, change: 0.4 }]);
    expect(mirrorFailures(wrong, diff([backRow])).join('; ')).toMatch(/0.4, 0.5 is due/);
  });

  it('a value that differs and is not listed', () => {
    const rows = (durationPs: number) => [
      { args: { sizeBytes: 64 }, result: { durationPs, iterations: durationPs } },
    ];
    expect(countFailures([rows(100), rows(150)], there)).toEqual(['2 differ, 1 are listed']);
  });
});
