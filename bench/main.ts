/**
 * `npm run bench`: the speed of the simulation by the wall clock, with all accounting on, in the built form
 * (build/README.md).
 *
 * Steady rates: a load in this thread first runs until two successive runs take equally long within 3 %, at least three
 * and at most eight times. V8 keeps compiling for three to five runs, each faster than the one before. Workers start
 * afresh with every machine, so the figures of the other partitions include compilation. Each figure is the median of
 * three.
 *
 * Waiting times of users: whole commands in new processes (waits.ts) and one of many short simulations
 * (short-points.ts), each with the parts of its time; the cost of a WRITE over fabrics of many hosts (fabric-costs.ts), and
 * with many QPs (qp-costs.ts).
 *
 * Each figure has a calibration: the events per second of a plain binary-heap hold model, measured in the same process
 * immediately before. A figure divided by its calibration can be compared between machines, but only within about 15 %:
 * V8 compiles the hold model in different ways, and a busy neighbour slows the simulator more than the hold model
 * (bench/notes/measured.md).
 */
import '../runtime/node.ts';
import { Command } from 'commander';
import { jsonText, writeOutput } from '../cli/output.ts';
import { tableOf } from '../explain/text/table.ts';
import { Machine, type Partition } from '../machine/index.ts';
import { figuresOfFabric } from './fabric-costs.ts';
import { calibration, type Figure, textOf } from './figure.ts';
import { qpCostsOf, qpTableOf } from './qp-costs.ts';
import { figureOfShortPoints } from './short-points.ts';
import { figureOfFirstDoorbell, figureOfWait, waits } from './waits.ts';
import { type Load, perfArgsOf } from './write-load.ts';

interface Measured {
  readonly wallSeconds: number;
  readonly events: number;
  readonly messages: number;
  readonly payloadBytes: number;
}

const measurements = 3;
const warmUpRunsMin = 3;
const warmUpRunsMax = 8;
/** Runs whose times differ by less count as steady. */
const steadyShare = 0.03;
const moduleUrl = new URL(`./write-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

const loads = {
  'write-64': { verb: 'write', sizeBytes: 64, qpCount: 1, messagesPerQp: 200_000, outstanding: 16 },
  'write-64-qps64': { verb: 'write', sizeBytes: 64, qpCount: 64, messagesPerQp: 3_000, outstanding: 16 },
  'read-64': { verb: 'read', sizeBytes: 64, qpCount: 1, messagesPerQp: 100_000, outstanding: 16 },
  'send-64': { verb: 'send', sizeBytes: 64, qpCount: 1, messagesPerQp: 100_000, outstanding: 16 },
  'write-4096': { verb: 'write', sizeBytes: 4096, qpCount: 1, messagesPerQp: 50_000, outstanding: 16 },
  'write-1MiB': { verb: 'write', sizeBytes: 1 << 20, qpCount: 1, messagesPerQp: 400, outstanding: 16 },
} as const satisfies Record<string, Load>;

/** Hosts of the fabrics. */
const fabrics = [2, 8, 32, 64] as const;

/** Repeats a load until a run is not faster than the one before, so that the measurement finds compiled code. */
async function warmUp(load: Load): Promise<void> {
  let beforeSeconds = 0;
  for (let run = 1; run <= warmUpRunsMax; run++) {
    const { wallSeconds } = await runOnce(load, 'single');
    const difference = Math.abs(wallSeconds - beforeSeconds);
    if (run >= warmUpRunsMin && difference <= steadyShare * beforeSeconds) return;
    beforeSeconds = wallSeconds;
  }
}

/** Measures a load three times, each with a calibration, and returns the median relative to it. */
async function middleOf(load: Load, partition: Partition): Promise<Measured & { beside: number }> {
  const found: (Measured & { beside: number })[] = [];
  for (let count = 0; count < measurements; count++) {
    const beside = calibration();
    found.push({ beside, ...(await measure(load, partition)) });
  }
  found.sort((a, b) => a.wallSeconds * a.beside - b.wallSeconds * b.beside);
  return found[measurements >> 1]!;
}

/** Runs a load. Only the time of the run itself counts: a run without messages measures booting and connecting, which are subtracted. */
async function measure(load: Load, partition: Partition): Promise<Measured> {
  const whole = await runOnce(load, partition);
  const setUp = await runOnce({ ...load, messagesPerQp: 1 }, partition);
  return {
    wallSeconds: Math.max(1e-6, whole.wallSeconds - setUp.wallSeconds),
    events: whole.events - setUp.events,
    messages: (load.messagesPerQp - 1) * load.qpCount,
    payloadBytes: (load.messagesPerQp - 1) * load.qpCount * load.sizeBytes,
  };
}

async function runOnce(load: Load, partition: Partition): Promise<{ wallSeconds: number; events: number }> {
  await using machine = await Machine.create({ partition });
  const args = perfArgsOf(load);
  await machine.load({ node: 0, run: { url: moduleUrl, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url: moduleUrl, exportName: 'server' }, args });
  await machine.run();
  const { checks } = await machine.report();
  if (!checks.balanced) throw new Error(`the ledgers do not balance: ${JSON.stringify(checks)}`);
  const { wallMs, events, records, clockEdges } = await machine.runFacts();
  return { wallSeconds: wallMs / 1000, events: events + records + clockEdges };
}

async function figuresOf(name: string, load: Load, partition: Partition): Promise<Figure[]> {
  if (partition === 'single') await warmUp(load);
  const { beside, wallSeconds, events, messages, payloadBytes } = await middleOf(load, partition);
  const figure = (suffix: string, value: number, unit: string): Figure => ({
    name: name + suffix,
    value,
    unit,
    calibration: beside,
  });
  const isLarge = load.sizeBytes >= 4096;
  return [
    isLarge
      ? figure('', payloadBytes / wallSeconds / 1e9, 'GB of simulated payload per second')
      : figure('', messages / wallSeconds, 'messages per second'),
    figure('-events', events / wallSeconds, 'events per second'),
  ];
}

/** Measurements in output order, by the name of their first figure. */
function plan(): [string, () => Promise<readonly Figure[]>][] {
  const steady = Object.entries(loads).map(([name, load]): [string, Load, Partition] => [
    name,
    load,
    'single',
  ]);
  const threads = { ...loads['write-64'], messagesPerQp: 50_000 };
  const rates: [string, Load, Partition][] = [
    ...steady,
    ['write-64-per-node', threads, 'per-node'],
    ['write-64-per-device', threads, 'per-device'],
  ];
  return [
    ...rates.map(([name, load, partition]): [string, () => Promise<Figure[]>] => [
      name,
      () => figuresOf(name, load, partition),
    ]),
    ['short-point', async () => [await figureOfShortPoints()]],
    ['first-doorbell', async () => [figureOfFirstDoorbell()]],
    ...fabrics.map((hosts): [string, () => Promise<Figure[]>] => [
      `fabric-${hosts}`,
      async () => figuresOfFabric(hosts),
    ]),
    ...waits.map((wait): [string, () => Promise<Figure[]>] => [wait.name, async () => [figureOfWait(wait)]]),
  ];
}

/** Numbers of QPs: `1,64,1024`. */
const numbersIn = (text: string): number[] => (text === '' ? [] : text.split(',').map(Number));

async function main(): Promise<void> {
  const command = new Command('bench')
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option('--only <text>', 'only benchmarks whose name contains this', '')
    .option('--qps <numbers>', 'numbers of QPs to measure; 100000 take 80 s of processor time', '1,64,1024')
    .parse();
  const { json, only, qps } = command.opts<{ json?: string; only: string; qps: string }>();
  const say = json === '-' ? () => {} : (text: string) => console.log(text);
  const figures: Figure[] = [];
  for (const [name, measured] of plan()) {
    if (!name.includes(only)) continue;
    const found = await measured();
    figures.push(...found);
    for (const figure of found) say(textOf(figure));
  }
  const many = qpCostsOf(numbersIn(qps).filter((number) => `qps-${number}`.includes(only)));
  figures.push(...many.figures);
  const { rss } = process.memoryUsage();
  figures.push({
    name: 'memory',
    value: rss / 2 ** 20,
    unit: 'MiB resident at the end',
    calibration: calibration(),
  });
  if (json !== undefined) writeOutput(json, jsonText(figures));
  const rows = figures.map(({ name, value, unit, calibration: beside }) => [
    name,
    value.toPrecision(4),
    unit,
    (beside / 1e6).toFixed(1),
  ]);
  say(tableOf('Speed on this machine', ['benchmark', 'value', 'unit', 'calibration, M events/s'], rows));
  if (many.costs.length > 0) say(qpTableOf(many.costs));
}

await main();
