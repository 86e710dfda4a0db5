import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { hca } from '../../cli/testing/in-process.ts';
import { WorkerLostError } from '../../sim/index.ts';
import { keepingCapture, reportFullCapture } from './capture-output.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-capture-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.restoreAllMocks());

const framesIn = (file: string) => readCapture(readFileSync(file)).frames;
const ethernet = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.roce=v2'];

it('a full capture is reported for each end', async () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  const drops = [
    { process: 'hca0', kept: 3, dropped: 4 },
    { process: 'hca1', kept: 7, dropped: 0 },
  ];
  const machine = { captureDrops: async () => drops };
  await reportFullCapture(machine, { capture: { ends: [], sizeBytes: 1, file: 'a.pcapng' } });
  await reportFullCapture(machine, {});
  expect(lines).toEqual([
    'hca: a.pcapng has the first 3 packets at hca0; 4 later ones were not kept: --pcap-size\n',
  ]);
});

it.each(['single', 'per-node'])(
  'a run that fails leaves its packets in the file, and says so: %s',
  async (partition) => {
    const file = join(folder, `failed.${partition}.pcapng`);
    const fault = ['--fault', 'packet=lost,nth=3-', '--partition', partition];
    const { code, err } = await hca('perf', 'write-bw', '-s', '64', '-n', '4', ...fault, '--pcap', file);
    const [kept, failure] = err.split('\n');
    expect([code, kept]).toEqual([
      1,
      `hca: ${file} has the packets up to the failure: npx hca wire reads it`,
    ]);
    expect(failure).toContain('RETRY_EXC_ERR');
    // The first two packets passed; all others were lost until the retries were exhausted (7 after the first attempt).
    const comments = framesIn(file).map(({ comment }) => comment);
    expect(comments.slice(0, 2)).toEqual(['', '']);
    expect(comments.filter((comment) => comment === 'lost on its way by a fault').length).toBeGreaterThan(8);
  },
);

it('hca move also keeps the packets of a failed run', async () => {
  const input = join(folder, 'input');
  writeFileSync(input, 'four');
  const file = join(folder, 'move.pcapng');
  const { code, err } = await hca('move', input, '--fault', 'packet=lost,nth=1-', '--pcap', file);
  expect([code, err]).toEqual([1, expect.stringContaining(`${file} has the packets up to the failure`)]);
  expect(framesIn(file).length).toBeGreaterThan(7);
});

it('the packets of a machine with a lost thread are reported as lost, and the thread is not queried', async () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  const capture = vi.fn(() => Promise.reject(new Error('asked')));
  const file = join(folder, 'none.pcapng');
  const analysis = { capture: { ends: [], sizeBytes: 1, file } };
  const lost = new WorkerLostError('hca0', 0, 'gone');
  const machine = { capture, captureDrops: async () => [] };
  const run = () => Promise.reject(lost);
  await expect(keepingCapture(machine, analysis, run)).rejects.toBe(lost);
  expect(lines).toEqual([
    `hca: ${file} was not written: the packets are lost (a thread of the machine was lost)\n`,
  ]);
  expect([capture.mock.calls, existsSync(file)]).toEqual([[], false]);
});

it.each<[string, string, string | undefined]>([
  ['late,nth=3,delay=5us', 'held up for 5 us by a fault', 'held up for 5 us by a fault'],
  ['reordered,nth=3', 'held back by a fault: 1 other passed it', 'held back by a fault: 1 other passed it'],
  // Frames of these programs cannot be marked (RFC 3168, 5: they are not ECT).
  ['congested,nth=3', 'marked for congestion by a fault', undefined],
  ['duplicated,nth=3', 'a copy, made by a fault', 'a copy, made by a fault'],
  ['lost,nth=3', 'lost on its way by a fault', 'lost on the cable'],
])('the capture has a comment on a packet that is %s', async (fault, onInfiniband, onEthernet) => {
  for (const [words, comment] of [
    [[], onInfiniband],
    [ethernet, onEthernet],
  ] as const) {
    const file = join(folder, 'comments.pcapng');
    const perf = ['perf', 'write-bw', '-s', '64', '-n', '6', '--pcap', file, ...words];
    expect((await hca(...perf, '--fault', `packet=${fault}`)).code).toBe(0);
    const comments = framesIn(file).map((frame) => frame.comment);
    const expected = comment === undefined ? [] : [comment];
    expect(comments.filter((found) => found !== '')).toEqual(expected);
  }
});
