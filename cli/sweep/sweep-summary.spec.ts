import { expect, it } from 'vitest';
import type { SweepRow } from '../../experiments/sweep/index.ts';
import { sweepSummary } from './sweep-summary.ts';

it('states at how many points messages were lost; their rates are those of the sender', () => {
  const row = (index: number, count: number): SweepRow => ({
    ...{ hash: `${index}`, index, status: 'done', axes: { rxDepth: index } },
    figures: { messagesPerSecond: 5e6, 'received.count': count, 'received.expected': 300 },
  });
  const text = (...rows: SweepRow[]): string => sweepSummary(rows, ['rxDepth'], rows.length).join('\n');
  expect(text(row(4, 20), row(64, 150), row(512, 300))).toContain(
    "Messages were lost at 2 of these points (received.count of received.expected): their rates are the sender's.",
  );
  expect(text(row(512, 300))).not.toContain('lost');
});

it('states what latencies cover if tests of both kinds are listed', () => {
  const row = (test: string, index: number): SweepRow => ({
    ...{ hash: test, index, status: 'done', axes: { test }, figures: { typicalPs: 1e6 + index } },
  });
  const text = (...tests: string[]): string =>
    sweepSummary(tests.map(row), ['test'], tests.length).join('\n');
  expect(text('write-lat', 'read-lat')).toContain(
    'write-lat and send-lat are half a round trip, those of read',
  );
  expect(text('write-lat', 'send-lat')).not.toContain('round trip');
  expect(text('read-lat', 'atomic-lat')).not.toContain('round trip');
});

it('states where a figure has its knee, that it may lie beyond the range, and that none exists', () => {
  const textOf = (...rates: readonly number[]): string =>
    sweepSummary(
      rates.map((rate, index) => ({
        ...{ hash: `${index}`, index, status: 'done', axes: { lines: 64 * 2 ** index } },
        figures: { messagesPerSecond: rate * 1e6 },
      })),
      ['lines'],
      rates.length,
    ).join('\n');
  expect(textOf(2, 5, 9, 9.1, 9.1)).toContain('messagesPerSecond has its knee over lines at 256.');
  // The example of the summary: 64 to 1024 lines of the context cache.
  expect(textOf(2.02, 2.2, 2.49, 3.71, 10.72)).toContain(
    'messagesPerSecond has its knee over lines at 1024, where the range ends, or beyond.',
  );
  expect(textOf(1, 2, 4, 8, 16)).toContain('messagesPerSecond has no knee over lines.');
  expect(textOf(5, 5, 5, 5, 5)).not.toContain('knee');
});
