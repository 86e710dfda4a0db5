/**
 * `hca explain TEST --op N`: one operation of a `hca perf` test, step by step. The test runs twice: first to find the
 * time of the operation, then to record everything in that time. Both runs are equal to the picosecond.
 */
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { checkPort } from '../../experiments/runs/perf-port.ts';
import { fittedToHost, loadPrograms } from '../../experiments/runs/perf-run.ts';
import { runMachine } from '../../experiments/runs/run.ts';
import { type PerfArgs, perfArgsOf, startOf } from '../../experiments/workloads/index.ts';
import { bytesText } from '../../explain/text/format.ts';
import {
  categoriesOfOperations,
  type Explanation,
  explained,
  operationFlows,
  operationOf,
  timeOf,
} from '../../explain/timeline/index.ts';
import {
  configuredOf,
  Machine,
  type MachineOptions,
  type Partition,
  type Report,
} from '../../machine/index.ts';
import {
  mergedTimeline,
  type Timeline,
  type TimelineOptions,
  timelineCategories,
} from '../../machine/timeline/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
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
import { Screen, writeJson } from '../output.ts';
import { addPerfOptions, optionOf, type PerfChoice, workloadsOf } from '../perf/perf-options.ts';
import { explainPage } from './explain-page.ts';

interface ExplainOptions extends PerfChoice, MachineChoice, TopologyChoice, FaultChoice, HtmlChoice {
  readonly op: number;
  readonly partition: Partition;
  readonly json?: string;
}

/** Adds the command with its options. */
export function addExplainCommand(program: Command): void {
  const command = program
    .command('explain')
    .description('explain one operation of an hca perf test step by step, with times that add up')
    .argument('<test>', 'a test or ready workload of hca perf')
    .option('--op <n>', 'which send of host 0, by number from 0', integer(0, 1e9), 0)
    .option('--json <file>', 'write it as JSON; - is standard output')
    .option(...htmlOption)
    .action(explain);
  addFaultOptions(addTopologyOption(addMachineOptions(addPerfOptions(command))));
  addPartitionOption(command, 'single');
}

async function explain(name: string, options: ExplainOptions, command: Command): Promise<void> {
  const workloads = workloadsOf(startOf(name), options);
  if (workloads.length > 1)
    throw new ConfigurationError('hca explain', '--all or --odp', 'one size and one kind of memory');
  const asked = perfArgsOf(workloads[0]!);
  const machine = { ...hcaMachineOptionsOf(options), partition: options.partition };
  const { config, topology } = configuredOf(machine);
  hostsBySide(topology);
  const args = fittedToHost(asked, config.host, '--');
  checkPort(args, config, optionOf);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const { report, ...explanation } = await explanationOf(machine, args, options.op);
  screen.print(explanationText(explanation));
  const ran = {
    title: `Operation ${explanation.ordinal} of host 0: ${explanation.operation}`,
    words: [name],
    machine,
    elapsedPs: report.elapsedPs,
    sentences: sentencesOf(explanation),
  };
  writePage(options, () => explainPage(headOf(command, ran), explanation, report), screen);
  if (options.json === undefined) return;
  const invocation = invocationOf(command, [name, ...argumentsOf(command)], machine);
  const configHash = machineHashOf(machine);
  writeJson(options.json, { schema: 'hca-explain/1', invocation, configHash, ...explanation });
}

/** @throws ConfigurationError if host 0 posts no such request, or its end is unknown */
export async function explanationOf(
  machine: MachineOptions,
  args: PerfArgs,
  ordinal: number,
): Promise<Explanation & { readonly report: Report }> {
  const { timeline: known } = await recordedOf(machine, args, { categories: categoriesOfOperations });
  const flow = operationOf(known, ordinal);
  const count = operationFlows(known).filter(({ node, ordinal: number }) => node === 0 && number >= 0).length;
  if (flow === undefined)
    throw new ConfigurationError(
      '--op',
      ordinal,
      count === 0 ? 'a test in which host 0 posts' : `0 to ${count - 1}`,
    );
  const span = timeOf(known, flow);
  if (span === undefined) throw new ConfigurationError('--op', ordinal, 'a request that has ended');
  const { timeline: meanwhile, report } = await recordedOf(machine, args, {
    categories: timelineCategories.filter((category) => !categoriesOfOperations.includes(category)),
    fromPs: span.fromPs,
    toPs: span.toPs + 1,
  });
  const dropped = meanwhile.dropped.filter((part) => part.dropped > 0);
  if (dropped.length > 0)
    throw new ConfigurationError(
      '--op',
      ordinal,
      `a request with at most ${dropped[0]!.kept} events on a side`,
    );
  // Operations that began before this one are known from other records.
  const whole = mergedTimeline([...known.parts, ...meanwhile.parts], known.topology);
  return { ...explained(whole, operationOf(whole, ordinal)!)!, report };
}

async function recordedOf(
  options: MachineOptions,
  args: PerfArgs,
  timeline: TimelineOptions,
): Promise<{ readonly timeline: Timeline; readonly report: Report }> {
  await using machine = await Machine.create({ ...options, analysis: { timeline } });
  await loadPrograms(machine, args);
  await runMachine(machine);
  return { timeline: await machine.timeline(), report: await machine.report() };
}

const nsText = (ps: number): string => (ps / 1000).toFixed(3);
const widths = { after: 12, lasts: 12 } as const;

/** Lines above the steps. */
function sentencesOf(explanation: Explanation): string[] {
  const {
    ordinal,
    operation,
    qpn,
    wqeCounter,
    payloadBytes,
    postedPs,
    latencyPs,
    isSilent,
    syndrome,
    others,
    steps,
  } = explanation;
  // Unreliable services send no answers: a request completes with its last packet.
  const isAnswered = steps.some(({ stage }) => stage === 'remote');
  const silentEnd = isAnswered ? 'its acknowledgement' : 'the departure of its last packet';
  const end = isSilent ? `${silentEnd}, for it has no CQE` : 'its completion in the program’s hands';
  return [
    `Operation ${ordinal} of host 0: ${operation} of ${bytesText(payloadBytes)}, QP 0x${qpn.toString(16)}, WQE 0x${wqeCounter.toString(16)}.`,
    `Posted at ${nsText(postedPs)} ns after power-on; ${nsText(latencyPs)} ns from there to ${end}.`,
    ...(syndrome === undefined ? [] : [`It failed: the CQE has syndrome 0x${syndrome.toString(16)}.`]),
    ...(others === 0
      ? ['Nothing else was under way meanwhile.']
      : [
          `${others} other operations were under way meanwhile: their DMA, TLPs and look-ups are among the events.`,
        ]),
  ];
}

function explanationText(explanation: Explanation): string {
  const { latencyPs, steps } = explanation;
  return [
    ...sentencesOf(explanation),
    '',
    `${'after ns'.padStart(widths.after)}${'lasts ns'.padStart(widths.lasts)}`,
    ...steps.flatMap(({ stage, afterPs, durationPs, text, events }) => [
      `${nsText(afterPs).padStart(widths.after)}${nsText(durationPs).padStart(widths.lasts)}  ${stage}: ${text}`,
      ...events.map(
        (event) =>
          `${nsText(event.afterPs).padStart(widths.after)}${nsText(event.durationPs).padStart(widths.lasts)}    · ${event.where}: ${event.text}`,
      ),
    ]),
    `${nsText(latencyPs).padStart(widths.after)}${nsText(steps.reduce((sum, { durationPs }) => sum + durationPs, 0)).padStart(widths.lasts)}  all steps together`,
  ].join('\n');
}
