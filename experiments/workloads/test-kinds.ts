/** The table of all kinds of tests. A new kind is entered here, and in the names, plans and results of `perf-plan.ts`. */
import { kvFields, kvKind } from './kv-kind.ts';
import { type PerfArgs, type PerfTestName, perfTestNames } from './perf-plan.ts';
import type { TestKind } from './test-kind.ts';
import { verbsFields } from './verbs-fields.ts';
import { verbsKind } from './verbs-kind.ts';
import type { WorkloadFieldName } from './workload-fields.ts';

export const testKinds: Readonly<Record<PerfTestName, TestKind>> = {
  'write-lat': verbsKind,
  'write-bw': verbsKind,
  'read-lat': verbsKind,
  'read-bw': verbsKind,
  'send-lat': verbsKind,
  'send-bw': verbsKind,
  'atomic-lat': verbsKind,
  'atomic-bw': verbsKind,
  'kv-rpc': kvKind,
};

/** Tests that perftest lacks. */
export const otherTestNames = perfTestNames.filter((name) => testKinds[name] !== verbsKind);

/** Every field except the test, in canonical order. */
export const workloadFields = { ...verbsFields, ...kvFields };
export const workloadFieldNames = Object.keys(workloadFields) as readonly WorkloadFieldName[];

export const allKinds: readonly TestKind[] = [...new Set(Object.values(testKinds))];

/** The kind of a test by its arguments: every other kind than perftest's has a plan. */
export const kindOf = ({ kv }: PerfArgs): TestKind => (kv === undefined ? verbsKind : kvKind);

export const isPerftest = (args: PerfArgs): boolean => kindOf(args) === verbsKind;
