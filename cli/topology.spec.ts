/** `--topology` of the other commands: a test between host 0 and the host cabled to it costs what it costs between the hosts of a pair. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makeTemporaryFolder } from '../guests/linux/temporary-folder.ts';
import { type Ended, hcaWithin } from './testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = makeTemporaryFolder('hca-commands-topology-spec-');
afterAll(() => folder.remove());

const hca = (...args: string[]): Promise<Ended> => hcaWithin({ cwd: folder.path }, args);
const read = <Output>(name: string): Output =>
  JSON.parse(readFileSync(join(folder.path, name), 'utf8')) as Output;

const crossed = ['--topology', '0-2,1-3'];
/** Every host has two cables. */
const ring = '0-1,2-3,1.2-2.2,3.2-0.2';

interface Rows {
  readonly rows: readonly unknown[];
}

describe('--topology', () => {
  it('moves a file from host 0 to the host cabled to it', async () => {
    writeFileSync(join(folder.path, 'letter.txt'), 'a file of some bytes\n'.repeat(100));
    const moved = await hca('move', 'letter.txt', '--partition', 'single', ...crossed);
    expect(moved).toMatchObject({ code: 0, err: '' });
    expect(moved.out).toContain('from host 0 to host 2 in chunks');
    expect(moved.out).toContain('b is host 2, which gets it');
    expect(moved.out).not.toContain('host 1,');
  });

  it('compares paths between them, at the same costs as in a pair', async () => {
    const args = ['compare', '--sizes', '64', '--paths', 'sockets,write'];
    expect(await hca(...args, ...crossed, '--json', 'crossed.json')).toMatchObject({ code: 0, err: '' });
    await hca(...args, '--json', 'pair.json');
    expect(read<Rows>('crossed.json').rows).toEqual(read<Rows>('pair.json').rows);
  });

  it('finds the same cutoffs', async () => {
    const args = ['cutoff', '--sizes', '1K..2K', '--waiting', 'poll'];
    expect(await hca(...args, ...crossed, '--json', 'crossed.json')).toMatchObject({ code: 0, err: '' });
    await hca(...args, '--json', 'pair.json');
    const results = (name: string): unknown => read<{ readonly results: unknown }>(name).results;
    expect(results('crossed.json')).toEqual(results('pair.json'));
  });

  it('is part of the machine of a sweep, by option or in the specification', async () => {
    const sweep = (...args: string[]): Promise<Ended> => hca('sweep', ...args, '--jobs', '1');
    const points = ['--workload', 'write-bw,size=64,iters=20', '--vary', 'mtu=1024,2048'];
    expect(await sweep(...points, '--topology', ring, '--out', 'ring.jsonl')).toMatchObject({ code: 0 });
    writeFileSync(
      join(folder.path, 'ring.yaml'),
      `workload: write-bw,size=64,iters=20\nmachine: { topology: "${ring}" }\nvary: { mtu: [1024, 2048] }\n`,
    );
    expect(await sweep('ring.yaml', '--out', 'spec.jsonl')).toMatchObject({ code: 0 });
    const linesOf = (name: string): string[] =>
      readFileSync(join(folder.path, name), 'utf8').trim().split('\n').slice(1);
    expect(linesOf('spec.jsonl')).toEqual(linesOf('ring.jsonl'));
    await sweep(...points, '--out', 'pair.jsonl');
    expect(linesOf('pair.jsonl')).not.toEqual(linesOf('ring.jsonl'));
  });

  it.each([['serve', '--socket', 'hca.sock'], ['guest', '--fetch-only'], ['lab']])(
    'is rejected by hca %s',
    async (...args) => {
      const { code, err } = await hca(...args, ...crossed);
      expect([code, err]).toEqual([2, expect.stringMatching(/--topology is "0-2,1-3", expected left out: /)]);
    },
  );

  it.each([
    ['compare', '--sizes', '64'],
    ['move', 'letter.txt'],
  ])('is rejected by hca %s with a second cable where a path needs a NIC', async (...args) => {
    const { code, err } = await hca(...args, '--topology', ring);
    expect([code, err]).toEqual([2, expect.stringContaining('a NIC has one port')]);
  });
});

it('is rejected where a test would need a second port', async () => {
  const { code, err } = await hca('perf', 'write-bw', '--topology', '0-1.2,1-0.2');
  expect([code, err]).toEqual([2, expect.stringContaining('expected one to port 1 of another host')]);
});

describe('a fault at port 2', () => {
  const why = (fault: string, topology: string): Promise<Ended> =>
    hca('perf', 'write-lat', '--size', '64', '--iters', '5', '--topology', topology, '--fault', fault);

  it('leaves the packets of port 1 alone', async () => {
    const { code, out } = await why('packet=lost,nth=every,portNumber=2', ring);
    expect(code).toBe(0);
    expect(out).toContain('packet=lost,portNumber=2,nth=every,node=0: NEVER happened');
  });

  it('is rejected where the host has no cable there', async () => {
    const { code, err } = await why('cable=pulled,at=1ms,portNumber=2', '0-1,2-3');
    const message = 'fault 1 (cable), field portNumber, is 2, expected 1: host 0 has no cable at port 2';
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});
