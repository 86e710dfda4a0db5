/**
 * Stories of players on a cable that treats a tenth of all packets badly, either way: each request ends as the judges demand, with the
 * right bytes, once, in order, or with the error of retries that are used up (IBTA volume 1, 9.7.5.2 and 9.7.8).
 */
import { describe, expect, it } from 'vitest';
import type { FaultEntry } from '../machine/faults/index.ts';
import { rowsOf } from '../test/extent.ts';
import { IBV_WC_SUCCESS } from '../userlib/index.ts';
import { judges } from './judges/index.ts';
import { renderStory } from './render-story.ts';
import { type Played, playStory } from './run-story.ts';
import type { Story } from './story.ts';
import { exampleStory } from './testing/example-story.ts';

const kinds: Readonly<Record<string, FaultEntry>> = {
  lost: { packet: 'lost', chance: 0.1 },
  'damaged in their headers': { packet: 'corrupted', where: 'header', chance: 0.1 },
  'damaged in their payload': { packet: 'corrupted', where: 'payload', crc: 'icrc', chance: 0.1 },
  'sent twice': { packet: 'duplicated', delay: '1us', chance: 0.1 },
  'passed by three others': { packet: 'reordered', by: 3, delay: '20us', chance: 0.1 },
  late: { packet: 'late', delay: '30us', chance: 0.1 },
};
const rows = rowsOf(
  [{ what: 'any of these', faults: Object.values(kinds) }],
  Object.entries(kinds).map(([what, fault]) => ({ what, faults: [fault] })),
);

/**
 * Stories without faults of their own, and with many packets for their time; together they use RC, UC and UD, and every
 * verb. The last four have found defects.
 */
const stories = [57, 15, 48, 39, 115, 121, 178, 211].map((number) => exampleStory(number));

const withFaults = (story: Story, faults: readonly FaultEntry[]): Story => ({
  ...story,
  climate: 'lossy',
  faults: [0, 1].flatMap((node) => faults.map((fault) => ({ ...fault, node }))),
});

const firedIn = ({ report }: Played): number =>
  (report.faults ?? []).reduce((sum, { fired }) => sum + fired, 0);
const succeededIn = ({ seen }: Played): number =>
  seen.reduce(
    (sum, observations) =>
      sum + (observations?.completions.filter(({ status }) => status === IBV_WC_SUCCESS).length ?? 0),
    0,
  );

describe.each(rows)('a tenth of all packets $what', ({ faults }) => {
  it('changes no byte, no order and no end that its requests deserve', { timeout: 240_000 }, async () => {
    let [fired, succeeded] = [0, 0];
    for (const story of stories) {
      const told = withFaults(story, faults);
      const played = await playStory(told, { partition: 'single', shuffleSeed: undefined });
      const findings = judges.flatMap(({ judge }) => judge(played));
      expect(findings, renderStory(told).join('\n')).toEqual([]);
      fired += firedIn(played);
      succeeded += succeededIn(played);
    }
    expect(fired).toBeGreaterThan(100);
    expect(succeeded).toBeGreaterThan(150);
  });
});
