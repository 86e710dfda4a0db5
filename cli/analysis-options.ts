/** The analyser options on the command line, shared by `hca move`, `hca perf` and `hca serve`. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type Finding,
  parsedCategories,
  TraceFilter,
  type TraceFormat,
  traceCategories,
  traceFormats,
} from '../analyser/index.ts';
import { ConfigurationError } from '../base/index.ts';
import { findingsTable } from '../explain/text/findings-table.ts';
import {
  type Analysis,
  type AnalysisOptions,
  type CaptureEnd,
  type CaptureOptions,
  captureDefaults,
  traceDefaults,
} from '../machine/analysis/index.ts';

export interface AnalysisChoice {
  readonly trace?: string;
  readonly traceFilter?: readonly string[];
  readonly traceFile?: string;
  readonly traceFormat?: TraceFormat;
  readonly traceSize?: number;
  readonly lint?: boolean;
  readonly pcap?: string;
  readonly pcapAt?: CaptureOptions['ends'];
  readonly pcapSize?: number;
}

const sizeMiBMax = 64 * 1024;

const collected = (text: string, before: readonly string[]): string[] => [...before, text];

/** Parses a number of MiB. */
function mebibytes(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= sizeMiBMax) return value;
  throw new InvalidArgumentError(`expected an integer from 1 to ${sizeMiBMax}.`);
}

/** Parses ends of cables: all, or hca0, hca1:in, switch2, switch2.1:out; several are separated by commas. */
function parsedEnds(text: string): CaptureOptions['ends'] {
  if (text.trim() === 'all') return 'all';
  const ends = text.split(',').map((word): CaptureEnd => {
    const match = /^(hca|switch)(\d{1,3})(?:\.(\d{1,2}))?(?::(in|out))?$/.exec(word.trim());
    if (match === null)
      throw new InvalidArgumentError(
        'expected all, or hca0, hca1, switch2, switch2.1, with :in or :out, several with commas.',
      );
    const [, name, node, port, direction] = match;
    return {
      node: Number(node),
      kind: name === 'switch' ? 'switch' : 'host',
      ...(port === undefined ? {} : { port: Number(port) }),
      ...(direction === undefined ? {} : { direction: direction === 'in' ? 'inbound' : 'outbound' }),
    };
  });
  for (const [at, { node, port }] of ends.entries())
    if (ends.slice(0, at).some((end) => end.node === node && (end.port ?? port) === (port ?? end.port)))
      throw new InvalidArgumentError('expected each end once.');
  return ends;
}

/** Adds --trace, --trace-filter, --trace-file, --trace-format, --trace-size, --lint, --pcap, --pcap-at and --pcap-size. */
export function addAnalysisOptions(command: Command): Command {
  command
    .option('--trace <categories>', `trace the bus: all categories, or some of ${traceCategories.join(',')}`)
    .option(
      '--trace-filter <name=value>',
      'log only this: see docs/how-to/trace.md; may be repeated',
      collected,
      [],
    )
    .option('--trace-file <file>', `file of the trace (default ${traceDefaults.file}), one for each host`)
    .addOption(new Option('--trace-format <format>', 'text, or JSON lines').choices([...traceFormats]))
    .option(
      '--trace-size <MiB>',
      'greatest size of a host’s trace: its beginning and its end are kept',
      mebibytes,
    )
    .option('--lint', 'hold the driver against the rules of the interface');
  return addCaptureOptions(command);
}

/** Adds --pcap, --pcap-at and --pcap-size. */
export function addCaptureOptions(command: Command): Command {
  return command
    .option(
      '--pcap <file>',
      'write the packets of cables as pcapng, with simulated times: docs/how-to/wire.md',
    )
    .option(
      '--pcap-at <ends>',
      'where: hca0 (default), hca1, switch2 or its port switch2.1, several with commas, or all; only what arrives or leaves: hca1:in, hca0:out',
      parsedEnds,
    )
    .option(
      '--pcap-size <MiB>',
      `most that the packets of an end take: the first are kept (default ${captureDefaults.sizeBytes / 1024 ** 2})`,
      mebibytes,
    );
}

/**
 * The analysis that the options request; undefined if they request none.
 * @throws ConfigurationError for a category or filter that cannot be parsed, and for options without effect
 */
export function analysisOptionsOf(choice: AnalysisChoice): AnalysisOptions | undefined {
  const { trace, traceFilter: filters = [], traceFile, traceFormat, traceSize, lint = false } = choice;
  const capture = captureOptionsOf(choice);
  const captured = capture === undefined ? {} : { capture };
  if (trace === undefined) {
    if (filters.length > 0 || [traceFile, traceFormat, traceSize].some((one) => one !== undefined))
      throw new ConfigurationError('--trace', 'left out', 'categories to trace: all, or some');
    return lint || capture !== undefined ? { lint, ...captured } : undefined;
  }
  const categories = parsedCategories(trace);
  new TraceFilter(categories, filters);
  return {
    lint,
    ...captured,
    trace: {
      categories,
      filters,
      format: traceFormat ?? traceDefaults.format,
      file: traceFile ?? traceDefaults.file,
      sizeBytes: traceSize === undefined ? traceDefaults.sizeBytes : traceSize * 1024 ** 2,
    },
  };
}

function captureOptionsOf({ pcap, pcapAt, pcapSize }: AnalysisChoice): CaptureOptions | undefined {
  if (pcap === undefined) {
    if (pcapAt !== undefined || pcapSize !== undefined)
      throw new ConfigurationError('--pcap', 'left out', 'a file to write');
    return undefined;
  }
  const sizeBytes = pcapSize === undefined ? captureDefaults.sizeBytes : pcapSize * 1024 ** 2;
  return { file: pcap, ends: pcapAt ?? captureDefaults.ends, sizeBytes };
}

/** Reports of the analysers at the end of a run. */
export function analysisText(analyses: readonly Analysis[], options: AnalysisOptions): string {
  const logs = analyses.flatMap(({ file, eventCount }) =>
    file === undefined ? [] : [`Traced ${eventCount} events to ${file}`],
  );
  const files =
    options.capture?.file === undefined
      ? []
      : [`Packets of the cable: ${options.capture.file} (npx hca wire reads it)`];
  const findings = options.lint === true ? [findingsTable(analyses.flatMap((one) => one.findings))] : [];
  return [...logs, ...files, ...findings].join('\n');
}

/** Whether a driver violated the interface. */
export const hasErrors = (findings: readonly Finding[]): boolean =>
  findings.some(({ severity }) => severity === 'error');
