/** Which fields of a workload make sense together: what a test cannot do is refused, with words. */
import { ConfigurationError } from '../../base/assert.ts';
import { isLatencyTest, type PerfTestName, perfDefaults, verbOf } from './perf-plan.ts';
import type { WorkloadFieldName, WorkloadValues } from './workload-fields.ts';

/** What a field is called where its value comes from: the field itself, or the option of a command. */
export type FieldNaming = (field: WorkloadFieldName) => string;

interface Asked extends WorkloadValues {
  readonly test: PerfTestName;
}

/** Entries of the largest CQ: all QPs of a test complete into one. */
const completionsMax = 2 ** 22 - 1;

/** Bytes of a message. */
export function sizeOf({ test, size }: Asked): number {
  const verb = verbOf(test);
  return size ?? (isLatencyTest(test) ? perfDefaults.latencySizeBytes[verb] : perfDefaults.sizeBytes[verb]);
}

/** @throws ConfigurationError naming the field that does not fit the others */
export function checkFit(asked: Asked, named: FieldNaming): void {
  for (const rule of rules) rule(asked, named);
}

type Rule = (asked: Asked, named: FieldNaming) => void;

const rules: readonly Rule[] = [
  ({ test, size }, named) => {
    if (verbOf(test) === 'atomic' && size !== undefined && size !== 8)
      throw new ConfigurationError(named('size'), size, `8 for ${test}`);
  },
  ({ test, qps = 1 }, named) => {
    if (isLatencyTest(test) && qps !== 1) throw new ConfigurationError(named('qps'), qps, `1 for ${test}`);
  },
  (asked, named) => {
    const { qps = 1, txDepth = perfDefaults.txDepth, rxDepth = perfDefaults.rxDepth } = asked;
    const depthMax = Math.floor(completionsMax / qps);
    const depth = Math.max(txDepth, rxDepth);
    if (depth <= depthMax) return;
    const deeper = named(txDepth >= rxDepth ? 'txDepth' : 'rxDepth');
    throw new ConfigurationError(deeper, depth, `at most ${depthMax} with ${named('qps')} ${qps}`);
  },
  ({ test, events }, named) => {
    if (test === 'write-lat' && events === true)
      throw new ConfigurationError(
        named('events'),
        true,
        'left out: write-lat waits for memory, not for completions',
      );
  },
  ({ region, pattern }, named) => {
    if (region === undefined && pattern !== undefined)
      throw new ConfigurationError(named('pattern'), pattern, `left out without ${named('region')}`);
  },
  (asked, named) => {
    const { test, region } = asked;
    if (region === undefined) return;
    if (verbOf(test) === 'send' || test === 'write-lat')
      throw new ConfigurationError(
        named('region'),
        region,
        `left out: ${test} waits for its messages in one place; the other tests have it`,
      );
    const sizeBytes = sizeOf(asked);
    if (region < sizeBytes)
      throw new ConfigurationError(named('region'), region, `at least ${named('size')} ${sizeBytes}`);
  },
];
