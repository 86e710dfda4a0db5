/** The checker of the contract of use: each violation is reported with both accesses; a program that keeps the contract is not reported. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { renderReport } from '../explain/text/render.ts';
import { bytesOf, programOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 60_000 });

const programs = (args: string) => [0, 1].map((node) => programOf('racer', 'race', node, { args }));

describe('a program that', () => {
  it.each([
    ['writes what the device reads', 'write', 1000, 3, 'reads', 'SQ', 11, 0, 32_768],
    ['reads before the completion', 'read', 8184, 8, 'writes', 'SQ', 12, 4096, 4096],
    ['frees in flight', 'unmap', 8192, 4096, 'reads', 'SQ', 13, 8192, 4096],
    ['remaps in flight', 'remap', 16_384, 4096, 'reads', 'SQ', 14, 16_384, 4096],
    ['reads a posted receive', 'read', 63, 1, 'writes', 'RQ', 15, 0, 64],
  ] as const)('%s is reported, once', async (args, access, at, length, device, queue, wrId, from, bytes) => {
    const { report, results } = await runPrograms(programs(args), { watch: 'races' });
    const base = results[0] as number;
    const { races } = report.nodes[0]!;
    expect(races).toMatchObject([
      {
        program: { name: 'race0', core: 0, access, address: base + at, lengthBytes: length },
        device: { access: device, wrId, address: base + from, lengthBytes: bytes },
      },
    ]);
    const [found] = races!;
    expect(found!.device.queue).toMatch(new RegExp(`^${queue} of QP \\d+$`));
    expect(found!.program.atPs).toBeGreaterThanOrEqual(found!.device.atPs);
    expect(report.nodes[1]!.races).toEqual([]);
    expect(renderReport(report)).toContain(
      `Race on host 0: race0 on core 0 did ${access} of ${length} bytes`,
    );
  });

  it('breaks it more often than the report lists is reported so, with the number', async () => {
    const { report } = await runPrograms(programs('reads more often than is listed'), { watch: 'races' });
    const { races, lostRaces } = report.nodes[0]!;
    expect([races!.length, lostRaces]).toEqual([1000, 7]);
    expect(report.nodes[1]).not.toHaveProperty('lostRaces');
    expect(renderReport(report)).toMatch(/Race on host 0: .*\nRaces on host 0: 7 more\n/);
  });

  it('keeps the contract is not reported, and the checker does not change the run', async () => {
    const watched = await runPrograms(programs('keeps'), { watch: 'races' });
    const alone = await runPrograms(programs('keeps'));
    expect(watched.report.nodes.map(({ races }) => races)).toEqual([[], []]);
    const nodes = watched.report.nodes.map(({ races: _races, ...node }) => node);
    expect(bytesOf({ ...watched.report, nodes })).toBe(bytesOf(alone.report));
  });

  it('moves a file by all ways keeps the contract', async () => {
    const file = fileURLToPath(new URL('../LICENSE', import.meta.url));
    const fileBytes = statSync(file).size;
    const args = { file, fileBytes, chunkBytes: 256, window: 4, atomicCount: 4 };
    const run = (name: string) => new URL(`../experiments/workloads/move-${name}.ts`, import.meta.url);
    const { report } = await runPrograms(
      [
        { node: 0, name: 'sender', run: { url: run('sender'), exportName: 'send' }, args },
        { node: 1, name: 'receiver', run: { url: run('receiver'), exportName: 'receive' }, args },
      ],
      { watch: 'races' },
    );
    expect(fileBytes).toBeGreaterThan(4 * 256);
    expect(report.nodes.map(({ races }) => races)).toEqual([[], []]);
  });

  it('is watched in workers as well', async () => {
    const { report } = await runPrograms(programs('frees in flight'), {
      watch: 'races',
      partition: 'per-device',
    });
    expect(report.nodes[0]!.races).toHaveLength(1);
  });
});
