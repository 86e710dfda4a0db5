/** The options of `hca perf`, named as in perftest, and what they mean for one size. */
import { type Command, Option } from 'commander';
import { ConfigurationError } from '../../base/assert.ts';
import { nearestOf } from '../profile/values.ts';
import {
  isLatencyTest,
  type PerfArgs,
  type PerfTestName,
  perfDefaults,
  perfTestNames,
  verbOf,
} from '../programs/perf-plan.ts';
import { integer } from './options.ts';

export { perfTestNames };

export interface PerfChoice {
  readonly size?: number;
  readonly all?: boolean;
  readonly iters?: number;
  readonly qps: number;
  readonly txDepth: number;
  readonly rxDepth: number;
  readonly inline?: number;
  readonly events?: boolean;
  readonly cqMod: number;
  readonly mtu?: string;
  readonly odp?: boolean;
}

/** perftest's --all: 2^1 to 2^23 bytes. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** (power + 1));
/** Bytes a bandwidth test moves when nobody says how many iterations: enough for a steady state. */
const bandwidthBytes = 64 * 1024 ** 2;
const sizeMax = 2 ** 30;
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
    .option('-t, --tx-depth <n>', 'depth of the send queue', integer(1, 16_000), perfDefaults.txDepth)
    .option('-r, --rx-depth <n>', 'depth of the receive queue', integer(1, 16_000), perfDefaults.rxDepth)
    .option('-I, --inline <bytes>', 'messages of at most so many bytes go inline', integer(0, 900))
    .option('-e, --events', 'sleep until a completion event instead of polling')
    .option(
      '-Q, --cq-mod <n>',
      'one completion for so many messages',
      integer(1, 16_000),
      perfDefaults.cqModeration,
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
  const nearest = nearestOf(name, perfTestNames);
  throw new ConfigurationError('test', name, `one of ${perfTestNames.join(', ')}; did you mean ${nearest}?`);
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
  const depthMax = Math.floor(completionsMax / choice.qps);
  const deeper = choice.txDepth >= choice.rxDepth ? '--tx-depth' : '--rx-depth';
  const depth = Math.max(choice.txDepth, choice.rxDepth);
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
    txDepth: choice.txDepth,
    rxDepth: choice.rxDepth,
    inlineBytes: choice.inline ?? (isLatency ? perfDefaults.inlineBytes[verb] : 0),
    usesEvents: choice.events === true,
    cqModeration: choice.cqMod,
    mtuBytes: Number(choice.mtu ?? 0),
    ...(isOnDemand === undefined ? {} : { isOnDemand }),
  }));
}

/** perftest's counts; of large messages as many as show the steady state. */
function iterationsOf(isLatency: boolean, sizeBytes: number): number {
  const preset = isLatency ? perfDefaults.latencyIterations : perfDefaults.bandwidthIterations;
  const enough = Math.max(10, Math.ceil(bandwidthBytes / sizeBytes));
  return Math.min(preset, enough);
}
