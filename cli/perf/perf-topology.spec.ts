/** `--topology`: perf between the ends of a cable, given as links or a file, and its rerun. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { publishedTexts } from '../../build/pages/json-schemas.ts';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import { type Ended, hcaWithin } from '../testing/in-process.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = makeTemporaryFolder('hca-topology-spec-');
afterAll(() => folder.remove());

const hca = (...args: string[]): Promise<Ended> => hcaWithin({ cwd: folder.path }, args);
const perf = (...args: string[]): Promise<Ended> =>
  hca('perf', 'write-bw', '--size', '4096', '--iters', '60', ...args);

interface Figures extends Output {
  readonly configHash: string;
  readonly invocation: { readonly machine: Readonly<Record<string, unknown>> };
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}
const read = (name: string): Figures => JSON.parse(readFileSync(join(folder.path, name), 'utf8')) as Figures;

const host = { kind: 'host' };
const crossed = {
  nodes: [host, host, host, host],
  links: [{ ends: [{ node: 0 }, { node: 2 }] }, { ends: [{ node: 1 }, { node: 3, port: 1 }] }],
};

describe('perf --topology', () => {
  it('measures the same between host 0 and its peer as between the hosts of a pair', async () => {
    expect(await perf('--topology', '0-2,1-3', '--json', 'crossed.json')).toMatchObject({ code: 0, err: '' });
    await perf('--json', 'pair.json');
    const [row, pair] = [read('crossed.json').rows[0]!, read('pair.json').rows[0]!];
    expect(row['result']).toEqual(pair['result']);
    // The same bottleneck, at the participating hosts.
    const named = JSON.stringify(pair['bottleneck'])
      .replaceAll('host 1', 'host 2')
      .replaceAll('to 1', 'to 2');
    expect(JSON.stringify(pair['bottleneck'])).toContain('host 1');
    expect(row['bottleneck']).toEqual(JSON.parse(named));
    expect(row).toMatchObject({ isBalanced: true, interrupts: [0, 0, 0, 0] });
    expect(row['cores']).toMatchObject([{ node: 0 }, { node: 2 }]);
    expect(faultsOf(read('crossed.json'))).toEqual([]);
  });

  it('counts interrupts and caches at the hosts that have them', async () => {
    const args = ['send-bw', '--size', '64', '--iters', '60', '--events', '--topology', '0-2,1-3'];
    await hca('perf', ...args, '--json', 'events.json');
    const [{ interrupts, caches }] = read('events.json').rows as [
      {
        interrupts: readonly number[];
        caches: readonly Readonly<Record<string, { readonly hits: number }>>[];
      },
    ];
    expect(interrupts.map((count) => count > 0)).toEqual([true, false, true, false]);
    expect(caches.map(({ qpc }) => qpc!.hits > 0)).toEqual([true, false, true, false]);
  });

  it('reads a file, whose machine is the same as that of its links', async () => {
    writeFileSync(join(folder.path, 'topology.json'), JSON.stringify(crossed));
    await perf('--topology', './topology.json', '--partition', 'per-node', '--json', 'file.json');
    const [file, links] = [read('file.json'), read('crossed.json')];
    expect(file).toEqual(links);
    expect(file.invocation.machine).toMatchObject({ topology: '0-2,1-3', configHash: file.configHash });
    expect(file.configHash).not.toBe(read('pair.json').configHash);
  });

  it('is repeated by rerun, and rejected if an output names a file', async () => {
    expect(await hca('rerun', 'crossed.json')).toMatchObject({ code: 0 });
    const output = read('crossed.json');
    const machine = { ...output.invocation.machine, topology: '/etc/passwd' };
    const forged = { ...output, invocation: { ...output.invocation, machine } };
    writeFileSync(join(folder.path, 'forged.json'), JSON.stringify(forged));
    const { code, err } = await hca('rerun', 'forged.json');
    expect([code, err]).toEqual([2, expect.stringContaining('expected parameters, seed and faults')]);
  });

  it.each([
    ['0-1,1-2', 'topology, links[1], ends[0], is "node 1, port 1", expected a port without a link'],
    ['missing.json', 'topology file is "missing.json", expected a readable file (ENOENT)'],
  ])('exits with code 2 and one line for %s', async (text, message) => {
    const { code, err } = await perf('--topology', text);
    expect([code, err.trim().split('\n').length]).toEqual([2, 1]);
    expect(err).toContain(message);
  });

  it('has a published schema that accepts and rejects the same files as the command', () => {
    const schema = JSON.parse(publishedTexts().get('hca-topology-1.schema.json')!) as object;
    const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(schema);
    expect(validate(crossed)).toBe(true);
    for (const wrong of [
      { ...crossed, nodes: [host] },
      { ...crossed, switches: [] },
      { ...crossed, links: [{ ends: [{ node: 0 }] }] },
      { ...crossed, links: [{ ends: [{ node: 0, port: 65 }, { node: 2 }] }] },
      { ...crossed, links: [{ ends: [{ node: 0 }, { node: 256 }] }] },
    ])
      expect(validate(wrong), JSON.stringify(wrong)).toBe(false);
  });
});
