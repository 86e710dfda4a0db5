/**
 * A run from an image of the booted machine gives the report of a fresh machine, byte for byte, regardless of earlier runs from
 * the image; and the image contains the complete state of a machine.
 */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it, vi } from 'vitest';
import type { Audit } from '../bench/image-audit.ts';
import type { Node } from '../build/edit.ts';
import { BootedMachines, freshMachines } from '../machine/booted-machines.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { programsOf, storyOfSeed } from '../torture/index.ts';
import { capturedVariables } from './captured-variables.ts';
import { isAll, itOfAll, rowsOf } from './extent.ts';
import { comparison, outcomeOn, perfPrograms, randomComparison, workloads } from './image-stories.ts';
import { programOf } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const root = join(import.meta.dirname, '..');

/** Files of the model without observers: a machine with an analysis or a timeline has no image. */
const modelFiles = (): string[] =>
  ['base', 'sim', 'abi', 'wire', 'hw', 'host', 'driver', 'userlib', 'machine']
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
    .filter((file) => !/spec|testing|-bench|toy-|machine\/timeline/.test(file));

/** Variables of a call used only by functions that end with it, or before. */
const ofOneCall = [
  'host/mm/area-changes.ts cleared',
  'host/mm/fork.ts isComplete',
  'hw/dma/read-queue.ts request',
  'hw/dma/write-queue.ts request',
  'hw/hca/connectx3/icm-map.ts mapped',
  'hw/hca/port/subnet-management-agent.ts changed',
  'hw/hca/statistics/operations.ts atPs',
  'hw/hca/statistics/operations.ts lastCycle',
  'hw/pcie/root-complex/device-read.ts read',
  'sim/ledger.ts sum',
  'machine/partition/machine-part.ts left',
  'userlib/cq.ts counter',
];

describe('a run from the image of a booted machine has the report of a fresh machine', () => {
  it('for workloads one after another, the first once more at the end', async () => {
    const programs = workloads.slice(0, isAll ? 6 : 3).map(perfPrograms);
    const { difference, fromImage } = await comparison({}, [...programs, programs[0]!]);
    expect(difference).toBe('');
    expect(fromImage).toBe(programs.length);
  });

  const kinds: [string, MachineOptions][] = [
    ['an IOMMU', { set: { 'pcie.iommu.isEnabled': true } }],
    ['shuffled instants', { shuffleSeed: 3 }],
    ['packets corrupted', { faults: [{ packet: 'corrupted', nth: '20-22' }] }],
  ];
  const others: typeof kinds = [
    ['another seed', { seed: 7 }],
    ['another slot and little memory', { set: { 'pcie.link.generation': 2, 'host.memory.sizeMib': 64 } }],
    ['legacy interrupts', { set: { 'driver.useMsix': false } }],
    ['no shortcuts', { shortcuts: false }],
    ['watched buffers', { watch: 'races' }],
    ['four hosts', { nodes: 4 }],
    ['a read of a WQE lost', { faults: [{ read: 'wqeRead', nth: 3, answer: 'lost' }] }],
    ['a command refused', { faults: [{ command: 'SW2HW_CQ', nth: 1, status: 'BAD_RES_STATE' }] }],
    ['interrupts lost', { faults: [{ interrupt: 'lost', nth: '1-2' }] }],
  ];
  it.each(rowsOf(kinds, others))('of %s', async (_, options) => {
    const [first, second] = ['write-bw,size=64,iters=100', 'send-bw,size=2K,iters=40,qps=2'].map(
      perfPrograms,
    );
    const { difference, fromImage } = await comparison(options, [first!, second!, first!]);
    expect(difference).toBe('');
    // A fault may hit one host's boot alone, or end a run: then machines boot.
    if (options.faults === undefined) expect(fromImage).toBe(2);
  });

  it.each([
    ['machines', {}, 3, 1],
    ['four hosts', { nodes: 4 }, 3, 1],
    // A fault that hits only one host's boot leaves no image, and one that ends a boot does so each time.
    ['a read of one host lost', { faults: [{ read: 'any', nth: 40, node: 0, answer: 'lost' }] }, 0, 4],
    ['a command refused', { faults: [{ command: 'INIT_HCA', nth: 1, status: 'BAD_SYS_STATE' }] }, 0, 4],
  ] as const)(
    'of %s whose first boot is the only one',
    async (_, options: MachineOptions, imaged: number, boots: number) => {
      const [first, second] = ['write-bw,size=64,iters=100', 'read-lat,size=2K,iters=20'].map(perfPrograms);
      const rounds = [first!, second!, first!];
      expect(await comparison(options, rounds, undefined, { imageOf: 1 })).toEqual({
        difference: '',
        fromImage: imaged,
        booted: boots,
      });
    },
  );

  itOfAll('of two kinds alternately, where two are kept', async () => {
    await using machines = new BootedMachines({ imageOf: 1, kindsMax: 2 });
    const programs = perfPrograms('write-bw,size=64,iters=100');
    const kinds: MachineOptions[] = [{}, { seed: 7 }];
    const fresh: string[] = [];
    for (const kind of kinds) fresh.push(await outcomeOn(freshMachines, kind, programs));
    for (const at of [0, 1, 0, 1, 1, 0])
      expect(await outcomeOn(machines, kinds[at]!, programs)).toBe(fresh[at]);
    expect(machines.counts).toEqual({ fromImage: 6, booted: 2 });
    await outcomeOn(machines, { seed: 8 }, programs);
    expect(await outcomeOn(machines, kinds[1]!, programs)).toBe(fresh[1]);
    expect(machines.counts).toEqual({ fromImage: 8, booted: 4 });
  });

  itOfAll('of random hardware, random workloads one after another', async () => {
    let fromImages = 0;
    for (const seed of [1, 2]) {
      const { difference, fromImage } = await randomComparison(seed);
      expect(difference, `seed ${seed}`).toBe('');
      fromImages += fromImage;
    }
    expect(fromImages).toBeGreaterThanOrEqual(4);
  });

  // The 11th and 100th move pages, and scatter frames.
  it.each(rowsOf([11], [1, 100]))('in story %i of `hca torture`', async (seed) => {
    const story = storyOfSeed(seed);
    const programs = programsOf(story);
    const { set, faults } = story;
    const { difference, fromImage } = await comparison(
      { set, faults },
      [programs, programs, programs],
      10n ** 13n,
    );
    expect(difference).toBe('');
    expect(fromImage).toBe(2);
  });

  itOfAll('for programs of all operations, which sleep, fork, pin and free', async () => {
    const rounds = [
      ['polling', { qps: 3, rounds: 2 }],
      ['sleeping', { qps: 2, rounds: 3 }],
    ] as const;
    const [polling, sleeping] = rounds.map(([way, args]) =>
      [0, 1].map((node) => programOf('mixture', way, node, { args, name: `program${node}` })),
    );
    const options = { set: { 'host.memory.sizeMib': 512 } };
    expect(await comparison(options, [polling!, sleeping!, polling!])).toMatchObject({
      difference: '',
      fromImage: 2,
    });
  });

  it('after a failed run: that machine is not reused', async () => {
    await using machines = new BootedMachines();
    const good = perfPrograms('write-bw,size=64,iters=100');
    const bad = good.map((program, node) =>
      node === 0 ? { ...program, run: async () => Promise.reject(new Error('no')) } : program,
    );
    const fresh = await outcomeOn(freshMachines, {}, good);
    for (const programs of [good, bad, good, good, bad, good])
      expect(await outcomeOn(machines, {}, programs)).toMatch(programs === good ? fresh : /no/);
  });
});

describe('an image has the complete state of a machine', () => {
  itOfAll('of all objects that the engine finds alive: the rest never changes', () => {
    const machines: MachineOptions[] = [
      {},
      {
        watch: 'races',
        set: { 'pcie.iommu.isEnabled': true, 'host.memory.framePlacement': 'scattered' },
        shuffleSeed: 3,
        faults: [
          { packet: 'corrupted', nth: '2-3' },
          { read: 'any', nth: 999_999, answer: 'lost' },
          { interrupt: 'late', nth: 99_999, delay: '1us' },
          { command: 'NOP', nth: 9, status: 'none' },
          { port: 'down', at: '1s' },
        ],
      },
    ];
    const command = ['build/run.ts', 'bench/image-audit', JSON.stringify(machines)];
    const audits = JSON.parse(
      execFileSync(process.execPath, command, { cwd: root, encoding: 'utf8' }),
    ) as readonly Audit[];
    for (const { missing, changed, grown } of audits) {
      expect(changed).toEqual([]);
      expect(grown).toEqual([]);
      // Streams of typed-binary are repositioned for each use; a core's port never changes; resources released by an attempt at
      // interrupts are no longer used.
      expect(missing).toEqual(['BufferReader', 'BufferWriter', 'CorePort', 'Teardown']);
    }
  });

  it('and no function that outlives its call keeps a changing variable', () => {
    const files = modelFiles();
    const found = files.flatMap((file) =>
      capturedVariables(
        parseAst(readFileSync(join(root, file), 'utf8'), { lang: 'ts' }) as unknown as Node,
      ).map((name) => `${file} ${name}`),
    );
    expect(found.filter((name) => !ofOneCall.includes(name)).toSorted()).toEqual([
      // Counts a NIC's accesses for its faults: a machine with a NIC has no image.
      'machine/faults/nic-faults.ts accesses',
      // Assigned once while the host is built, and constant from then on.
      'machine/node/host-node.ts accesses',
      // State of a thread's part, and of loading a module: not part of a machine.
      'machine/partition/part-api.ts port',
      'machine/partition/program-module.ts module',
    ]);
  });

  it('nor does a module keep one, except its runtime', () => {
    const files = modelFiles().filter((file) =>
      /^(export )?let /m.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(files).toEqual(['base/runtime.ts']);
  });
});
