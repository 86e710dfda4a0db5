/** Analyses of a machine or of served guests. Plain data except for a sink, because workers receive it. */

import { type TraceCategory, type TraceFormat, traceCategories } from '../../analyser/index.ts';
import { ConfigurationError, type TextSink } from '../../base/index.ts';
import type { PlaceOf } from '../evidence/index.ts';
import type { TimelineOptions } from '../timeline/index.ts';

export interface TraceOptions {
  readonly categories: readonly TraceCategory[];
  /** See analyser/filter.ts. */
  readonly filters: readonly string[];
  readonly format: TraceFormat;
  /** Path of the trace; a host's name is inserted before the extension: `trace.log` becomes `trace.host0.log`. */
  readonly file: string;
  /** Greatest size in bytes of the trace of one host, in a file. */
  readonly sizeBytes: number;
  /** Receives the trace of each host instead of a file; only in partition `single`. Default: the file. */
  readonly sinkOf?: (hostName: string) => TextSink;
}

/** An end of the cable, optionally only one direction there. */
export interface CaptureEnd {
  readonly node: number;
  readonly direction?: 'inbound' | 'outbound';
}

/** Packets on the cable, kept for a capture file. */
export interface CaptureOptions {
  readonly ends: readonly CaptureEnd[];
  /** Greatest number of packet bytes per end; the first packets are kept. */
  readonly sizeBytes: number;
  /** File that a served device writes; a machine returns the bytes instead. */
  readonly file?: string;
}

/** Records of refusals, drops and calls for explain/why. */
export interface EvidenceOptions {
  /** Returns the program line of the current call; only in partition `single`. If omitted, lines are unknown. */
  readonly placeOf?: PlaceOf;
}

export interface AnalysisOptions {
  readonly trace?: TraceOptions;
  /** Whether the linter checks drivers by the rules of the interface. */
  readonly lint?: boolean;
  /** Whether to keep the packets of the PCIe links for queries after a run. */
  readonly packets?: boolean;
  /** Records of all activity over time, in every part: docs/how-to/timeline.md. If omitted, none are kept and they cost nothing. */
  readonly timeline?: TimelineOptions;
  /** Evidence of why requests fail, for {@link Machine.evidence}. If omitted, none is kept and it costs nothing. */
  readonly evidence?: EvidenceOptions;
  /** Selects the cable packets to keep, for {@link Machine.capture}. */
  readonly capture?: CaptureOptions;
}

export const captureDefaults = { ends: [{ node: 0 }], sizeBytes: 256 * 1024 ** 2 } as const;

/** @throws ConfigurationError for an end that no node has */
export function checkCapture(analysis: AnalysisOptions | undefined, nodeCount: number): void {
  for (const { node } of analysis?.capture?.ends ?? [])
    if (!Number.isInteger(node) || node < 0 || node >= nodeCount)
      throw new ConfigurationError('end of a capture', `hca${node}`, `hca0 to hca${nodeCount - 1}`);
}

export const traceDefaults = {
  categories: traceCategories,
  filters: [],
  format: 'text',
  file: 'hca-trace.log',
  sizeBytes: 64 * 1024 ** 2,
} as const satisfies TraceOptions;

/** @throws ConfigurationError for options that cannot be sent to the threads of partition `where` */
export function checkCrossing(analysis: AnalysisOptions | undefined, where: string): void {
  if (analysis?.trace?.sinkOf !== undefined)
    throw new ConfigurationError('analysis.trace.sinkOf', 'a function', `a file for ${where}`);
  if (analysis?.timeline?.onPost !== undefined)
    throw new ConfigurationError('analysis.timeline.onPost', 'a function', `none for ${where}`);
  if (analysis?.evidence?.placeOf !== undefined)
    throw new ConfigurationError('analysis.evidence.placeOf', 'a function', `none for ${where}`);
  if (analysis?.timeline?.sink !== undefined)
    throw new ConfigurationError('analysis.timeline.sink', 'a function', `no sink for ${where}: timeline()`);
}

/** Trace of one host. */
export function traceFileOf(file: string, hostName: string): string {
  const ending = /\.[^./]+$/.exec(file)?.[0] ?? '';
  return `${file.slice(0, file.length - ending.length)}.${hostName}${ending}`;
}
