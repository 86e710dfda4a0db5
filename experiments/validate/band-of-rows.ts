/** The error bands of the unseen rows, for the figures that commands print (../fidelity). */
import { configurationOf } from '../../machine/profile/index.ts';
import { bandKey, type ErrorBand, figureKindOf, networkOf } from '../fidelity/index.ts';
import { perfArgsOf } from '../workloads/index.ts';
import type { Case, RowResult } from './validation.ts';

const latencyUnit = /^us$/;
const rateUnit = /^(?:Mops|Mpps|M\/s|requests\/us|Gb\/s|MiB\/s|GB\/s)$/;
/** Figures that no command prints as a latency or rate of messages: reads over PCIe, percentiles, round trips. */
const otherFigures = /PCIe|99th|round trip/;

/** The key of the band of a row; undefined for a row that is not of one verb over reliable connections. */
function keyOf({ row, points: [point] }: Case): string | undefined {
  const isLatency = latencyUnit.test(row.unit);
  if (point === undefined || (!isLatency && !rateUnit.test(row.unit))) return undefined;
  if (otherFigures.test(`${row.workload} ${row.metric}`)) return undefined;
  const { machine, workload } = point;
  const network = networkOf(configurationOf(machine));
  if (workload.kind === 'stream') {
    const { verb, transport, sizeBytes } = workload.plan;
    return transport === 'RC' ? bandKey(network, figureKindOf(isLatency, sizeBytes), verb) : undefined;
  }
  if (workload.kind !== 'perf') return undefined;
  const { size = 8, connection = 'RC' } = workload.test;
  if (connection !== 'RC') return undefined;
  return bandKey(network, figureKindOf(isLatency, size), perfArgsOf(workload.test).verb);
}

/** Bands by their keys, of the rows that no parameter was fitted to. */
export function bandsOf(cases: readonly Case[], results: readonly RowResult[]): Record<string, ErrorBand> {
  const found = new Map<string, { readonly errors: number[]; readonly sources: Set<string> }>();
  for (const [at, one] of cases.entries()) {
    const { isGiven, error, source } = results[at]!;
    const key = keyOf(one);
    if (isGiven || key === undefined || error === undefined || Number.isNaN(error)) continue;
    const rows = found.get(key) ?? { errors: [], sources: new Set() };
    found.set(key, rows);
    rows.errors.push(error);
    rows.sources.add(source);
  }
  const keys = [...found.keys()].toSorted();
  return Object.fromEntries(
    keys.map((key) => [key, bandOf(found.get(key)!.errors, found.get(key)!.sources.size)]),
  );
}

/** The errors that bound eight of ten. */
function bandOf(errors: readonly number[], sources: number): ErrorBand {
  const sorted = errors.toSorted((left, right) => left - right);
  const last = sorted.length - 1;
  const rounded = (error: number): number => Math.round(error * 1000) / 1000;
  return {
    rows: sorted.length,
    sources,
    low: rounded(sorted[Math.floor(last * 0.1)]!),
    high: rounded(sorted[Math.ceil(last * 0.9)]!),
  };
}
