/** The options of `hca perf`, named as in perftest, and what they mean for one size. */
import { type Command, Option } from 'commander';
import { ConfigurationError } from '../../base/assert.ts';
import { hintFor } from '../machine/profile/values.ts';
import {
  isLatencyTest,
  type PerfArgs,
  type PerfPattern,
  type PerfTestName,
  perfDefaults,
  perfPatterns,
  perfTestNames,
  verbOf,
} from '../workloads/perf-plan.ts';
import { integer } from './options.ts';

export { perfTestNames };

export interface PerfChoice {
  readonly size?: number;
  readonly all?: boolean;
  readonly iters?: number;
  readonly qps: number;
  readonly txDepth?: number;
  readonly rxDepth?: number;
  readonly inline?: number;
  readonly events?: boolean;
  readonly cqMod?: number;
  readonly mtu?: string;
  readonly odp?: boolean;
  readonly region?: number;
  readonly pattern?: PerfPattern;
}

/** perftest's --all: 2^1 to 2^23 bytes. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** (power + 1));
/** Bytes a bandwidth test moves when --iters is left out: enough for a steady state. */
const bandwidthBytes = 64 * 1024 ** 2;
const sizeMax = 2 ** 30;
const regionMax = 2 ** 31;
/** Entries of the largest CQ: all QPs of a test complete into one. */
const completionsMax = 2 ** 22 - 1;

export function addPerfOptions(command: Command): Command {
  return command
    .option('-s, --size <bytes>', 'bytes of a message (default as perftest)', integer(1, sizeMax))
    .option('-a, --all', 'all sizes from 2 to 2^23 bytes')
    .option(
      '-n, --iters <n>',
      'messages of a QP (default 1000 or 5000; fewer of large ones)',
      integer(1, 1e8),
    )
    .option('-q, --qps <n>', 'QPs of a bandwidth test', integer(1, 1024), 1)
    .option(
      '-t, --tx-depth <n>',
      `depth of the send queue (default ${perfDefaults.txDepth})`,
      integer(1, 16_000),
    )
    .option(
      '-r, --rx-depth <n>',
      `depth of the receive queue (default ${perfDefaults.rxDepth})`,
      integer(1, 16_000),
    )
    .option('-I, --inline <bytes>', 'messages of at most so many bytes go inline', integer(0, 900))
    .option('-e, --events', 'sleep until a completion event instead of polling')
    .option(
      '-Q, --cq-mod <n>',
      `one completion for so many messages (default ${perfDefaults.cqModeration})`,
      integer(1, 16_000),
    )
    .option(
      '--region <bytes>',
      'memory of each side that messages walk through (default: all have one place)',
      integer(1, regionMax),
    )
    .addOption(
      new Option('--pattern <how>', 'how they do: each its next place, or any (default next)').choices([
        ...perfPatterns,
      ]),
    )
    .option('--odp', 'measure twice, pinned and registered on demand, and show what first touch costs')
    .addOption(
      new Option('-m, --mtu <bytes>', "path MTU (default: the port's)").choices([
        '256',
        '512',
        '1024',
        '2048',
        '4096',
      ]),
    );
}

/** @throws ConfigurationError that suggests the nearest */
export function checkedTest(name: string): PerfTestName {
  const test = perfTestNames.find((candidate) => candidate === name);
  if (test !== undefined) return test;
  const hint = hintFor(name, perfTestNames);
  throw new ConfigurationError('test', name, `one of ${perfTestNames.join(', ')}${hint}`);
}

/** What to run: one row of the table each. @throws ConfigurationError for options that contradict the test */
export function perfArgsOf(test: PerfTestName, choice: PerfChoice): PerfArgs[] {
  const verb = verbOf(test);
  const isLatency = isLatencyTest(test);
  if (verb === 'atomic' && choice.all === true)
    throw new ConfigurationError('--all', true, `left out: ${test} has one size, 8 bytes`);
  if (verb === 'atomic' && choice.size !== undefined && choice.size !== 8)
    throw new ConfigurationError('--size', choice.size, `8 for ${test}`);
  if (isLatency && choice.qps !== 1) throw new ConfigurationError('--qps', choice.qps, `1 for ${test}`);
  const { txDepth = perfDefaults.txDepth, rxDepth = perfDefaults.rxDepth } = choice;
  const depthMax = Math.floor(completionsMax / choice.qps);
  const deeper = txDepth >= rxDepth ? '--tx-depth' : '--rx-depth';
  const depth = Math.max(txDepth, rxDepth);
  if (depth > depthMax)
    throw new ConfigurationError(deeper, depth, `at most ${depthMax} with --qps ${choice.qps}`);
  if (test === 'write-lat' && choice.events === true)
    throw new ConfigurationError(
      '--events',
      true,
      'left out: write-lat waits for memory, not for completions',
    );
  const preset = isLatency ? perfDefaults.latencySizeBytes[verb] : perfDefaults.sizeBytes[verb];
  const sizes = choice.all === true ? allSizes : [choice.size ?? preset];
  const modes = choice.odp === true ? [false, true] : [undefined];
  const rows = sizes.flatMap((sizeBytes) => modes.map((isOnDemand) => ({ sizeBytes, isOnDemand })));
  return rows.map(({ sizeBytes, isOnDemand }) => ({
    verb,
    isLatency,
    sizeBytes,
    iterations: choice.iters ?? iterationsOf(isLatency, sizeBytes),
    qpCount: choice.qps,
    txDepth,
    rxDepth,
    inlineBytes: choice.inline ?? (isLatency ? perfDefaults.inlineBytes[verb] : 0),
    usesEvents: choice.events === true,
    cqModeration: choice.cqMod ?? perfDefaults.cqModeration,
    mtuBytes: Number(choice.mtu ?? 0),
    ...regionOf(test, choice, sizeBytes),
    ...(isOnDemand === undefined ? {} : { isOnDemand }),
  }));
}

/** @throws ConfigurationError for a test that cannot walk, and for a region without room for a message */
function regionOf(
  test: PerfTestName,
  { region, pattern }: PerfChoice,
  sizeBytes: number,
): Pick<PerfArgs, 'region'> {
  if (region === undefined) {
    if (pattern !== undefined)
      throw new ConfigurationError('--pattern', pattern, 'left out without --region');
    return {};
  }
  if (verbOf(test) === 'send' || test === 'write-lat')
    throw new ConfigurationError(
      '--region',
      region,
      `left out: ${test} waits for its messages in one place; the other tests have it`,
    );
  if (region < sizeBytes) throw new ConfigurationError('--region', region, `at least --size ${sizeBytes}`);
  return { region: { bytes: region, pattern: pattern ?? 'next' } };
}

/** Options that were given and change nothing in this test, in words. */
export function withoutEffect(test: PerfTestName, choice: PerfChoice): string[] {
  const [verb, isLatency] = [verbOf(test), isLatencyTest(test)];
  const idle: readonly (readonly [unknown, boolean, string])[] = [
    [choice.txDepth, isLatency, '--tx-depth: a latency test has one message in flight'],
    [choice.cqMod, isLatency, '--cq-mod: a latency test has a completion for each message'],
    [choice.rxDepth, verb !== 'send', '--rx-depth: only send tests receive'],
    [choice.inline, verb === 'read' || verb === 'atomic', `--inline: ${test} sends no payload`],
  ];
  return idle
    .filter(([value, isIdle]) => value !== undefined && isIdle)
    .map(([, , text]) => `No effect: ${text}.`);
}

/** perftest's counts; of large messages as many as show the steady state. */
function iterationsOf(isLatency: boolean, sizeBytes: number): number {
  const preset = isLatency ? perfDefaults.latencyIterations : perfDefaults.bandwidthIterations;
  const enough = Math.max(10, Math.ceil(bandwidthBytes / sizeBytes));
  return Math.min(preset, enough);
}
