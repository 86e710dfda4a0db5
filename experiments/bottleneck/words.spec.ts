import { expect, it } from 'vitest';
import { less, more, type Resource } from './measured.ts';
import { bottleneckLines, stageLines } from './words.ts';

const resource = (share: number): Resource => ({
  name: 'posted credits of the root port of host 1',
  kind: 'window',
  share,
  turn: [...more('pcie.enumeration.maxReadRequestBytes', '--tx-depth'), ...less('host.cost.postSend')],
});

it('the bottleneck is written in lines that fit a terminal', () => {
  const lines = bottleneckLines({ binds: resource(1.02), next: [resource(0.5)] });
  expect(lines).toEqual([
    'What binds: posted credits of the root port of host 1, 100 % full.',
    '  Next in line: posted credits of the root port of host 1, 50 % full.',
    '  To turn: more pcie.enumeration.maxReadRequestBytes, --tx-depth; less',
    '    host.cost.postSend.',
  ]);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
});

it('a change without effect of its own is listed with its companions and the reasons, each once', () => {
  const because = 'A host has 4 cores, one for each thread.';
  const along = [{ ...more('host.core.count')[0]!, because }];
  const turn = ['--threads', '--servers'].map((what) => ({ ...more(what)[0]!, along }));
  const lines = bottleneckLines({ binds: { ...resource(1), turn: [...turn, ...less('--keys')] }, next: [] });
  expect(lines.slice(1)).toEqual([
    '  To turn: more --threads (with more host.core.count), --servers (with more',
    '    host.core.count); less --keys.',
    '  A host has 4 cores, one for each thread.',
  ]);
});

it('the longest stages of an operation are listed with the change that shortens the first', () => {
  const stages = [
    { name: 'remote', share: 0.7, turn: less('wire.portLatencyNs') },
    { name: 'doorbell', share: 0.3, turn: [] },
  ];
  expect(stageLines(stages)).toEqual([
    'Where the time goes from posting to completion:',
    '  remote 70 %, doorbell 30 %.',
    '  To turn: less wire.portLatencyNs.',
  ]);
  expect(stageLines([])).toEqual([]);
  expect(stageLines([{ name: 'ackTimeout', share: 1, turn: [] }])).toEqual([
    'Where the time goes from posting to completion:',
    '  ackTimeout 100 %.',
  ]);
});

it('no change of a stage is advised if programs sleep for most of the time', () => {
  const stages = [{ name: 'remote', share: 1, turn: less('wire.portLatencyNs') }];
  const events = { averagePs: 104_150_000, lifePs: 1_470_000, isModerated: true };
  expect(stageLines(stages, events)).toEqual([
    'Where the time goes from posting to completion:',
    '  remote 100 %.',
    '  That is 1.47 µs of 104.15 µs: for most of the time a program sleeps until an',
    '    event has come and woken it.',
    '  To turn: less --moderation.',
  ]);
  expect(stageLines(stages, { ...events, isModerated: false }).at(-1)).toBe('  To turn: less --events.');
  const awake = { ...events, averagePs: 2_000_000 };
  expect(stageLines(stages, awake)).toEqual(stageLines(stages));
});
