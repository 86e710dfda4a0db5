/** Analyses of a machine: plain data except for a sink, since it is sent to workers. The same for served guests. */

import { type TraceCategory, type TraceFormat, traceCategories } from '../../analyser/index.ts';
import { ConfigurationError, type TextSink } from '../../base/index.ts';
import type { PlaceOf } from '../evidence/index.ts';
import type { TimelineOptions } from '../timeline/index.ts';

export interface TraceOptions {
  readonly categories: readonly TraceCategory[];
  /** See analyser/filter.ts. */
  readonly filters: readonly string[];
  readonly format: TraceFormat;
  /** Path of the log; a host's name is put before its ending: `trace.log` becomes `trace.host0.log`. */
  readonly file: string;
  /** Bytes that the log of one host takes at most, in a file. */
  readonly sizeBytes: number;
  /** Takes the log of each host instead of a file; only in partition `single`. Default: the file. */
  readonly sinkOf?: (hostName: string) => TextSink;
}

/** An end of the cable, and perhaps only what leaves or arrives there. */
export interface CaptureEnd {
  readonly node: number;
  readonly direction?: 'inbound' | 'outbound';
}

/** Packets of the cable, kept to be written as a capture file. */
export interface CaptureOptions {
  readonly ends: readonly CaptureEnd[];
  /** Bytes that the packets of one end take at most: the first are kept. */
  readonly sizeBytes: number;
  /** Where a served device writes the file; a machine hands it out. */
  readonly file?: string;
}

/** Records of refusals, drops and calls for explain/why. */
export interface EvidenceOptions {
  /** The line of the program that is calling; only in partition `single`. If omitted, lines are unknown. */
  readonly placeOf?: PlaceOf;
}

export interface AnalysisOptions {
  readonly trace?: TraceOptions;
  /** Whether drivers are checked by the rules of the interface. */
  readonly lint?: boolean;
  /** Whether the packets of the PCIe links are kept for queries after a run. */
  readonly packets?: boolean;
  /** Records of all activity by time, in every part: docs/how-to/timeline.md. If omitted, none are kept and they cost nothing. */
  readonly timeline?: TimelineOptions;
  /** Evidence of why requests fail, for {@link Machine.evidence}. If omitted, none is kept and it costs nothing. */
  readonly evidence?: EvidenceOptions;
  /** Which packets of the cable are kept, for {@link Machine.capture}. */
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

/** @throws ConfigurationError for what cannot cross into the threads that `where` names */
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

/** The log of one host. */
export function traceFileOf(file: string, hostName: string): string {
  const ending = /\.[^./]+$/.exec(file)?.[0] ?? '';
  return `${file.slice(0, file.length - ending.length)}.${hostName}${ending}`;
}
