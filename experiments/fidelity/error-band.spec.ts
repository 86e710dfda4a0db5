import { expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { errorBands } from './error-bands.ts';
import { errorSentence, networkOf } from './index.ts';

it('names the band of the verb, with its rows', () => {
  const { rows, low, high } = errorBands['infiniband write latency']!;
  const sentence = errorSentence('infiniband', 'latency', 'write');
  expect(sentence).toContain(`${rows} measurements`);
  expect(sentence).toContain(`${Math.round(high * 100)} %`);
  expect(low).toBeLessThan(high);
});

it('names that of all verbs where a verb has few rows, and none where all have few', () => {
  expect(errorBands['infiniband atomic message rate']!.rows).toBeLessThan(10);
  const { rows } = errorBands['infiniband message rate']!;
  expect(errorSentence('infiniband', 'message rate', 'atomic')).toContain(`${rows} measurements`);
  expect(errorSentence('iwarp', 'latency', 'write')).toMatch(/^Expected error: unknown.*iWARP/);
  expect(errorSentence('ethernet', 'latency', 'write')).toMatch(/^Expected error: unknown.*RoCE/);
});

it('has a network for each card', () => {
  const ofProfile = (profile: string, set = {}) => networkOf(configurationOf({ profile, set }));
  expect(ofProfile('connectx3-qdr')).toBe('infiniband');
  expect(ofProfile('connectx5-100gbe')).toBe('ethernet');
  const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
  expect(ofProfile('connectx3-qdr', iwarp)).toBe('iwarp');
});
