/** The trace of a scenario that fails, in a guest of QEMU and in one of this process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  GuestError,
  makeTemporaryFolder,
  runScenario,
  type Scenario,
  startInside,
  startScenario,
} from '../../guests/linux/index.ts';
import { insideBootTimeoutMs, reasonAgainstInside, slowPc } from './inside-suite.ts';
import { cache, optionsFor, reasonAgainst } from './suite.ts';

const { path: folder, remove } = makeTemporaryFolder('hca-failed-');
afterAll(remove);

const failing: Scenario = {
  ...{ name: 'failing', title: 'a step fails after others', guests: 1, hcas: 1, isCabled: false, faults: [] },
  isLoaded: false,
  steps: [
    {
      title: 'the driver is loaded and the step fails',
      run: async (stage) => {
        await stage.check('modprobe mlx4_core && rmmod mlx4_core');
        throw new GuestError('as it should');
      },
    },
  ],
};

it.each([
  ['qemu', () => reasonAgainst('debian')],
  ['inside', () => reasonAgainstInside('debian')],
] as const)(
  'a scenario that fails leaves a trace that is whole up to the failure (%s)',
  { timeout: insideBootTimeoutMs },
  async (kind, reasonOf) => {
    expect(await reasonOf()).toBeUndefined();
    const file = join(folder, `${kind}.log`);
    const trace = {
      categories: ['commands'],
      filters: [],
      format: 'text',
      file,
      sizeBytes: 2 ** 24,
    } as const;
    const start = () =>
      kind === 'qemu'
        ? startScenario(failing, { ...optionsFor('debian', 1), serve: { analysis: { trace } } })
        : startInside(failing, { kernel: 'debian', cache, pc: slowPc, analysis: { trace } });
    const { holds, steps } = await runScenario(failing, start, () => {});
    expect([holds, steps.map(({ text }) => text)]).toEqual([false, ['as it should']]);
    const text = readFileSync(join(folder, `${kind}.guest0.log`), 'utf8');
    // The first command of the driver and the last: far less than the text that a trace gathers before it writes.
    expect(text).toContain('QUERY_FW');
    expect(text).toContain('CLOSE_HCA');
    expect(
      text
        .trimEnd()
        .split('\n')
        .findLast((line) => line.includes('commands ')),
    ).toContain('UNMAP_FA');
  },
);
