import { expect, it } from 'vitest';
import { less, more, type Resource } from './measured.ts';
import { bottleneckLines, stageLines } from './words.ts';

const resource = (share: number): Resource => ({
  name: 'posted credits of the root port of host 1',
  kind: 'window',
  share,
  turn: [...more('pcie.enumeration.maxReadRequestBytes', '--tx-depth'), ...less('host.cost.postSend')],
});

it('what binds is written in lines that fit a terminal', () => {
  const lines = bottleneckLines({ binds: resource(1.02), next: [resource(0.5)] });
  expect(lines).toEqual([
    'What binds: posted credits of the root port of host 1, 100 % full.',
    '  Next in line: posted credits of the root port of host 1, 50 % full.',
    '  To turn: more pcie.enumeration.maxReadRequestBytes, --tx-depth; less',
    '    host.cost.postSend.',
  ]);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
});

it('the longest stages of an operation are listed with what shortens the first', () => {
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
