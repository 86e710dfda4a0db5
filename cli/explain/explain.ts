/** `hca explain TEST --op N`: one operation of a `hca perf` test, step by step: see explanation.ts. */
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { checkPort } from '../../experiments/runs/perf-port.ts';
import { fittedToHost, loadPrograms } from '../../experiments/runs/perf-run.ts';
import { type PerfArgs, perfArgsOf, startOf } from '../../experiments/workloads/index.ts';
import type { Explanation } from '../../explain/timeline/index.ts';
import { configuredOf, type MachineOptions, type Partition, type Report } from '../../machine/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, htmlOption } from '../html-output.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addPartitionOption,
  addTopologyOption,
  type FaultChoice,
  hcaMachineOptionsOf,
  integer,
  type MachineChoice,
  type TopologyChoice,
} from '../options.ts';
import { Screen } from '../output.ts';
import { addPerfOptions, optionOf, type PerfChoice, workloadsOf } from '../perf/perf-options.ts';
import { explanationOfRun } from './explanation.ts';
import { showExplanation } from './show-explanation.ts';

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
  const found = await explanationOf(machine, args, options.op);
  showExplanation(command, { words: [name], machine, options, screen }, found);
}

/** Explains a send of host 0 in a test. @throws ConfigurationError if it posts no such request, or its end is unknown */
export const explanationOf = (
  machine: MachineOptions,
  args: PerfArgs,
  ordinal: number,
): Promise<Explanation & { readonly report: Report }> =>
  explanationOfRun(machine, (built) => loadPrograms(built, args), { node: 0, ordinal, option: '--op' });
