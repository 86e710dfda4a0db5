import { expect, it } from 'vitest';
import { checkedOutput, reportDiff } from '../../explain/diff/index.ts';
import { diffText } from './diff-text.ts';

it('prints a small nonzero figure as nonzero', () => {
  const at = (share: number) => checkedOutput('a.json', { schema: 'hca-perf/2', share });
  const text = diffText(reportDiff(at(0.000021), at(0.0000314)), ['before', 'after'], true);
  expect(text).toMatch(/ 0\.000021 .* 0\.0000314 .*\+49\.5 %/);
});
