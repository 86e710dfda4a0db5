/**
 * `hca serve --socket PATH`: serves HCAs to real guests until the last one has disconnected or until Ctrl-C (with
 * `--keep` only until Ctrl-C), and then prints the events on the devices.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { reportFullCapture } from '../../experiments/runs/capture-output.ts';
import { pageOf } from '../../explain/page/index.ts';
import { peerFaultsOf } from '../../guests/linux/index.ts';
import {
  renderServeReport,
  type ServedMachine,
  type ServeReport,
  serve,
  wireNetworkLine,
} from '../../guests/serve/index.ts';
import { checkWritable, writeFileAtomically } from '../../runtime/output-files.ts';
import {
  type AnalysisChoice,
  addAnalysisOptions,
  analysisOptionsOf,
  analysisText,
  hasErrors,
} from '../analysis-options.ts';
import { addPeerOptions, type PeerChoice, peerOptionsOf } from '../guest/peer-options.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import {
  addFaultOptions,
  addMachineOptions,
  type FaultChoice,
  integer,
  type MachineChoice,
  machineOptionsOf,
  refuseTopologyOption,
} from '../options.ts';
import { exitFailed, jsonText, Screen, writeJson } from '../output.ts';
import {
  addTimelineOptions,
  servedTimelineOrderOf,
  type TimelineChoice,
  timelineText,
  withoutTimelineFile,
  writeServedTimeline,
} from '../timeline-options.ts';
import { servedIn, servedSections } from './served-page.ts';

interface ServeCommandOptions
  extends AnalysisChoice,
    TimelineChoice,
    MachineChoice,
    FaultChoice,
    PeerChoice,
    HtmlChoice {
  readonly socket: string;
  readonly hcas: number;
  readonly cable?: boolean;
  readonly wire?: string;
  /** False if `--no-loopback-plug` was given. */
  readonly loopbackPlug: boolean;
  readonly timeScale: number;
  readonly keep?: boolean;
  readonly guestPort: Readonly<Record<number, number>>;
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
    .option(
      '--wire <path>',
      "UNIX socket to make that is the other end of the HCA's cable, a port of Ethernet: QEMU's -netdev stream plugs another guest in",
    )
    .option('--no-loopback-plug', 'leave a port without a cable open: its link stays down')
    .option(
      '--guest-port <port:guest>',
      'port of this computer that QEMU forwards to one of the guest, for the program of --peer; may be repeated',
      forwarded,
      {},
    )
    .option('--time-scale <x>', 'simulated time per wall time while the devices are idle', positive, 1)
    .option('--keep', 'serve the next guest when the last one has gone, until Ctrl-C')
    .option('--report <file>', 'write the report as JSON')
    .option('--json <file>', 'the same; - is standard output, which then has nothing else')
    .option(...htmlOption)
    .action(serveGuests);
  addTimelineOptions(addAnalysisOptions(addFaultOptions(addMachineOptions(addPeerOptions(command)))));
  refuseTopologyOption(
    command,
    'left out: --hcas, --cable, --wire, --peer and --no-loopback-plug say what the cables lead to',
  );
}

function forwarded(text: string, before: Readonly<Record<number, number>>): Readonly<Record<number, number>> {
  const [, port, guestPort] = /^(\d+):(\d+)$/.exec(text) ?? [];
  if (port === undefined || guestPort === undefined)
    throw new InvalidArgumentError('expected two ports, such as 20000:18515.');
  return { ...before, [Number(guestPort)]: Number(port) };
}

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('expected a number above zero.');
}

async function serveGuests(options: ServeCommandOptions, command: Command): Promise<void> {
  const { socket, hcas, cable = false, wire, loopbackPlug, timeScale, keep = false } = options;
  const { profile, set, seed, faults, shortcuts } = machineOptionsOf(options);
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const timeline = servedTimelineOrderOf(options);
  const peer = peerOptionsOf(options);
  const guestPorts = options.guestPort;
  if (peer === undefined && Object.keys(guestPorts).length > 0)
    throw new ConfigurationError('--guest-port', Object.keys(guestPorts).join(), 'an option beside --peer');
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  checkWritable(options.report);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const machine = await serve(
    {
      ...{ socket, hcas, cable, loopbackPlug, timeScale, once: !keep },
      ...(wire === undefined ? {} : { wire }),
      ...(peer === undefined ? {} : { peer: { ...peer, guestPorts } }),
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
  screen.print(introductionOf(machine, keep, wire));
  const report = await untilEnded(machine);
  if (options.report !== undefined) writeFileAtomically(options.report, jsonText(report));
  if (options.json !== undefined) writeJson(options.json, report);
  screen.print(renderServeReport(report));
  await reportFullCapture(machine, analysis);
  const head = headOf(command, {
    title: `${hcas} served ${hcas === 1 ? 'HCA' : 'HCAs'}`,
    ...servedIn(report),
  });
  writePage(options, () => pageOf(head, servedSections(report)), screen);
  if (analysis !== undefined) screen.print(analysisText(report.analyses, analysis));
  if (timeline !== undefined)
    screen.print(timelineText(await writeServedTimeline(machine, report, timeline)));
  const isFaulty = report.analyses.some(({ findings }) => hasErrors(findings));
  const peerFaults = peerFaultsOf(report);
  for (const fault of peerFaults) process.stderr.write(`hca: ${fault}\n`);
  const isFailed = !report.checks.balanced || report.defects.length > 0 || peerFaults.length > 0;
  if (isFailed || isFaulty) process.exitCode = exitFailed;
}

function introductionOf(
  { sockets, qemuOptions, peerPort }: ServedMachine,
  isKept: boolean,
  wire: string | undefined,
): string {
  const what = sockets.length === 1 ? 'an HCA' : `${sockets.length} HCAs`;
  return [
    `Serving ${what} at ${sockets.join(' and ')}. Options for QEMU (10.1 or newer), one device for each HCA:`,
    ...qemuOptions.map((line) => `  ${line}`),
    ...(peerPort === undefined
      ? []
      : [`The peer's program takes TCP connections of the guest at 10.0.2.2, port ${peerPort}.`]),
    ...(wire === undefined
      ? []
      : [
          'Of another QEMU, whose network card is at the other end of the cable:',
          `  ${wireNetworkLine(wire)}`,
        ]),
    isKept ? 'Ends with Ctrl-C.' : 'Ends when the last guest has gone, or with Ctrl-C.',
  ].join('\n');
}

/** Ctrl-C and SIGTERM stop serving; a second signal ends the process as usual. */
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
