/** `hca fabric`: traffic of a pattern over hosts and switches: the rate of each flow, its messages' times, and what the switches did. */
import { Argument, type Command, Option } from 'commander';
import runFabric, { type FabricRow, fabricFailure } from '../../experiments/runs/fabric-run.ts';
import {
  checkedFabricWorkload,
  type FabricPattern,
  type FabricVerb,
  fabricArgsOf,
  fabricDefaults,
  fabricFields,
  fabricPatterns,
  fabricVerbs,
  flowsOf,
} from '../../experiments/workloads/index.ts';
import { faultLines } from '../../explain/text/render.ts';
import { configuredOf, type MachineOptions, type Partition } from '../../machine/index.ts';
import { hostsOf, parsedTopology } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type AllReduceAlgorithm, allReduceAlgorithms } from '../../userlib/messaging/index.ts';
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
import { exitFailed, Screen, writeJson } from '../output.ts';
import { fabricPage } from './fabric-page.ts';
import { fabricSentences, flowTable, outputTable } from './fabric-text.ts';

interface FabricOptions extends MachineChoice, TopologyChoice, FaultChoice, HtmlChoice {
  readonly verb?: FabricVerb;
  readonly algorithm?: AllReduceAlgorithm;
  readonly size: number;
  readonly messages: number;
  readonly window?: number;
  readonly qps?: number;
  readonly hosts?: number;
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
      new Option('--algorithm <name>', fabricFields.algorithm.meaning).choices([...allReduceAlgorithms]),
    )
    .addOption(fieldOption('size', fabricDefaults.sizeBytes))
    .addOption(fieldOption('messages', fabricDefaults.messages))
    .addOption(fieldOption('window', undefined, ` (default: ${fabricDefaults.window})`))
    .addOption(fieldOption('qps'))
    .addOption(fieldOption('hosts'))
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option(...htmlOption)
    .action(fabric);
  addPartitionOption(addTopologyOption(addFaultOptions(addMachineOptions(command))), 'single');
}

/** A number of the workload as an option. */
function fieldOption(
  name: 'size' | 'messages' | 'window' | 'qps' | 'hosts',
  value?: number,
  note = '',
): Option {
  const { unit, min, max, meaning } = fabricFields[name];
  const option = new Option(`--${name} <${unit}>`, `${meaning}${note}`).argParser(integer(min, max));
  return value === undefined ? option : option.default(value);
}

async function fabric(pattern: FabricPattern, options: FabricOptions, command: Command): Promise<void> {
  const machine = machineOf(options);
  const { topology } = configuredOf(machine);
  const { size, messages, window, qps, verb, algorithm, hosts } = options;
  const given = Object.entries({ size, messages, window, qps, verb, algorithm, hosts });
  const workload = Object.fromEntries([
    ['test', pattern],
    ...given.filter(([, value]) => value !== undefined),
  ]);
  const args = fabricArgsOf(checkedFabricWorkload(workload), hostsOf(topology).length);
  flowsOf(args);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const row = await runFabric({ machine, args });
  if (row.flows.length > 0) screen.print(flowTable(row));
  if (row.outputs.length > 0) screen.print(outputTable(row));
  const sentences = fabricSentences(row);
  for (const sentence of sentences) screen.print(sentence);
  for (const line of faultLines(row.report.faults)) screen.print(line);
  const ran = { title: `${pattern} of ${args.hostCount} hosts`, words: [pattern], machine, sentences };
  writePage(options, () => fabricPage(headOf(command, ran), row, topology), screen);
  if (options.json !== undefined)
    writeJson(options.json, {
      schema: 'hca-fabric/1',
      invocation: invocationOf(command, [pattern, ...argumentsOf(command)], machine),
      configHash: machineHashOf(machine),
      ...row,
    });
  reportFailure(row);
}

function machineOf(options: FabricOptions): MachineOptions {
  const machine = { ...hcaMachineOptionsOf(options), partition: options.partition };
  return machine.topology === undefined
    ? { ...machine, topology: parsedTopology(fabricDefaults.topology) }
    : machine;
}

function reportFailure(row: FabricRow): void {
  const failure = fabricFailure(row);
  if (failure === undefined) return;
  process.stderr.write(`hca: ${failure}\n`);
  process.exitCode = exitFailed;
}
