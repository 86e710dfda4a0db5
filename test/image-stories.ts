/**
 * Runs on machines that start from an image, compared with runs on fresh ones: all observations of each, as text, and the first
 * difference. Also random hardware and workloads for this.
 */
import { crc32 } from 'node:zlib';
import { parsedWorkload, perfArgsOf } from '../experiments/workloads/workload.ts';
import { PhysicalMemory } from '../host/physical-memory.ts';
import {
  BootedMachines,
  type BootedMachinesOptions,
  freshMachines,
  type MachineSource,
} from '../machine/booted-machines.ts';
import type { Machine, MachineOptions } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import { Random } from '../sim/index.ts';
import { acceptable, drawPool } from '../torture/index.ts';

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** The hosts' memories, found through the machine's fields: requesting one from the machine would mark all of it as written. */
function memoriesOf(machine: Machine): PhysicalMemory[] {
  const seen = new Set<object>();
  const found: PhysicalMemory[] = [];
  const waiting: object[] = [machine];
  for (let object = waiting.pop(); object !== undefined; object = waiting.pop()) {
    if (seen.has(object) || ArrayBuffer.isView(object)) continue;
    seen.add(object);
    if (object instanceof PhysicalMemory) found.push(object);
    else if (object instanceof Map) waiting.push(...[...object].flat().filter(isObject));
    else if (object instanceof Set || Array.isArray(object)) waiting.push(...[...object].filter(isObject));
    waiting.push(...Object.values(object).filter(isObject));
  }
  return found;
}

const blockBytes = 2 ** 20;
const zeros = Buffer.alloc(blockBytes);

/** Sums over a memory, by mebibyte: unallocated memory is zero, and zero blocks are omitted. */
function sumsOf({ buffer }: PhysicalMemory): string {
  const sums: string[] = [];
  for (let at = 0; at < buffer.byteLength; at += blockBytes) {
    const block = Buffer.from(buffer, at, Math.min(blockBytes, buffer.byteLength - at));
    // The allocated size of a memory is not part of its contents: the last block is as long as the others.
    if (block.compare(zeros, 0, block.length) !== 0)
      sums.push(`${at / blockBytes}:${crc32(Buffer.concat([block], blockBytes))}`);
  }
  return sums.join();
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part));

/** The error that ended a run, or its report, the blocks' state, the programs' results and logs, and the hosts' memories. */
export async function outcomeOn(
  machines: MachineSource,
  options: MachineOptions,
  programs: readonly ProgramOptions[],
  limitPs?: bigint,
): Promise<string> {
  await using lease = await machines.take(options, () => programs);
  const { machine } = lease;
  const failure = await machine.run(limitPs).then(
    () => undefined,
    (error: unknown) => String(error),
  );
  // The remains of a failed run are not defined: its machine is not reused.
  if (failure !== undefined) return failure;
  return textOf({
    report: await machine.report(),
    blocks: await machine.inspect(),
    held: await machine.held(),
    results: await machine.results(),
    log: await machine.log(),
    memory: memoriesOf(machine).map(sumsOf).toSorted(),
  });
}

export interface Comparison {
  /** First difference between a run and the fresh machine's; empty without one. */
  readonly difference: string;
  /** Runs that began from an image, and machines that booted. */
  readonly fromImage: number;
  readonly booted: number;
}

/** Runs all rounds on one kind of machine, one after another, and each round's programs on a fresh machine. */
export async function comparison(
  options: MachineOptions,
  rounds: readonly (readonly ProgramOptions[])[],
  limitPs?: bigint,
  kept: BootedMachinesOptions = {},
): Promise<Comparison> {
  await using machines = new BootedMachines(kept);
  const expected = new Map<readonly ProgramOptions[], string>();
  for (const [round, programs] of rounds.entries()) {
    if (!expected.has(programs))
      expected.set(programs, await outcomeOn(freshMachines, options, programs, limitPs));
    const want = expected.get(programs)!;
    const got = await outcomeOn(machines, options, programs, limitPs);
    if (want !== got)
      return { difference: `round ${round}: ${firstDifference(want, got)}`, ...machines.counts };
  }
  return { difference: '', ...machines.counts };
}

function firstDifference(want: string, got: string): string {
  let at = 0;
  while (want[at] === got[at]) at++;
  const excerpt = (text: string): string => text.slice(Math.max(0, at - 80), at + 40);
  return `…${excerpt(want)}… and …${excerpt(got)}…`;
}

/** Extension of the modules: in the built form they are JavaScript. */
const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

/** The client and the server of a workload as `hca perf` writes it. */
export function perfPrograms(text: string): ProgramOptions[] {
  const args = perfArgsOf(parsedWorkload(text));
  const kind = args.isLatency ? 'latency' : 'bandwidth';
  const url = new URL(`../experiments/workloads/perf-${kind}${ending}`, import.meta.url);
  return ['Client', 'Server'].map((role, node) => ({
    node,
    name: role.toLowerCase(),
    run: { url, exportName: `${kind}${role}` },
    args,
  }));
}

export const workloads = [
  'write-bw,size=64,iters=1000',
  'write-bw,size=300000,iters=3,region=4Mi,pattern=random',
  'read-bw,size=64,iters=100,qps=3',
  'send-bw,size=64,iters=100,connection=UD',
  'write-lat,size=8,iters=50',
  'atomic-bw,iters=60',
  'write-bw,size=4K,iters=40,qps=5',
  'read-bw,size=64K,iters=8',
  'send-bw,size=256,iters=100',
  'write-bw,size=512,iters=100,connection=UC',
  'send-lat,size=64,iters=50',
] as const;

/** A limit that none of the stories reaches. */
const limitPs = 10n ** 12n;

/** Random hardware, and three random workloads on it, the first and second once more at the end. */
export function randomComparison(seed: number): Promise<Comparison> {
  const random = new Random(seed, 'image');
  const [first, second, third] = Array.from({ length: 3 }, () =>
    perfPrograms(workloads[random.below(workloads.length)]!),
  ) as [ProgramOptions[], ProgramOptions[], ProgramOptions[]];
  const set = acceptable({ ...drawPool(random), 'host.memory.sizeMib': 128 });
  if (random.chance(0.5)) Object.assign(set, { 'host.memory.framePlacement': 'scattered' });
  return comparison({ set, seed: seed % 2 ** 32 }, [first, second, third, second, first], limitPs);
}
