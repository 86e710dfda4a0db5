/** Attaches an analyser between a host and its HCA, as the options request. */
import { Analyser, type ConnectionEnd, type Finding, HostMemoryReader } from '../../analyser/index.ts';
import { runtime, type TextSink } from '../../base/index.ts';
import { attachTap, type HostMemory, type RootComplex } from '../../hw/pcie/index.ts';
import { exactPs, type LogicalProcess } from '../../sim/index.ts';
import { type AnalysisOptions, type TraceOptions, traceFileOf } from './options.ts';

/** Results of the analyser of one host: plain data. */
export interface Analysis {
  readonly node: string;
  readonly eventCount: number;
  /** The file of the trace, if it has one. */
  readonly file: string | undefined;
  readonly findings: readonly Finding[];
}

/** The ends of connections that a node's driver has made. */
export interface NodeConnections {
  readonly node: number;
  readonly ends: readonly ConnectionEnd[];
}

/**
 * @returns undefined if nothing is to be analysed
 * @throws ConfigurationError for a filter that cannot be parsed or a file that cannot be written
 */
export function attachAnalyser(
  options: AnalysisOptions | undefined,
  hostName: string,
  lp: LogicalProcess,
  rootComplex: RootComplex,
  memory: HostMemory,
): Analyser | undefined {
  if (options === undefined || (options.trace === undefined && options.lint !== true)) return undefined;
  const { trace, lint = false } = options;
  const analyser = new Analyser({
    node: hostName,
    memory: new HostMemoryReader(memory),
    lint,
    instantOf: (ps) => exactPs(lp.epochUs, ps),
    ...(trace === undefined
      ? {}
      : {
          trace: {
            categories: trace.categories,
            filters: trace.filters,
            format: trace.format,
            sink: sinkFor(trace, hostName),
          },
        }),
  });
  attachTap(rootComplex, analyser);
  lp.addTimeKeeper(analyser);
  return analyser;
}

const sinkFor = ({ file, sizeBytes, sinkOf }: TraceOptions, hostName: string): TextSink =>
  sinkOf === undefined ? runtime().openLog(traceFileOf(file, hostName), sizeBytes) : sinkOf(hostName);

export function analysisOf(
  analyser: Analyser,
  hostName: string,
  options: AnalysisOptions | undefined,
): Analysis {
  const trace = options?.trace;
  const isInFile = trace !== undefined && trace.sinkOf === undefined;
  const file = isInFile ? traceFileOf(trace.file, hostName) : undefined;
  return { node: hostName, eventCount: analyser.eventCount, file, findings: analyser.findings };
}
