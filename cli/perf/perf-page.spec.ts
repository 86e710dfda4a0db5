import { expect, it } from 'vitest';
import type { ReportedRow } from '../../experiments/runs/perf-run.ts';
import { perfPage } from './perf-page.ts';

/** Table cells without their attributes. */
const bare = (page: string): string => page.replaceAll(/<td [^>]*>/g, '<td>');

const times = { minPs: 1e6, maxPs: 3e6, typicalPs: 2e6, averagePs: 2e6, p99Ps: 3e6, p999Ps: 3e6 };
const row = (verb: string): ReportedRow =>
  ({
    args: { verb, isLatency: true, sizeBytes: 64, iterations: 5, qpCount: 1 },
    result: { iterations: 5, ...times },
    interrupts: [0, 0],
  }) as unknown as ReportedRow;

it('states what the latencies cover: READ and atomics have a whole round trip', () => {
  const pageOf = (verb: string) => perfPage({ title: 't', command: 'c', version: '1' }, [row(verb)], []);
  for (const verb of ['write', 'send']) expect(pageOf(verb)).toContain('half a round trip');
  for (const verb of ['read', 'atomic']) expect(pageOf(verb)).toContain('a whole round trip');
});

it('has rates of few messages, and no row for an absent peak', () => {
  const args = { verb: 'write', isLatency: false, iterations: 5, qpCount: 1 };
  // perftest's row for 8 MiB: 458 messages per second.
  const rates = { durationPs: 1e12, averageBytesPerSecond: 458 * 2 ** 23, messagesPerSecond: 458 };
  const rows = [2 ** 21, 2 ** 22, 2 ** 23].map((sizeBytes) => ({
    ...{ args: { ...args, sizeBytes }, result: { iterations: 5, ...rates }, interrupts: [0, 0] },
  })) as unknown as ReportedRow[];
  const page = perfPage({ title: 't', command: 'c', version: '1' }, rows, []);
  expect(bare(page)).toContain('<td>–</td><td>3664.00</td><td>0.000458</td>');
  // The table of the chart of messages.
  expect(bare(page)).toContain('<th scope="row">8M</th><td>0.000458</td>');
  expect(page).not.toMatch(/<td>0\.00+<\/td>/);
  // For randomly drawn lengths, the arguments contain only the longest.
  const drawn = { ...rows[0]!, args: { ...rows[0]!.args, sizes: [{ bytes: 2 ** 21, weight: 1 }] } };
  expect(perfPage({ title: 't', command: 'c', version: '1' }, [drawn], [])).toContain(
    'drawn, up to 2.000 MiB',
  );
});
