/**
 * `explain` on random operations of random workloads on random machines, with lost and retransmitted packets.
 * EXPLAIN_SEEDS=from..to runs others.
 */
import { describe, expect, it } from 'vitest';
import { explanationOf } from '../../cli/explain/explain.ts';
import { drawShortRun } from '../../experiments/bottleneck/testing/short-run.ts';
import { timelineCategories } from '../../machine/timeline/index.ts';
import { rowsOf } from '../../test/extent.ts';
import { type Explanation, explained, type OperationFlow, operationFlows } from './index.ts';
import { explanationFailures } from './testing/explained-judge.ts';
import { machineOf, type RecordedRun, recordedRun } from './testing/recorded-run.ts';
import { seedsOf } from './testing/seeds.ts';

const messages = 40;
const explainedOfRun = 5;

/** Operations of host 0, spread over the run. */
function someOf({ timeline }: RecordedRun): OperationFlow[] {
  const own = operationFlows(timeline).filter(({ node, ordinal }) => node === 0 && ordinal >= 0);
  const step = Math.max(1, Math.floor(own.length / explainedOfRun));
  return own.filter((_, index) => index % step === 0);
}

const judged = (recorded: RecordedRun, flow: OperationFlow, explanation: Explanation): string[] =>
  explanationFailures(
    { timeline: recorded.timeline, pathMtuBytes: recorded.args.mtuBytes || 4096 },
    flow,
    explanation,
  );

const eventsOf = ({ steps }: Explanation): string[] =>
  steps.flatMap(({ stage, events }) => events.map((event) => `${stage} ${JSON.stringify(event)}`)).toSorted();

const seeds = seedsOf('EXPLAIN_SEEDS', rowsOf([3, 6, 10, 16], [1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15]));

it.each(seeds)('operations are explained by what was recorded of them, of seed %i', async (seed) => {
  const run = drawShortRun(seed, messages);
  const words = JSON.stringify(run);
  const recorded = await recordedRun(run, ['operations', 'doorbells', 'packets', 'tlps', 'dma']);
  const flows = someOf(recorded);
  expect(flows.length, words).toBeGreaterThan(0);
  for (const flow of flows)
    expect(judged(recorded, flow, explained(recorded.timeline, flow)!), `${flow.ordinal} ${words}`).toEqual(
      [],
    );
});

it.each(seeds.slice(0, 2))(
  'the command explains the same as the record of the whole run, for seed %i',
  async (seed) => {
    const run = drawShortRun(seed, messages);
    const words = JSON.stringify(run);
    const { machine, args } = machineOf(run);
    const recorded = await recordedRun(run, timelineCategories);
    const flow = someOf(recorded)[2]!;
    const whole = explained(recorded.timeline, flow)!;
    const { report: _, ...asked } = await explanationOf(machine, args, flow.ordinal);
    expect(asked.others, words).toBe(whole.others);
    expect(eventsOf(asked), words).toEqual(eventsOf(whole));
  },
);

describe('the judge of explanations finds', () => {
  const run = drawShortRun(3, messages);
  let made: Promise<{ recorded: RecordedRun; flow: OperationFlow; next: OperationFlow }> | undefined;
  const given = () =>
    (made ??= recordedRun(run, ['operations', 'doorbells', 'packets', 'tlps']).then((recorded) => {
      const flows = someOf(recorded);
      return { recorded, flow: flows[1]!, next: flows[2]! };
    }));

  it('a step that is a picosecond longer', async () => {
    const { recorded, flow } = await given();
    const { steps, ...rest } = explained(recorded.timeline, flow)!;
    const longer = steps.map((step, index) => ({
      ...step,
      durationPs: step.durationPs + (index === 0 ? 1 : 0),
    }));
    expect(judged(recorded, flow, { ...rest, steps: longer })).toHaveLength(1);
  });

  it('a TLP that is missing, and one at another time', async () => {
    const { recorded, flow } = await given();
    const explanation = explained(recorded.timeline, flow)!;
    const changed = (
      change: (event: Explanation['steps'][number]['events'][number]) => typeof event | [],
    ) => ({
      ...explanation,
      steps: explanation.steps.map((step) => {
        const at = step.events.findIndex(({ text }) => text.startsWith('M'));
        return {
          ...step,
          events: step.events.flatMap((event, index) => (index === at ? change(event) : event)),
        };
      }),
    });
    expect(
      judged(
        recorded,
        flow,
        changed(() => []),
      ).join(),
    ).toMatch(/is not listed/);
    const later = changed((event) => ({ ...event, durationPs: event.durationPs + 1 }));
    expect(judged(recorded, flow, later).join()).toMatch(/is in no record.*is not listed/);
  });

  it('packets of another operation', async () => {
    const { recorded, flow, next } = await given();
    const both = { ...flow, records: [...flow.records, ...next.records] };
    expect(judged(recorded, both, explained(recorded.timeline, flow)!).join()).toMatch(
      /is none of.*2 packets of 1/,
    );
  });

  it('that it has none', async () => {
    const { recorded, flow } = await given();
    const isPacket = (place: number): boolean => recorded.timeline.record(place).kind === 'packet';
    const bare = { ...flow, records: flow.records.filter((place) => !isPacket(place)) };
    expect(judged(recorded, bare, explained(recorded.timeline, flow)!).join()).toMatch(/0 packets of 1/);
  });
});
