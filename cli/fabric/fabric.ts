/** `hca fabric`: traffic of a pattern over hosts and switches: the rate of each flow, its messages' times, and what the switches did. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { FabricRunError } from '../../experiments/runs/fabric-failure.ts';
import runFabric, { type FabricRow, fabricFailure, loadTraffic } from '../../experiments/runs/fabric-run.ts';
import {
  checkedFabricWorkload,
  type FabricArgs,
  type FabricConnection,
  type FabricPattern,
  type FabricVerb,
  fabricArgsOf,
  fabricConnections,
  fabricDefaults,
  fabricFields,
  fabricPatterns,
  fabricVerbs,
  flowsOf,
  type Placement,
  placements,
} from '../../experiments/workloads/index.ts';
import { faultLines } from '../../explain/text/render.ts';
import type { Explanation } from '../../explain/timeline/index.ts';
import { configuredOf, type MachineOptions, type Partition, type Report } from '../../machine/index.ts';
import { parsedTopology, racksOf } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type AllReduceAlgorithm, allReduceAlgorithms } from '../../userlib/messaging/index.ts';
import {
  type AnalysisChoice,
  addCaptureOptions,
  analysisOptionsOf,
  analysisText,
} from '../analysis-options.ts';
import { type ExplainedSend, explanationOfRun } from '../explain/explanation.ts';
import { showExplanation } from '../explain/show-explanation.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { argumentsOf, type Invocation, invocationOf } from '../invocation.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addPartitionOption,
  addTopologyOption,
  type FaultChoice,
  hcaMachineOptionsOf,
  integer,
  type MachineChoice,
  machineHashOf,
  type TopologyChoice,
} from '../options.ts';
import { exitFailed, fail, Screen, writeJson } from '../output.ts';
import {
  addTimelineOptions,
  type TimelineChoice,
  timelineOrderOf,
  timelineText,
} from '../timeline-options.ts';
import { fabricPage } from './fabric-page.ts';
import { fabricSentences, flowTable, outputTable } from './fabric-text.ts';

interface FabricOptions
  extends MachineChoice,
    TopologyChoice,
    FaultChoice,
    HtmlChoice,
    TimelineChoice,
    Pick<AnalysisChoice, 'pcap' | 'pcapAt' | 'pcapSize'> {
  readonly verb?: FabricVerb;
  readonly connection?: FabricConnection;
  readonly useSrq?: boolean;
  readonly algorithm?: AllReduceAlgorithm;
  readonly size: number;
  readonly messages: number;
  readonly window?: number;
  readonly qps?: number;
  readonly hosts?: number;
  readonly sl?: number;
  readonly victimSl?: number;
  readonly servers?: number;
  readonly placement?: Placement;
  readonly explain?: ExplainedSend;
  readonly json?: string;
  readonly partition: Partition;
}

export function addFabricCommand(program: Command): void {
  const command = program
    .command('fabric')
    .description(
      'send traffic of many hosts over switches: rates, fairness, times of messages, waits for credits',
    )
    .addArgument(
      new Argument('[pattern]', 'which host sends to which')
        .choices([...fabricPatterns])
        .default(fabricDefaults.pattern),
    )
    .addOption(
      new Option('--verb <verb>', `${fabricFields.verb.meaning} (default: ${fabricDefaults.verb})`).choices([
        ...fabricVerbs,
      ]),
    )
    .addOption(
      new Option('--connection <type>', fabricFields.connection.meaning).choices([...fabricConnections]),
    )
    .option('--use-srq', fabricFields.useSrq.meaning)
    .addOption(
      new Option('--algorithm <name>', fabricFields.algorithm.meaning).choices([...allReduceAlgorithms]),
    )
    .addOption(fieldOption('size', fabricDefaults.sizeBytes))
    .addOption(fieldOption('messages', fabricDefaults.messages))
    .addOption(fieldOption('window', undefined, ` (default: ${fabricDefaults.window})`))
    .addOption(fieldOption('qps'))
    .addOption(fieldOption('hosts'))
    .addOption(fieldOption('sl'))
    .addOption(fieldOption('victimSl'))
    .addOption(fieldOption('servers'))
    .addOption(new Option('--placement <where>', fabricFields.placement.meaning).choices([...placements]))
    .option(
      '--explain <host.n>',
      'instead of figures: message n of those that a host posts, step by step over cables and switches, as in 2.10',
      parsedSend,
    )
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option(...htmlOption)
    .action(fabric);
  const whole = addTimelineOptions(addCaptureOptions(command));
  addPartitionOption(addTopologyOption(addFaultOptions(addMachineOptions(whole))), 'single');
}

/** A message of a host. */
function parsedSend(text: string): ExplainedSend {
  const match = /^(\d{1,3})\.(\d{1,9})$/.exec(text);
  if (match === null) throw new InvalidArgumentError('expected a host and a number from 0, as in 2.10.');
  return { node: Number(match[1]), ordinal: Number(match[2]), option: '--explain' };
}

/** A number of the workload as an option. */
function fieldOption(
  name: 'size' | 'messages' | 'window' | 'qps' | 'hosts' | 'sl' | 'victimSl' | 'servers',
  value?: number,
  note = '',
): Option {
  const { unit, min, max, meaning } = fabricFields[name];
  const word = name === 'victimSl' ? 'victim-sl' : name;
  const option = new Option(`--${word} <${unit}>`, `${meaning}${note}`).argParser(integer(min, max));
  return value === undefined ? option : option.default(value);
}

async function fabric(pattern: FabricPattern, options: FabricOptions, command: Command): Promise<void> {
  const machine = machineOf(options);
  const { topology } = configuredOf(machine);
  const {
    size,
    messages,
    window,
    qps,
    verb,
    algorithm,
    hosts,
    sl,
    victimSl,
    servers,
    placement,
    connection,
    useSrq,
  } = options;
  const given = Object.entries({
    ...{ size, messages, window, qps, verb, algorithm, hosts, sl, victimSl },
    ...{ servers, placement, connection, useSrq },
  });
  const workload = Object.fromEntries([
    ['test', pattern],
    ...given.filter(([, value]) => value !== undefined),
  ]);
  const args = fabricArgsOf(checkedFabricWorkload(workload), racksOf(topology));
  flowsOf(args);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const timeline = timelineOrderOf(options);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  const analysis = analysisOptionsOf(options);
  checkWritable(analysis?.capture?.file);
  if (options.explain !== undefined) {
    const found = await explanationOfTraffic(machine, args, options);
    showExplanation(command, { words: [pattern], machine, options, screen }, found);
    return;
  }
  const origin = {
    invocation: invocationOf(command, [pattern, ...argumentsOf(command)], machine),
    configHash: machineHashOf(machine),
  };
  const row = await keepingFailure(options, origin, () =>
    runFabric({
      machine: analysis === undefined ? machine : { ...machine, analysis },
      args,
      ...(timeline === undefined ? {} : { timeline }),
    }),
  );
  if (row.flows.length > 0) screen.print(flowTable(row));
  if (row.outputs.length > 0) screen.print(outputTable(row));
  const sentences = fabricSentences(row);
  for (const sentence of sentences) screen.print(sentence);
  for (const line of faultLines(row.report.faults)) screen.print(line);
  if (analysis !== undefined) screen.print(analysisText([], analysis));
  if (row.timeline !== undefined) screen.print(timelineText(row.timeline));
  const ran = { title: `${pattern} of ${args.hostCount} hosts`, words: [pattern], machine, sentences };
  writePage(options, () => fabricPage(headOf(command, ran), row, topology), screen);
  const failure = fabricFailure(row);
  const failed = failure === undefined ? {} : { failure };
  if (options.json !== undefined)
    writeJson(options.json, { schema: 'hca-fabric/1', ...origin, ...failed, ...row });
  if (failure !== undefined) fail(failure, exitFailed);
}

/** The beginning of every JSON. */
interface Origin {
  readonly invocation: Invocation;
  readonly configHash: string;
}

/**
 * If the run fails, writes the JSON that was requested, with the failure instead of figures.
 * @throws the error of `run`
 */
async function keepingFailure(
  { json }: FabricOptions,
  origin: Origin,
  run: () => Promise<FabricRow>,
): Promise<FabricRow> {
  try {
    return await run();
  } catch (error) {
    if (json !== undefined && error instanceof FabricRunError)
      writeJson(json, { schema: 'hca-fabric-failure/1', ...origin, ...error.failed });
    throw error;
  }
}

/** @throws ConfigurationError for outputs that only a run with figures has */
function explanationOfTraffic(
  machine: MachineOptions,
  args: FabricArgs,
  { explain, pcap, timeline, vcd }: FabricOptions,
): Promise<Explanation & { readonly report: Report }> {
  for (const [name, value] of Object.entries({ pcap, timeline, vcd }))
    if (value !== undefined)
      throw new ConfigurationError(`--${name}`, value, 'left out with --explain, which prints one message');
  return explanationOfRun(machine, (built) => loadTraffic(built, args), explain!);
}

function machineOf(options: FabricOptions): MachineOptions {
  const machine = { ...hcaMachineOptionsOf(options), partition: options.partition };
  return machine.topology === undefined
    ? { ...machine, topology: parsedTopology(fabricDefaults.topology) }
    : machine;
}
