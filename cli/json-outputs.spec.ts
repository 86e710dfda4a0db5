/** Compares outputs of the commands with the published schemas, except those in rerun.spec.ts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makeTemporaryFolder } from '../guests/linux/temporary-folder.ts';
import { serve } from '../guests/serve/index.ts';
import { jsonText } from './output.ts';
import { hca, hcaWithin, mainPath } from './testing/in-process.ts';
import { faultsOf, type Output } from './testing/schemas.ts';

// Whole simulations on machines with few cores.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 });

const folder = makeTemporaryFolder('hca-schemas-');
afterAll(() => folder.remove());

const json = join(folder.path, 'out.json');
const report = join(folder.path, 'report.json');
const read = (file: string): Output => JSON.parse(readFileSync(file, 'utf8')) as Output;

/** Runs a command that may report findings, and reads its output. */
async function written(args: readonly string[]): Promise<Output> {
  const { code, err } = await hcaWithin({ cwd: folder.path }, [...args, '--json', json]);
  expect([0, 1], err).toContain(code);
  return read(json);
}

describe('an output matches its published schema:', () => {
  it.each([
    ['hca-perf/2', ['perf', 'write-bw', '-n', '50', '-s', '64', '--fault', 'packet=corrupted,nth=5']],
    ['hca-perf/2', ['perf', 'read-bw', '-n', '50', '-s', '64', '--region', '1M', '--pattern', 'random']],
    ['hca-compare/1', ['compare', '--sizes', '64', '--paths', 'write', '--fault', 'packet=lost,nth=9']],
    ['hca-profiles/1', ['profiles']],
    ['hca-faults/1', ['faults']],
    ['hca-explain/1', ['explain', 'send-lat', '-s', '64', '-n', '5', '--op', '3']],
    ['hca-why/1', ['why', 'write-lat', '-n', '5', '--fault', 'packet=lost,node=0,nth=3-90']],
    // Output without a story: torture-served.spec.ts has one with a story.
    ['hca-torture-served/1', ['torture', '--served', '--minutes', '1e-9']],
  ])('%s of %j', async (schema, args) => {
    const output = await written(args);
    expect([output.schema, faultsOf(output)]).toEqual([schema, []]);
  });

  it('hca-move/1, hca-report/1 and hca-run/1 of a move', async () => {
    const options = ['--traditional', '100', '--partition', 'single', '--watch', 'races', '--set'];
    const output = await written([
      'move',
      mainPath,
      '--report',
      report,
      ...options,
      'pcie.iommu.isEnabled=true',
    ]);
    expect([output.schema, faultsOf(output)]).toEqual(['hca-move/1', []]);
    expect([read(report).schema, faultsOf(read(report))]).toEqual(['hca-report/1', []]);
    const facts = read(join(folder.path, 'report.run.json'));
    expect([facts.schema, faultsOf(facts)]).toEqual(['hca-run/1', []]);
  });
});

it('hca-serve-report/1 of an unused device', async () => {
  const machine = await serve({ socket: join(folder.path, 'socket'), hcas: 1 });
  await machine.close();
  expect(faultsOf(JSON.parse(jsonText(await machine.ended)) as Output)).toEqual([]);
});

it('hca-diff/1 and hca-rerun/1', async () => {
  const perf = ['perf', 'write-bw', '-n', '20', '-s', '64', '--json'];
  for (const [name, change] of [
    ['a', []],
    ['b', ['--set', 'pcie.link.lanes=1']],
  ] as const)
    await hca(...perf, join(folder.path, `${name}.json`), ...change);
  const [a, b] = [join(folder.path, 'a.json'), join(folder.path, 'b.json')];
  for (const args of [
    ['diff', a, b],
    ['rerun', b],
  ]) {
    const output = await written(args);
    expect([output.schema, faultsOf(output)]).toEqual([`hca-${args[0]}/1`, []]);
  }
});

it('a field that no schema has is found, at any depth', () => {
  const output = read(report) as unknown as { nodes: { cpu: Record<string, unknown> }[] } & Output;
  output.nodes[1]!.cpu['mood'] = 'good';
  expect(faultsOf(output)).toEqual([expect.stringContaining('"additionalProperty":"mood"')]);
});
