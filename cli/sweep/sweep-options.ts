/** The options of `hca sweep`, and the specification built from them. */
import { basename, extname } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import type { QueueAddress } from '../../experiments/sweep/bullmq/index.ts';
import { checkedSpec, readSpec, type Shard, type SweepSpec } from '../../experiments/sweep/index.ts';
import type { Partition } from '../../machine/index.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addPartitionOption,
  addTopologyOption,
  type FaultChoice,
  integer,
  type MachineChoice,
  machineOptionsOf,
  type TopologyChoice,
} from '../options.ts';

export interface SweepChoice extends MachineChoice, TopologyChoice, FaultChoice {
  readonly workload?: string;
  readonly vary: readonly string[];
  readonly point: readonly string[];
  readonly sample?: string;
  readonly sampleSeed?: number;
  readonly partition: Partition;
  readonly engine: 'local' | 'bullmq' | 'slurm';
  readonly jobs?: number;
  readonly redis?: string;
  readonly queue?: string;
  readonly tasks?: number;
  readonly sbatch: readonly string[];
  readonly shard?: Shard;
  readonly out?: string;
  readonly reuse: readonly string[];
  readonly retryFailed?: boolean;
  readonly sqlite?: string;
  readonly json?: string;
  readonly schema?: boolean;
}

export const jobsMax = 1024;
const tasksMax = 100_000;
export const defaultTasks = 16;
const defaultQueue = 'hca-sweep';

export const redisOption = [
  '--redis <url>',
  'the Redis or Valkey server of a queue of points, as redis://host:6379',
] as const;
export const queueOption = ['--queue <name>', `the name of the queue (default ${defaultQueue})`] as const;

const shardsMax = 1_000_000;
const collected = (text: string, before: readonly string[]): string[] => [...before, text];

export function addSweepOptions(command: Command): Command {
  command
    .option(
      '--workload <text>',
      'the workload of every point, such as write-bw,size=64,region=64Mi,pattern=random',
    )
    .option(
      '--vary <path=values>',
      'an axis: a parameter, a field of the workload or profile, over 16..4096*2, 0..100+25 or a list; may be repeated',
      collected,
      [],
    )
    .option('--point <path=value,...>', 'a point by hand; may be repeated', collected, [])
    .option('--sample <lhs:n>', 'draw this many points, a Latin hypercube, instead of all combinations')
    .option('--sample-seed <n>', 'seed of the sample (default 1)', integer(0, 2 ** 32 - 1))
    .addOption(
      new Option(
        '--engine <name>',
        'engine that runs the points: this machine, workers of a queue, or tasks of Slurm',
      )
        .choices(['local', 'bullmq', 'slurm'])
        .default('local'),
    )
    .option(
      '--jobs <n>',
      'points that run at once (default: one for each processor; with --engine slurm, one in each task)',
      integer(1, jobsMax),
    )
    .option(...redisOption)
    .option(...queueOption)
    .option(
      '--tasks <n>',
      `tasks of an array of Slurm, at most (default ${defaultTasks})`,
      integer(1, tasksMax),
    )
    .option('--sbatch <option>', 'an option of sbatch, as --sbatch=--time=60; may be repeated', collected, [])
    .option('--shard <k/n>', 'run only every n-th point, from the k-th on: 1/16 to 16/16', parsedShard)
    .option(
      '--out <file>',
      'results as JSON lines, a row as each point ends (default sweep.jsonl, or by the name of the specification)',
    )
    .option(
      '--reuse <file>',
      'reuse the results that another sweep has of these points; may be repeated',
      collected,
      [],
    )
    .option('--retry-failed', 'run points again that failed')
    .option('--sqlite <file>', 'write the results as an SQLite database too, for notebooks')
    .option('--schema', 'print the JSON Schema of specifications, and end');
  addFaultOptions(addTopologyOption(addMachineOptions(command)));
  return addPartitionOption(command, 'single');
}

/** `3/16`: counted from 1. */
export function parsedShard(text: string): Shard {
  const [, number, count] = /^(\d+)\/(\d+)$/.exec(text)?.map(Number) ?? [];
  if (number !== undefined && count !== undefined && number >= 1 && number <= count && count <= shardsMax)
    return { number, count };
  throw new InvalidArgumentError(`expected k/n with k from 1 to n, such as 3/16.`);
}

/** Options of a single engine. */
const engineOptions = { redis: 'bullmq', queue: 'bullmq', tasks: 'slurm', sbatch: 'slurm' } as const;

/** @throws ConfigurationError for an option that the engine lacks, or for a missing one that it needs */
export function checkEngine(choice: SweepChoice): void {
  for (const [name, engine] of Object.entries(engineOptions) as [keyof typeof engineOptions, string][]) {
    const value = choice[name];
    if (value !== undefined && String(value) !== '' && choice.engine !== engine)
      throw new ConfigurationError(`--${name}`, String(value), `left out without --engine ${engine}`);
  }
  if (choice.engine !== 'bullmq') return;
  queueAddressOf(choice);
  if (choice.jobs !== undefined)
    throw new ConfigurationError('--jobs', choice.jobs, 'given to hca sweep worker, with --engine bullmq');
}

/** @throws ConfigurationError without a server, and for an invalid queue name */
export function queueAddressOf({
  redis,
  queue = defaultQueue,
}: Pick<SweepChoice, 'redis' | 'queue'>): QueueAddress {
  if (redis === undefined)
    throw new ConfigurationError(
      '--redis',
      'left out',
      'the address of a server, such as redis://127.0.0.1:6379',
    );
  if (!/^[\w.-]+$/.test(queue))
    throw new ConfigurationError('--queue', queue, 'a name of letters, digits, _, . and -');
  return { url: redis, queue };
}

/** Options that define the sweep; a specification contains them. */
const specOptions = ['workload', 'sample', 'sampleSeed', 'profile', 'seed', 'topology'] as const;
const specLists = ['vary', 'point', 'set', 'fault', 'faults'] as const;

/** @throws ConfigurationError for a bad specification, and for options that belong into it */
export function specOf(file: string | undefined, choice: SweepChoice): SweepSpec {
  if (file === undefined) return specOfOptions(choice);
  const given = [
    ...specOptions.filter((name) => choice[name] !== undefined),
    ...specLists.filter((name) => (choice[name]?.length ?? 0) > 0),
  ][0];
  if (given !== undefined)
    throw new ConfigurationError(
      `--${given.replace('sampleSeed', 'sample-seed')}`,
      file,
      'in the specification, which defines the sweep',
    );
  return readSpec(file);
}

function specOfOptions(choice: SweepChoice): SweepSpec {
  const { workload, vary, point, sample, sampleSeed } = choice;
  if (workload === undefined)
    throw new ConfigurationError(
      'sweep',
      'without a workload',
      'a specification, or --workload and --vary: hca sweep --workload write-bw,size=64 --vary hca.mttCacheLines=16..4096*2',
    );
  if (sampleSeed !== undefined && sample === undefined)
    throw new ConfigurationError('--sample-seed', sampleSeed, 'left out without --sample');
  const { shortcuts: _, ...machine } = machineOptionsOf(choice);
  return checkedSpec({
    workload,
    machine,
    vary: assignmentsOf('--vary', vary),
    points: point.map((text) => assignmentsOf('--point', text.split(','))),
    ...(sample === undefined ? {} : { sample: sampleOf(sample, sampleSeed) }),
  });
}

/** An explicit seed turns lhs:200 into fields of a specification. */
function sampleOf(sample: string, seed: number | undefined): unknown {
  const count = /^lhs:(\d+)$/.exec(sample)?.[1];
  return seed === undefined || count === undefined ? sample : { latinHypercube: Number(count), seed };
}

function assignmentsOf(option: string, texts: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const text of texts) {
    const at = text.indexOf('=');
    const path = text.slice(0, Math.max(at, 0)).trim();
    if (path === '' || at === text.length - 1) throw new ConfigurationError(option, text, 'path=values');
    if (Object.hasOwn(values, path)) throw new ConfigurationError(option, text, `${path} given once`);
    values[path] = text.slice(at + 1);
  }
  return values;
}

/** Place of the results: by default the current folder, under the name of the specification. */
export const outFileOf = (spec: string | undefined, { out }: SweepChoice): string =>
  out ?? `${spec === undefined ? 'sweep' : basename(spec, extname(spec))}.jsonl`;
