/** The options of the analyser on the command line: of `hca move`, `hca perf` and `hca serve` alike. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type Finding,
  parsedCategories,
  TraceFilter,
  type TraceFormat,
  traceCategories,
  traceFormats,
} from '../../analyser/index.ts';
import type { Analysis } from '../machine/analysis/attach.ts';
import { type AnalysisOptions, traceDefaults } from '../machine/analysis/options.ts';
import { findingsTable } from '../text/findings-table.ts';

export interface AnalysisChoice {
  readonly trace?: string;
  readonly traceFilter?: readonly string[];
  readonly traceFile?: string;
  readonly traceFormat?: TraceFormat;
  readonly traceSize?: number;
  readonly lint?: boolean;
}

const sizeMiBMax = 64 * 1024;

const collected = (text: string, before: readonly string[]): string[] => [...before, text];

/** Reads MiB. */
function mebibytes(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= sizeMiBMax) return value;
  throw new InvalidArgumentError(`expected an integer from 1 to ${sizeMiBMax}.`);
}

/** Adds --trace, --trace-filter, --trace-file, --trace-format, --trace-size and --lint. */
export function addAnalysisOptions(command: Command): Command {
  return command
    .option('--trace <categories>', `log what crosses the bus: all, or some of ${traceCategories.join(',')}`)
    .option('--trace-filter <name=value>', 'log only this: see docs/trace.md; may be repeated', collected, [])
    .option('--trace-file <file>', `where the log goes (default ${traceDefaults.file}), a file for each host`)
    .addOption(new Option('--trace-format <format>', 'text, or JSON lines').choices([...traceFormats]))
    .option(
      '--trace-size <MiB>',
      'most that the log of a host takes: its beginning and its end are kept',
      mebibytes,
    )
    .option('--lint', 'hold the driver against the rules of the interface');
}

/**
 * What the options ask for; undefined for nothing.
 * @throws ConfigurationError for a category or filter that cannot be read
 */
export function analysisOptionsOf(choice: AnalysisChoice): AnalysisOptions | undefined {
  const { trace, traceFilter: filters = [], traceFile, traceFormat, traceSize, lint = false } = choice;
  if (trace === undefined) return lint ? { lint } : undefined;
  const categories = parsedCategories(trace);
  new TraceFilter(categories, filters);
  return {
    lint,
    trace: {
      categories,
      filters,
      format: traceFormat ?? traceDefaults.format,
      file: traceFile ?? traceDefaults.file,
      sizeBytes: traceSize === undefined ? traceDefaults.sizeBytes : traceSize * 1024 ** 2,
    },
  };
}

/** What the analysers report at the end of a run. */
export function analysisText(analyses: readonly Analysis[], options: AnalysisOptions): string {
  const logs = analyses.flatMap(({ file, eventCount }) =>
    file === undefined ? [] : [`Traced ${eventCount} events to ${file}`],
  );
  const findings = options.lint === true ? [findingsTable(analyses.flatMap((one) => one.findings))] : [];
  return [...logs, ...findings].join('\n');
}

/** Whether a driver broke the interface. */
export const hasErrors = (findings: readonly Finding[]): boolean =>
  findings.some(({ severity }) => severity === 'error');
