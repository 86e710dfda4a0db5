/**
 * Arrays with lost, held and abandoned tasks, on a substitute for Slurm's commands; with Slurm itself:
 * test/guest/sweep-slurm.long.spec.ts.
 */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RunError } from '../../../sim/index.ts';
import { pointsOf } from '../expansion.ts';
import type { Outcome } from '../row.ts';
import type { PointRunner, PointToRun } from '../runner.ts';
import { checkedSpec } from '../spec.ts';
import type { QueuedTasks, SlurmClient } from './client.ts';
import { SlurmEngine } from './slurm-engine.ts';
import { runTask } from './task.ts';
import { TaskFiles } from './task-files.ts';

const root = mkdtempSync(join(tmpdir(), 'hca-slurm-'));
afterAll(() => rmSync(root, { recursive: true }));
let folderCount = 0;
const newFolder = (): string => join(root, `it's ${folderCount++}`);

const points: readonly PointToRun[] = pointsOf(
  checkedSpec({ workload: 'write-bw,iters=10', vary: { size: '1..8+1' } }),
).map(({ hash, order }) => ({ hash, order: order! }));

/** Kills a task at a point: the runner throws, and the rest of the task does not run. */
type IsLost = (sizeBytes: number) => boolean;

/** Executes arrays immediately, in this process. */
class StandIn implements SlurmClient {
  readonly ran: number[] = [];
  readonly scripts: string[] = [];
  readonly cancelled: string[] = [];
  /** Successive answers of squeue; afterwards no array exists. */
  answers: (readonly QueuedTasks[] | Error)[] = [];
  readonly #isLost: IsLost;
  readonly #isSilent: boolean;
  /** Sizes of points that end with an error. */
  failing: readonly number[] = [];

  constructor(isLost: IsLost = () => false, isSilent = false) {
    this.#isLost = isLost;
    this.#isSilent = isSilent;
  }

  async submit(_name: string, script: string, options: readonly string[]): Promise<string> {
    const text = readFileSync(script, 'utf8');
    this.scripts.push(text);
    const [, points] = /'task' '(.*)' '--jobs'/.exec(text)!;
    const count = Number(/--array=1-(\d+)/.exec(options.join(' '))![1]);
    expect(text).toContain(`"$SLURM_ARRAY_TASK_ID/${count}"`);
    const file = points!.replaceAll(String.raw`'\''`, "'");
    for (let number = 1; number <= count && !this.#isSilent; number++)
      await runTask(file, { number, count }, this.#runner()).catch(() => {});
    return '17';
  }

  async queued(): Promise<readonly QueuedTasks[]> {
    const answer = this.answers.shift() ?? [];
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async cancel(name: string): Promise<void> {
    this.cancelled.push(name);
  }

  #runner(): PointRunner {
    return {
      capacity: 1,
      run: async ({ args: { sizeBytes } }): Promise<Outcome> => {
        if (this.#isLost(sizeBytes)) throw new Error('killed');
        this.ran.push(sizeBytes);
        if (this.failing.includes(sizeBytes)) return { status: 'failed', error: 'it broke' };
        return { status: 'done', figures: { size: sizeBytes } };
      },
    };
  }
}

interface Ran {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly notices: readonly string[];
}

async function run(
  client: StandIn,
  folder = newFolder(),
  taskCount = 3,
  isFailedRetried = false,
): Promise<Ran> {
  const outcomes = new Map<string, Outcome>();
  const notices: string[] = [];
  const engine = new SlurmEngine({
    ...{
      folder,
      taskCount,
      client,
      isFailedRetried,
      jobs: 1,
      sbatch: ['--time=5'],
      command: ['/no de', 'hca.js'],
    },
    ...{ manner: {}, onNotice: (text: string) => notices.push(text), pollMs: 1 },
  });
  await engine.run(points, (hash, outcome) => {
    expect(outcomes.has(hash)).toBe(false);
    outcomes.set(hash, outcome);
  });
  expect(existsSync(folder)).toBe(false);
  return { outcomes, notices };
}

const sizes = [1, 2, 3, 4, 5, 6, 7, 8];
const pending: QueuedTasks = { state: 'PENDING', reason: 'Resources' };
const sizesOf = ({ outcomes }: Ran): unknown[] =>
  points.map(({ hash }) => {
    const outcome = outcomes.get(hash)!;
    return outcome.status === 'done' ? outcome.figures['size'] : outcome.error;
  });

describe('an array', () => {
  it('runs every point once, with shell-quoted arguments, and removes its folder', async () => {
    const client = new StandIn();
    const ran = await run(client);
    expect(sizesOf(ran)).toEqual(sizes);
    expect(client.ran.toSorted()).toEqual(sizes);
    expect(client.scripts).toHaveLength(1);
    expect(client.scripts[0]).toContain("exec '/no de' 'hca.js' 'sweep' 'task' '");
    expect(client.scripts[0]).toContain(String.raw`it'\''s`);
    expect(ran.notices).toEqual([expect.stringMatching(/^Submitted array 17 of 3 tasks/)]);
  });

  it('with lost tasks is followed by one for the missing points', async () => {
    const losses = new Set([2, 5, 6]);
    const client = new StandIn((size) => losses.delete(size));
    expect(sizesOf(await run(client))).toEqual(sizes);
    expect(client.ran.toSorted()).toEqual(sizes);
    expect(client.scripts.length).toBeGreaterThan(1);
  });

  it('gives up a point whose task is lost three times, and no other', async () => {
    const ran = await run(new StandIn((size) => size === 4));
    expect(sizesOf(ran)).toEqual([1, 2, 3, 'what ran it was lost 3 times', 5, 6, 7, 8]);
  });

  it('without output three times ends the sweep, which keeps its results', async () => {
    const folder = newFolder();
    const client = new StandIn(undefined, true);
    const ended = run(client, folder);
    await expect(ended).rejects.toThrow(RunError);
    await expect(ended).rejects.toThrow('3 arrays have ended and run no point; the last says: nothing');
    expect(client.scripts).toHaveLength(3);
    expect(sizesOf(await run(new StandIn(), folder))).toEqual(sizes);
  });

  it('that Slurm holds ends the sweep; one that waits does not', async () => {
    const client = new StandIn(undefined, true);
    client.answers = [[], [pending], [{ state: 'PENDING', reason: 'launch failed requeued held' }]];
    await expect(run(client)).rejects.toThrow('Slurm holds the array (launch failed requeued held)');
    expect(client.scripts).toHaveLength(1);
  });

  it('is waited for if a controller does not answer six times', async () => {
    const down = new RunError('squeue: Unable to contact slurm controller');
    const client = new StandIn();
    client.answers = Array(5).fill(down);
    // The first answer is interpreted as an existing array.
    const ran = await run(client);
    expect(sizesOf(ran)).toEqual(sizes);
    const silent = new StandIn();
    silent.answers = Array(6).fill(down);
    await expect(run(silent)).rejects.toThrow('Unable to contact');
  });

  it('of a killed sweep is waited for, and only its missing points are submitted', async () => {
    const folder = newFolder();
    // Lost at every second point, and ended by a hold: finished points stay in the folder.
    const first = new StandIn((size) => size % 2 === 0);
    first.answers = [[], [{ state: 'PENDING', reason: 'JobHeldUser' }]];
    await expect(run(first, folder, 1)).rejects.toThrow('Slurm holds');
    const second = new StandIn();
    second.answers = [[pending]];
    const ran = await run(second, folder);
    expect(ran.notices[0]).toMatch(/^An array of this sweep is there already: hca-sweep-[0-9a-f]{12}\.$/);
    expect(sizesOf(ran)).toEqual(sizes);
    expect([...first.ran, ...second.ran].toSorted()).toEqual(sizes);
  });

  it('with failed or lost points of an earlier sweep repeats them on request', async () => {
    const folder = newFolder();
    const held: QueuedTasks = { state: 'PENDING', reason: 'JobHeldUser' };
    for (let start = 1; start <= 3; start++) {
      const first = new StandIn((size) => size >= 7);
      first.failing = [2, 5];
      first.answers = [[], [held]];
      await expect(run(first, folder, 1)).rejects.toThrow('Slurm holds');
      expect(first.ran).toEqual(start === 1 ? [1, 2, 3, 4, 5, 6] : []);
    }
    const second = new StandIn();
    // Running tasks skip points that have ended.
    second.answers = [[pending], [pending]];
    const ran = await run(second, folder, 1, true);
    expect(sizesOf(ran)).toEqual(sizes);
    expect(second.ran.toSorted()).toEqual([2, 5, 7, 8]);
    expect(second.answers).toEqual([]);
  });

  it('without remaining work that does not end is cancelled', async () => {
    const client = new StandIn();
    client.answers = [[], ...Array(12).fill([pending])];
    await run(client);
    expect(client.cancelled).toHaveLength(1);
  });
});

describe('the files of tasks', () => {
  it('are read up to the last complete line, each line once, and foreign lines are ignored', async () => {
    const folder = newFolder();
    const files = new TaskFiles(folder);
    expect(files.newOutcomes()).toEqual([]);
    const lost = new StandIn((size) => size === 1);
    lost.answers = [[], [{ state: 'PENDING', reason: 'JobHeldUser' }]];
    await expect(run(lost, folder, 1)).rejects.toThrow('Slurm holds');
    const file = join(folder, 'task-1-1.jsonl');
    expect(files.newOutcomes()).toEqual([]);
    expect(files.startsOf(points[0]!.hash)).toBe(1);
    appendFileSync(file, '{"ended":"x","outcome":{"status":"failed",');
    expect(files.newOutcomes()).toEqual([]);
    appendFileSync(file, '"error":"y"}}\n\0\0\n{"ended":"z"}\n7\n');
    expect(files.newOutcomes()).toEqual([['x', { status: 'failed', error: 'y' }]]);
    expect(files.newOutcomes()).toEqual([]);
    expect(files.lineCount).toBe(5);
  });
});
