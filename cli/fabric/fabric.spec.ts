/** `hca fabric` and `hca topology`: tables, sentences, files, and errors in one line. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Explanation } from '../../explain/timeline/index.ts';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import { type Ended, hcaWithin } from '../testing/in-process.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = makeTemporaryFolder('hca-fabric-spec-');
afterAll(() => folder.remove());

const hca = (...args: string[]): Promise<Ended> => hcaWithin({ cwd: folder.path }, args);
const textOf = (name: string): string => readFileSync(join(folder.path, name), 'utf8');

const iwarpSet = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.transport=iwarp'];
const few = ['--size', '4096', '--messages', '3'];

describe('hca fabric', () => {
  it('shows each flow, each output, and the answer; as a page and as JSON, too', async () => {
    const files = ['--html', 'incast.html', '--json', 'incast.json'];
    const { code, out, err } = await hca('fabric', 'incast', '--topology', 'star:3', ...few, ...files);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('2 flows of 3 messages of 4.000 KiB');
    expect(out).toContain('host 2 to 0');
    expect(out).toContain('switch 3 port 1');
    expect(out).toContain("Jain's index of fairness is");
    const page = textOf('incast.html');
    // Three hosts and one switch, joined by three cables.
    expect(page.match(/<title>host \d<\/title>/g)).toHaveLength(3);
    expect(page.match(/<path d="M/g)).toHaveLength(3);
    const row = JSON.parse(textOf('incast.json')) as { schema: string; isEqual: boolean; flows: object[] };
    expect(row).toMatchObject({ schema: 'hca-fabric/1', isEqual: true });
    expect(row.flows).toHaveLength(2);
  });

  it('calls hosts that take no part hosts', async () => {
    const { out } = await hca('fabric', 'incast', '--topology', 'star:6', '--hosts', '3', ...few);
    // star:6 has hosts 0 to 5 and one switch, node 6, whose port p leads to host p - 1.
    for (const port of [1, 2, 3, 4, 5, 6])
      expect(out).toMatch(new RegExp(`switch 6 port ${port} +│ host ${port - 1} `));
    expect(out).not.toMatch(/switch [0-5]\b/);
  });

  it('explains a message by events of its two ends alone', async () => {
    const { out } = await hca('fabric', 'incast', '--topology', 'star:4', ...few, '--explain', '2.1');
    expect(out).toMatch(/· hca2 .*\n/);
    expect(out).toMatch(/· hca0 .*\n/);
    expect(out).not.toMatch(/· (hca|host)[13] /);
  });

  it('counts packets with a wrong CRC at switches', async () => {
    const lost = ['--fault', 'packet=corrupted,node=0,nth=4-6'];
    const plain = await hca('fabric', 'all-to-all', '--topology', 'star:3', ...few);
    expect(plain.out).not.toContain('wrong CRC');
    const { out } = await hca('fabric', 'all-to-all', '--topology', 'star:3', ...few, ...lost);
    expect(out.replaceAll(/\s+/g, ' ')).toContain(
      '3 arrivals of packets with a wrong CRC; dropped at once: 3, accepted: 0, sent on: 0.',
    );
    const icrc = ['--fault', 'packet=corrupted,node=0,nth=4-6,crc=icrc'];
    const passed = await hca('fabric', 'all-to-all', '--topology', 'star:3', ...few, ...icrc);
    expect(passed.out.replaceAll(/\s+/g, ' ')).toContain('dropped at once: 0, accepted: 3, sent on: 3.');
    // Both switches of the way count the packet.
    const far = ['--topology', 'dumbbell:2', '--fault', 'packet=corrupted,node=1,nth=2,crc=icrc'];
    const twice = await hca('fabric', 'incast', ...few, ...far);
    expect(twice.out.replaceAll(/\s+/g, ' ')).toContain(
      '2 arrivals of packets with a wrong CRC; dropped at once: 0, accepted: 2, sent on: 2.',
    );
  });

  it('counts one flow of one message in the singular', async () => {
    const { out } = await hca('fabric', 'incast', '--topology', 'star:2', '--messages', '1');
    expect(out).toContain('1 flow of 1 message of 64.00 KiB');
  });

  it('names a fabric without switches so', async () => {
    const { code, out } = await hca('fabric', 'ring', '--topology', '0-1', ...few);
    expect([code, out]).toEqual([0, expect.stringContaining('No switch is in the way.')]);
  });

  it('writes the failure, the host and the fault of a run that fails; it is repeated and compared by that', async () => {
    const fault = ['--fault', 'cable=pulled,node=4,to=5,at=1ms'];
    const failed = await hca(
      'fabric',
      'ring',
      '--topology',
      'dumbbell:4',
      ...few,
      ...fault,
      '--json',
      'no.json',
    );
    const message = /^hca: (program host1 failed .* RETRY_EXC_ERR\. The fault .* fired once)\n$/.exec(
      failed.err,
    )?.[1];
    expect([failed.code, message]).toEqual([1, expect.any(String)]);
    const output = JSON.parse(textOf('no.json')) as Output;
    expect(faultsOf(output)).toEqual([]);
    expect(output).toMatchObject({
      schema: 'hca-fabric-failure/1',
      failure: message,
      hosts: [1],
      args: { pattern: 'ring', hostCount: 4 },
      report: { faults: [{ fault: 'cable=pulled,portNumber=3,at=1ms,node=4', fired: 1 }] },
    });
    expect(await hca('rerun', 'no.json')).toMatchObject({
      code: 0,
      out: expect.stringContaining('The same came'),
    });
  });

  it('explains a message as JSON and as a page, too', async () => {
    const files = ['--json', 'one.json', '--html', 'one.html'];
    const { code, out } = await hca(
      'fabric',
      'incast',
      '--topology',
      'star:3',
      ...few,
      '--explain',
      '2.1',
      ...files,
    );
    expect([code, out]).toEqual([0, expect.stringContaining('all steps together')]);
    const output = JSON.parse(textOf('one.json')) as Output & Explanation;
    expect(faultsOf(output)).toEqual([]);
    expect(output).toMatchObject({
      schema: 'hca-explain/1',
      node: 2,
      ordinal: 1,
      invocation: { command: 'fabric' },
    });
    expect(output.steps.reduce((sum, { durationPs }) => sum + durationPs, 0)).toBe(output.latencyPs);
    expect(textOf('one.html')).toContain('<title>Operation 1 of host 2: WRITE</title>');
  });

  it('says what of the topologies of two runs differs', async () => {
    for (const hosts of ['3', '4'])
      await hca('fabric', 'incast', '--topology', `star:${hosts}`, ...few, '--json', `star${hosts}.json`);
    const { code, out } = await hca('diff', 'star3.json', 'star4.json');
    expect(code).toBe(1);
    expect(out).toMatch(/more are of hosts, cables and flows that only one topology has/);
    expect(out).toMatch(/topology cable #0\.4-3 +│ +- │ as configured/);
  });

  it.each([
    [
      ['incast', ...iwarpSet, '--verb', 'send', '--use-srq'],
      'useSrq is true, expected left out with iWARP, where each connection has its own receives',
    ],
    [
      ['incast', ...iwarpSet, '--verb', 'send', '--connection', 'UD'],
      'connection is "UD", expected RC or left out with iWARP, which has no XRC or UD',
    ],
    [['victim', '--topology', 'star:3'], 'hosts of victim is 3, expected at least 4'],
    [
      ['incast', '--topology', '0-1,2-3'],
      'flow from host 2 is "to host 0", expected hosts whose first ports',
    ],
    [
      ['incast', '--topology', 'star:99'],
      'topology star:99, hosts, is "99", expected an integer from 2 to 64',
    ],
    [
      ['outcast', '--topology', 'star:3', '--set', 'machine.adapter=nic'],
      'machine.adapter is "nic", expected hca',
    ],
    [['storm'], 'storm'],
  ])('rejects %j', async (args, message) => {
    const { code, err } = await hca('fabric', ...args, ...few);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe('a run on a fabric', () => {
  it.each([
    ['fabric', 'ring', '--topology', 'star:2', ...few],
    ['perf', 'write-lat', '--iters', '5', '--topology', 'star:4'],
  ])('is repeated by what it wrote: %s %s', async (...args) => {
    expect(await hca(...args, '--json', 'run.json')).toMatchObject({ code: 0, err: '' });
    const again = await hca('rerun', 'run.json', '--json', '-');
    expect(again.code).toBe(0);
    expect(again.out).toContain('"isEqual": true');
  });
});

describe('hca topology', () => {
  it('counts, draws, and writes a file that --topology reads', async () => {
    const { code, out } = await hca('topology', 'dumbbell:4', '--json', 'bell.json', '--html', 'bell.html');
    expect(code).toBe(0);
    expect(out).toContain('4 hosts, 2 switches, 5 cables.');
    // Four of the 12 ordered pairs pass one switch, eight pass two: 20 / 12.
    expect(out).toContain('A packet passes 1 to 2 switches, 1.67 on average');
    expect(textOf('bell.html').match(/<path d="M/g)).toHaveLength(5);
    const again = await hca('topology', './bell.json', '--json', '-');
    expect(JSON.parse(again.out)).toEqual(JSON.parse(textOf('bell.json')));
  });

  it.each([
    // Two stars of three and of two hosts: of 5 × 4 ordered pairs, 3 × 2 + 2 × 1 are joined.
    [
      'two stars',
      {
        nodes: [...Array<object>(5).fill({ kind: 'host' }), { kind: 'switch' }, { kind: 'switch' }],
        links: [
          [0, 5, 1],
          [1, 5, 2],
          [2, 5, 3],
          [3, 6, 1],
          [4, 6, 2],
        ].map(([node, to, port]) => ({ ends: [{ node }, { node: to, port }] })),
      },
      '5 hosts, 2 switches, 5 cables. A packet passes 1 switch between any two hosts that are joined, by the fewest links (machine.routing=min-hop). 12 of 20 ordered pairs of hosts are not joined by their first ports.',
    ],
    [
      'pairs',
      {
        nodes: Array(4).fill({ kind: 'host' }),
        links: [0, 2].map((node) => ({ ends: [{ node }, { node: node + 1 }] })),
      },
      '4 hosts, 0 switches, 2 cables. Cables: 0-1,2-3. 8 of 12 ordered pairs of hosts are not joined by their first ports.',
    ],
  ])('counts pairs of hosts that are not joined in %s', async (_what, topology, sentences) => {
    writeFileSync(join(folder.path, 'parts.json'), JSON.stringify(topology));
    const { code, out } = await hca('topology', './parts.json');
    expect([code, out.replaceAll(/\s+/g, ' ').trim()]).toEqual([0, sentences]);
  });

  it('names the way of forwarding of switches that have their own, in words and in the drawing', async () => {
    const bell = JSON.parse(textOf('bell.json')) as { nodes: object[] };
    const nodes = bell.nodes.map((node, at) => (at === 4 ? { ...node, forwarding: 'cut-through' } : node));
    writeFileSync(join(folder.path, 'modes.json'), JSON.stringify({ ...bell, nodes }));
    const { code, out } = await hca('topology', './modes.json', '--html', 'modes.html');
    expect([code, out]).toEqual([
      0,
      expect.stringContaining('Switches with their own forwarding mode: 4 (cut-through).'),
    ]);
    expect(textOf('modes.html')).toContain('<title>switch 4, cut-through</title>');
  });

  it('counts one cable in the singular, and says nothing of pairs if all are joined', async () => {
    const { out } = await hca('topology', '0-1');
    expect(out.trim().split('\n')).toEqual(['2 hosts, 0 switches, 1 cable.', 'Cables: 0-1.']);
  });

  it('says that no two hosts are joined', async () => {
    const text = JSON.stringify({
      nodes: [{ kind: 'host' }, { kind: 'host' }, { kind: 'switch' }, { kind: 'switch' }],
      links: [0, 1].map((node) => ({ ends: [{ node }, { node: node + 2 }] })),
    });
    writeFileSync(join(folder.path, 'apart.json'), text);
    const { code, out } = await hca('topology', './apart.json');
    expect([code, out]).toEqual([0, expect.stringContaining('No two hosts are joined')]);
  });
});
