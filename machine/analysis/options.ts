/** Analyses of a machine or of served guests. Plain data except for a sink, because workers receive it. */

import { type TraceCategory, type TraceFormat, traceCategories } from '../../analyser/index.ts';
import { ConfigurationError, type TextSink } from '../../base/index.ts';
import type { PlaceOf } from '../evidence/index.ts';
import type { TimelineOptions } from '../timeline/index.ts';
import { hostsOf, type NodeKind, portsOf, switchesOf, type Topology } from '../topology/index.ts';

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

/** An end of a cable, optionally only one direction there. */
export interface CaptureEnd {
  /** A host, for its adapter, or a switch. */
  readonly node: number;
  /** Kind that the node must have; left out: any. */
  readonly kind?: NodeKind;
  /** Its port from 1; left out: every port with a cable. */
  readonly port?: number;
  readonly direction?: 'inbound' | 'outbound';
}

/** Packets on cables, kept for a capture file. */
export interface CaptureOptions {
  /** `all`: both ends of every cable. */
  readonly ends: readonly CaptureEnd[] | 'all';
  /** Greatest number of packet bytes per end; the first packets are kept, or the latest. */
  readonly sizeBytes: number;
  /** Whether the latest packets are kept, for a machine that runs indefinitely. Default: the first. */
  readonly keepsLatest?: boolean;
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

/** @throws ConfigurationError for an end that no cable has */
export function checkCapture(analysis: AnalysisOptions | undefined, topology: Topology): void {
  for (const end of endsOf(analysis?.capture)) {
    const { node, port, kind = topology.nodes[node]?.kind } = end;
    const name = `${kind === 'switch' ? 'switch' : 'hca'}${node}`;
    if (kind === undefined || topology.nodes[node]?.kind !== kind)
      throw new ConfigurationError('end of a capture', name, nodesText(topology));
    const ports = portsOf(topology, node).map((own) => own.port);
    if (port !== undefined && !ports.includes(port))
      throw new ConfigurationError('end of a capture', `${name}.${port}`, portsText(name, ports));
  }
}

const endsOf = (capture: CaptureOptions | undefined): readonly CaptureEnd[] =>
  capture === undefined || capture.ends === 'all' ? [] : capture.ends;

/** The end of a capture at a node's port; undefined if it is not captured. */
export const capturedEndAt = (
  { ends }: CaptureOptions,
  node: number,
  port: number,
): Pick<CaptureEnd, 'direction'> | undefined =>
  ends === 'all' ? {} : ends.find((end) => end.node === node && (end.port ?? port) === port);

function nodesText(topology: Topology): string {
  const [hosts, switches] = [hostsOf(topology), switchesOf(topology)];
  const adapters = `hca0 to hca${hosts.length - 1}`;
  return switches.length === 0 ? adapters : `${adapters}, switch${switches[0]} to switch${switches.at(-1)}`;
}

const portsText = (name: string, ports: readonly number[]): string =>
  `a port with a cable: ${ports.map((port) => `${name}.${port}`).join(', ')}`;

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
