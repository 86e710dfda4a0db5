import { expect, it } from 'vitest';
import type { SweepRow } from '../sweep/index.ts';
import { sweepSummary } from './sweep-summary.ts';

it('says at how many points messages were lost, whose rates are those of the sender', () => {
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
