/**
 * `hca serve --socket PATH`: serves HCAs to real guests until the last one has gone or Ctrl-C, with `--keep` until Ctrl-C,
 * and then prints what happened on the devices.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { pageOf } from '../page/index.ts';
import { renderServeReport, type ServedMachine, type ServeReport, serve } from '../serve/index.ts';
import {
  type AnalysisChoice,
  addAnalysisOptions,
  analysisOptionsOf,
  analysisText,
  hasErrors,
} from './analysis-options.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from './html-output.ts';
import {
  addFaultOptions,
  addMachineOptions,
  type FaultChoice,
  integer,
  type MachineChoice,
  machineOptionsOf,
} from './options.ts';
import { checkWritable, exitFailed, jsonText, Screen, writeFileAtomically, writeJson } from './output.ts';
import { servedIn, servedSections } from './served-page.ts';
import {
  addTimelineOptions,
  servedTimelineOrderOf,
  type TimelineChoice,
  timelineText,
  withoutTimelineFile,
  writeServedTimeline,
} from './timeline-options.ts';

interface ServeCommandOptions extends AnalysisChoice, TimelineChoice, MachineChoice, FaultChoice, HtmlChoice {
  readonly socket: string;
  readonly hcas: number;
  readonly cable?: boolean;
  /** False when `--no-loopback-plug` was given. */
  readonly loopbackPlug: boolean;
  readonly timeScale: number;
  readonly keep?: boolean;
  readonly report?: string;
  readonly json?: string;
}

/** Adds the command with its options. */
export function addServeCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('serve HCAs to real guests: as PCIe devices on vfio-user sockets, for QEMU 10.1 or newer')
    .requiredOption('--socket <path>', 'UNIX socket to make; of two HCAs <path>.0 and <path>.1')
    .option('--hcas <n>', 'HCAs, each on a socket of its own: for one guest or for two', integer(1, 2), 1)
    .option('--cable', 'join port 1 of both HCAs by a cable')
    .option('--no-loopback-plug', 'leave a port without a cable open: its link stays down')
    .option('--time-scale <x>', 'simulated time per wall time while the devices are idle', positive, 1)
    .option('--keep', 'serve the next guest when the last one has gone, until Ctrl-C')
    .option('--report <file>', 'write the report as JSON')
    .option('--json <file>', 'the same; - is standard output, which then has nothing else')
    .option(...htmlOption)
    .action(serveGuests);
  addTimelineOptions(addAnalysisOptions(addFaultOptions(addMachineOptions(command))));
}

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('expected a number above zero.');
}

async function serveGuests(options: ServeCommandOptions, command: Command): Promise<void> {
  const { socket, hcas, cable = false, loopbackPlug, timeScale, keep = false } = options;
  const { profile, set, seed, faults, shortcuts } = machineOptionsOf(options);
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const timeline = servedTimelineOrderOf(options);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  checkWritable(options.report);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const machine = await serve(
    {
      ...{ socket, hcas, cable, loopbackPlug, timeScale, once: !keep },
      ...(profile === undefined ? {} : { profile }),
      ...(set === undefined ? {} : { set }),
      ...(seed === undefined ? {} : { seed }),
      ...(faults === undefined ? {} : { faults }),
      ...(shortcuts === undefined ? {} : { shortcuts }),
      ...(analysis === undefined && timeline === undefined
        ? {}
        : { analysis: { ...analysis, ...(timeline === undefined ? {} : { timeline: timeline.options }) } }),
    },
    { onNotice: (text) => screen.print(text) },
  );
  screen.print(introductionOf(machine, keep));
  const report = await untilEnded(machine);
  if (options.report !== undefined) writeFileAtomically(options.report, jsonText(report));
  if (options.json !== undefined) writeJson(options.json, report);
  screen.print(renderServeReport(report));
  const head = headOf(command, {
    title: `${hcas} served ${hcas === 1 ? 'HCA' : 'HCAs'}`,
    ...servedIn(report),
  });
  writePage(options, () => pageOf(head, servedSections(report)), screen);
  if (analysis !== undefined) screen.print(analysisText(report.analyses, analysis));
  if (timeline !== undefined)
    screen.print(timelineText(await writeServedTimeline(machine, report, timeline)));
  const isFaulty = report.analyses.some(({ findings }) => hasErrors(findings));
  if (!report.checks.balanced || report.defects.length > 0 || isFaulty) process.exitCode = exitFailed;
}

function introductionOf({ sockets, qemuOptions }: ServedMachine, isKept: boolean): string {
  const what = sockets.length === 1 ? 'an HCA' : `${sockets.length} HCAs`;
  return [
    `Serving ${what} at ${sockets.join(' and ')}. Options for QEMU (10.1 or newer), one device for each HCA:`,
    ...qemuOptions.map((line) => `  ${line}`),
    isKept ? 'Ends with Ctrl-C.' : 'Ends when the last guest has gone, or with Ctrl-C.',
  ].join('\n');
}

/** Ctrl-C and SIGTERM end the serving; a second one ends the process as usual. */
async function untilEnded(machine: ServedMachine): Promise<ServeReport> {
  const stop = (): void => {
    machine.close().catch(() => {});
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    return await machine.ended;
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  }
}
