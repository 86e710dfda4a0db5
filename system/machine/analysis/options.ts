/** What to analyse of a machine, as plain data: it crosses into workers, and is the same for served guests. */
import { type TraceCategory, type TraceFormat, traceCategories } from '../../../analyser/index.ts';

export interface TraceOptions {
  readonly categories: readonly TraceCategory[];
  /** See analyser/filter.ts. */
  readonly filters: readonly string[];
  readonly format: TraceFormat;
  /** Path of the log; a host's name is put before its ending: `trace.log` becomes `trace.host0.log`. */
  readonly file: string;
  /** Bytes that the log of one host takes at most. */
  readonly sizeBytes: number;
}

export interface AnalysisOptions {
  readonly trace?: TraceOptions;
  /** Whether drivers are held against the rules of the interface. */
  readonly lint?: boolean;
  /** Whether the packets of the PCIe links are kept, to be asked for after a run. */
  readonly packets?: boolean;
}

export const traceDefaults = {
  categories: traceCategories,
  filters: [],
  format: 'text',
  file: 'hca-trace.log',
  sizeBytes: 64 * 1024 ** 2,
} as const satisfies TraceOptions;

/** The log of one host. */
export function traceFileOf(file: string, hostName: string): string {
  const ending = /\.[^./]+$/.exec(file)?.[0] ?? '';
  return `${file.slice(0, file.length - ending.length)}.${hostName}${ending}`;
}
