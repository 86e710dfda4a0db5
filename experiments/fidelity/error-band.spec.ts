import { expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { errorBands } from './error-bands.ts';
import { errorSentence, figureKindOf, networkOf } from './index.ts';

it('names the band of the verb, its rows and their sources', () => {
  const { rows, sources, low, high } = errorBands['infiniband write latency']!;
  const sentence = errorSentence('infiniband', 'latency', 'write');
  expect(sentence).toContain('a latency of WRITE over InfiniBand');
  expect(sentence).toContain(`${rows} measurements of ${sources} sources`);
  expect(sentence).toContain(`${Math.round(high * 100)} %`);
  expect(low).toBeLessThan(high);
});

it('is unknown from few rows, from one source, and from none', () => {
  const unknown = /^Expected error .*: unknown/;
  expect(errorBands['infiniband atomic message rate']!.rows).toBeLessThan(10);
  expect(errorSentence('infiniband', 'message rate', 'atomic')).toMatch(unknown);
  const sentenceOf = (sources: number): string =>
    errorSentence('ethernet', 'message rate', 'read', {
      'ethernet read message rate': { rows: 16, sources, low: -0.2, high: 0.1 },
    });
  expect(sentenceOf(1)).toMatch(unknown);
  expect(sentenceOf(2)).toContain('−20 % to +10 %');
  expect(errorSentence('iwarp', 'latency', 'write')).toMatch(unknown);
});

it('has a kind for each test, by the size of its messages', () => {
  expect([figureKindOf(true, 65_536), figureKindOf(false, 2047), figureKindOf(false, 2048)]).toEqual([
    'latency',
    'message rate',
    'bandwidth',
  ]);
});

it('has a network for each card', () => {
  const ofProfile = (profile: string, set = {}) => networkOf(configurationOf({ profile, set }));
  expect(ofProfile('connectx3-qdr')).toBe('infiniband');
  expect(ofProfile('connectx5-100gbe')).toBe('ethernet');
  const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
  expect(ofProfile('connectx3-qdr', iwarp)).toBe('iwarp');
});
