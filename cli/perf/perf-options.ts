/** The options of `hca perf`, named as in perftest, and the workloads that they select: one table row each. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import {
  acceptedBy,
  checkedWorkload,
  type FieldValue,
  isLatencyTest,
  type PerfTestName,
  parsedField,
  testKinds,
  type Workload,
  type WorkloadField,
  type WorkloadFieldName,
  type WorkloadValues,
  workloadFieldNames,
  workloadFields,
} from '../../experiments/workloads/index.ts';

/** Given options: fields of the workload, and two options that expand one workload into several. */
export interface PerfChoice extends Omit<WorkloadValues, 'onDemand'> {
  readonly all?: boolean;
  readonly odp?: boolean;
}

/** perftest's --all: 2^1 to 2^23 bytes. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** (power + 1));

/** Fields with options; --odp measures on-demand registration next to pinned. */
const optionNames = workloadFieldNames.filter((name) => name !== 'onDemand');

/** `--tx-depth` of `txDepth`. */
export const optionOf = (field: string): string =>
  `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export function addPerfOptions(command: Command): Command {
  for (const name of optionNames) {
    command.addOption(optionFor(name));
    if (name === 'size') command.option('-a, --all', 'all sizes from 2 to 2^23 bytes');
  }
  return command.option(
    '--odp',
    'measure twice, pinned and registered on demand, and show the cost of first touch',
  );
}

function optionFor(name: WorkloadFieldName): Option {
  const field: WorkloadField = workloadFields[name];
  const short = field.letter === undefined ? '' : `-${field.letter}, `;
  if (field.kind === 'flag') return new Option(`${short}${optionOf(name)}`, field.meaning);
  const option = new Option(`${short}${optionOf(name)} <${field.unit}>`, field.meaning);
  if (field.kind === 'choice') option.choices(field.choices.map(String));
  return option.argParser((text) => argumentOf(name, field, text));
}

/** @throws InvalidArgumentError, which commander reports with the option's name */
function argumentOf(name: WorkloadFieldName, field: WorkloadField, text: string): FieldValue {
  try {
    return parsedField(name, field, text);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new InvalidArgumentError(`expected ${acceptedBy(field)}.`);
  }
}

/** @throws ConfigurationError for a test's option if something else runs */
export function refuseTestOptions(choice: PerfChoice, expected: string): void {
  for (const name of ['all', 'odp', ...optionNames]) {
    const value = choice[name as keyof PerfChoice];
    if (value !== undefined) throw new ConfigurationError(optionOf(name), value, expected);
  }
}

/**
 * Workloads to run: one table row each.
 * @param start the test, with the fields of a predefined workload
 * @throws ConfigurationError for options that contradict the test
 */
export function workloadsOf(start: Workload, { all, odp, ...choice }: PerfChoice): Workload[] {
  const { test } = start;
  for (const [option, value] of Object.entries({ all, odp })) {
    const refusal =
      value === true ? testKinds[test].expansionRefusal(option as 'all' | 'odp', test) : undefined;
    if (refusal !== undefined) throw new ConfigurationError(`--${option}`, true, `left out: ${refusal}`);
  }
  if (all === true) {
    for (const name of ['size', 'sizes'] as const)
      if (choice[name] !== undefined) throw new ConfigurationError('--all', true, `left out with --${name}`);
  }
  const sizes = all === true ? allSizes.map((size) => ({ size })) : [{}];
  const modes = odp === true ? [{ onDemand: false }, { onDemand: true }] : [{}];
  const given = optionNames.flatMap((name) => {
    const value = choice[name as keyof typeof choice];
    return value === undefined ? [] : [[name, value] as const];
  });
  return sizes.flatMap((size) =>
    modes.map((mode) =>
      checkedWorkload({ ...start, ...Object.fromEntries(given), ...size, ...mode }, optionOf),
    ),
  );
}

/** Notes on given options that have no effect in this test, or another effect than intended. */
export function withoutEffect(test: PerfTestName, choice: PerfChoice): string[] {
  const isLatency = isLatencyTest(test);
  const idle: readonly (readonly [unknown, boolean, string])[] = [
    [
      choice.txDepth,
      isLatency,
      '--tx-depth: a latency test has one message in flight; it changes the size of the queues alone, of which small ones cost more to keep.',
    ],
    [
      choice.cqMod,
      isLatency,
      'No effect: --cq-mod: only bandwidth tests have messages whose completions can be left out.',
    ],
    [choice.rxDepth, !testKinds[test].receives(test), 'No effect: --rx-depth: only send tests receive.'],
  ];
  return idle.filter(([value, isIdle]) => value !== undefined && isIdle).map(([, , text]) => text);
}
