/**
 * The tables of docs/reference/timing.md that compare the model with a real card: results of `hca perf TEST -m 2048` by default next to
 * group A of reference/measurements.csv. `npm run docs` measures and writes them between the marks of that page; a spec measures some of
 * the rows again.
 */
import '../../runtime/node.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import runPerf from '../../experiments/runs/perf-run.ts';
import {
  type BandwidthResult,
  type LatencyResult,
  type PerfTestName,
  perfArgsOf,
} from '../../experiments/workloads/index.ts';

export const latencySizes = [2, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 2 ** 20];
export const bandwidthSizes = [2, 64, 256, 512, 1024, 2048, 4096, 65_536, 2 ** 20];
export const latencyTests = ['write-lat', 'send-lat', 'read-lat'] as const;
export const bandwidthTests = ['write-bw', 'send-bw', 'read-bw'] as const;
/** Enough for a median: after the first message, all take equally long. */
const latencyIterations = 100;

const start = '<!-- card -->';
const end = '<!-- /card -->';
const page = new URL('../../docs/reference/timing.md', import.meta.url);
const measurements = new URL('../../reference/measurements.csv', import.meta.url);

interface Measured {
  readonly workload: string;
  readonly sizeBytes: number;
  readonly metric: string;
  readonly value: number;
}

/** Group A of the measurements. */
export function cardRows(): readonly Measured[] {
  return readFileSync(measurements, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('A-'))
    .map((line) => {
      const cells = line.match(/("([^"]|"")*"|[^,]*)(,|$)/g)!.map((cell) => cell.replace(/,$/, ''));
      const [workload, params, metric, value] = [cells[6]!, cells[7]!, cells[8]!, cells[9]!];
      const sizeBytes = Number(/size=(\d+)/.exec(params)?.[1] ?? 8);
      return { workload, sizeBytes, metric, value: Number(value) };
    });
}

const card = cardRows();

function ofCard(test: PerfTestName, sizeBytes: number, metric: string): number | undefined {
  const workload = `ib_${test.replace('-', '_')}`;
  return card.find(
    (row) =>
      row.workload.startsWith(workload) && row.sizeBytes === sizeBytes && row.metric.startsWith(metric),
  )?.value;
}

async function measure(test: PerfTestName, sizeBytes: number) {
  const isLatency = test.endsWith('-lat');
  const size = test.startsWith('atomic') ? {} : { size: sizeBytes };
  const iters = isLatency ? { iters: Math.min(latencyIterations, 2 ** 26 / sizeBytes) } : {};
  const args = perfArgsOf({ test, mtu: 2048, ...size, ...iters });
  return (await runPerf({ machine: {}, args })).result;
}

const text = (value: number | undefined, digits: number): string =>
  value === undefined ? '–' : value.toFixed(digits);

/** A row of the first table: median latencies in microseconds. */
export async function latencyRow(sizeBytes: number): Promise<string> {
  const cells: string[] = [];
  for (const test of latencyTests) {
    const { typicalPs } = (await measure(test, sizeBytes)) as LatencyResult;
    cells.push(text(typicalPs / 1e6, 2), text(ofCard(test, sizeBytes, 'latency t_typical'), 2));
  }
  return `| ${[sizeBytes, ...cells].join(' | ')} |`;
}

/** A row of the second table: millions of messages a second, and MiB a second of WRITE. */
export async function bandwidthRow(sizeBytes: number): Promise<string> {
  const cells: string[] = [];
  let writeMib = 0;
  for (const test of bandwidthTests) {
    const result = (await measure(test, sizeBytes)) as BandwidthResult;
    if (test === 'write-bw') writeMib = result.averageBytesPerSecond / 2 ** 20;
    cells.push(text(result.messagesPerSecond / 1e6, 3), text(ofCard(test, sizeBytes, 'message rate'), 3));
  }
  cells.push(text(writeMib, 0), text(ofCard('write-bw', sizeBytes, 'bandwidth average'), 0));
  return `| ${[sizeBytes, ...cells].join(' | ')} |`;
}

/** The line about atomics, which have only one size. */
export async function atomicLine(): Promise<string> {
  const { typicalPs } = (await measure('atomic-lat', 8)) as LatencyResult;
  const { messagesPerSecond } = (await measure('atomic-bw', 8)) as BandwidthResult;
  const [latency, rate] = [
    ofCard('atomic-lat', 8, 'latency t_typical'),
    ofCard('atomic-bw', 8, 'message rate'),
  ];
  return (
    `atomic-lat ${text(typicalPs / 1e6, 2)} us (card ${text(latency, 2)}), ` +
    `atomic-bw ${text(messagesPerSecond / 1e6, 2)} Mops (card ${text(rate, 2)}).`
  );
}

async function cardTables(): Promise<string> {
  const latencies: string[] = [];
  for (const size of latencySizes) latencies.push(await latencyRow(size));
  const rates: string[] = [];
  for (const size of bandwidthSizes) rates.push(await bandwidthRow(size));
  return [
    '| size | write-lat | card | send-lat | card | read-lat | card |',
    '|---|---|---|---|---|---|---|',
    ...latencies,
    '',
    '| size | write-bw Mops | card | send-bw Mops | card | read-bw Mops | card | write-bw MiB/s | card |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rates,
    '',
    await atomicLine(),
  ].join('\n');
}

/** The part of the page between the marks. */
export function cardPart(): string {
  const whole = readFileSync(page, 'utf8');
  return whole.slice(whole.indexOf(start) + start.length, whole.indexOf(end));
}

if (process.argv[1] === import.meta.filename) {
  const tables = await cardTables();
  const whole = readFileSync(page, 'utf8');
  const from = whole.indexOf(start) + start.length;
  writeFileSync(page, `${whole.slice(0, from)}\n${tables}\n${whole.slice(whole.indexOf(end))}`);
}
