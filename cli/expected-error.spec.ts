import { expect, it } from 'vitest';
import { checkedSpec, pointsOf } from '../experiments/sweep/index.ts';
import { perfArgsOf } from '../experiments/workloads/index.ts';
import { configurationOf } from '../machine/profile/index.ts';
import { expectedError, expectedErrors } from './expected-error.ts';

const infiniband = configurationOf({ profile: 'connectx3-fdr-fitted' });

it('names latency, message rate or bandwidth, by test and size, and only for perftest’s plain tests', () => {
  const sentenceOf = (test: 'write-lat' | 'write-bw' | 'send-bw' | 'kv-rpc', more = {}): string =>
    expectedError(perfArgsOf({ test, ...more }), infiniband);
  expect(sentenceOf('write-lat', { size: 64 })).toMatch(
    /^Expected error of a latency of WRITE.* of \d+ measurements/,
  );
  expect(sentenceOf('write-bw', { size: 64 })).toMatch(/of a message rate/);
  expect(sentenceOf('write-bw', { size: 4096 })).toMatch(/of a bandwidth/);
  const others = [{ rate: 1000 }, { bidirectional: true }, { connection: 'UC' }];
  for (const more of others) expect(sentenceOf('write-bw', more)).toMatch(/unknown/);
  expect(sentenceOf('send-bw', { echo: true })).toMatch(/unknown/);
  expect(sentenceOf('kv-rpc')).toMatch(/unknown/);
});

it('names each error of a sweep once', () => {
  const spec = checkedSpec({
    machine: { profile: 'connectx3-fdr-fitted' },
    workload: { test: 'read-bw' },
    vary: { size: '8,64,8192' },
  });
  const sentences = expectedErrors(pointsOf(spec));
  expect(sentences.map((text) => /of a ([a-z ]+) of READ/.exec(text)?.[1])).toEqual([
    'message rate',
    'bandwidth',
  ]);
});
