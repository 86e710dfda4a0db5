/** Puts an analyser between a host and its HCA, as the options say. */
import { Analyser, type Finding, HostMemoryReader, TraceFile } from '../../../analyser/index.ts';
import { attachTap, type HostMemory, type RootComplex } from '../../../hw/pcie/index.ts';
import { exactPs, type LogicalProcess } from '../../../sim/index.ts';
import { type AnalysisOptions, traceFileOf } from './options.ts';

/** What the machine gets from the analyser of one host: plain data. */
export interface Analysis {
  readonly node: string;
  readonly eventCount: number;
  /** The log, where there is one. */
  readonly file: string | undefined;
  readonly findings: readonly Finding[];
}

/**
 * @returns undefined when nothing is to be analysed
 * @throws ConfigurationError for a filter that cannot be read or a file that cannot be written
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
            sink: new TraceFile(traceFileOf(trace.file, hostName), trace.sizeBytes),
          },
        }),
  });
  attachTap(rootComplex, analyser);
  lp.addTimeKeeper(analyser);
  return analyser;
}

export function analysisOf(
  analyser: Analyser,
  hostName: string,
  options: AnalysisOptions | undefined,
): Analysis {
  const file = options?.trace === undefined ? undefined : traceFileOf(options.trace.file, hostName);
  return { node: hostName, eventCount: analyser.eventCount, file, findings: analyser.findings };
}
