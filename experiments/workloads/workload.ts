/**
 * A workload: the task of the programs of `perf`, as plain JSON that a user writes, and as one line of text.
 *
 *     { test: 'write-bw', size: 64, region: 67108864, pattern: 'random' }
 *     write-bw,size=64,region=64Mi,pattern=random
 *
 * The fields are those of `test-kinds.ts`; omitted fields have perftest's defaults.
 */
import { ConfigurationError } from '../../base/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { loadDefaults } from './offered-load.ts';
import {
  isLatencyTest,
  type PerfArgs,
  type PerfRegion,
  type PerfTestName,
  perfDefaults,
  perfTestNames,
} from './perf-plan.ts';
import { readyWorkload, readyWorkloadNames } from './ready-workloads.ts';
import { allKinds, testKinds, workloadFieldNames, workloadFields } from './test-kinds.ts';
import { sharesOf } from './verbs-rules.ts';
import {
  checkedField,
  type FieldValue,
  fieldText,
  parsedField,
  type WorkloadFieldName,
  type WorkloadValues,
} from './workload-fields.ts';
import { type FieldNaming, iterationsOf, qpsOf, type Refusal } from './workload-rules.ts';

export interface Workload extends WorkloadValues {
  readonly test: PerfTestName;
}

const byField: FieldNaming = (field) => field;

/**
 * @param names accepted names
 * @throws ConfigurationError that suggests the nearest one
 */
export function checkedTest(name: unknown, names: readonly string[] = perfTestNames): PerfTestName {
  const test = perfTestNames.find((candidate) => candidate === name);
  if (test !== undefined) return test;
  const hint = typeof name === 'string' ? hintFor(name, names) : '';
  throw new ConfigurationError('test', name, `one of ${names.join(', ')}${hint}`);
}

/**
 * Checks each field and their combination; undefined fields are left out, the others are in canonical order.
 * @param named names of the fields in their source
 * @throws ConfigurationError naming field, value and the accepted values; for an unknown field it suggests the nearest
 */
export function checkedWorkload(value: unknown, named: FieldNaming = byField): Workload {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigurationError('workload', value, 'an object such as { "test": "write-bw", "size": 64 }');
  const given = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(given)) if (name !== 'test') checkedName(name);
  const values: Partial<Record<WorkloadFieldName, FieldValue>> = {};
  for (const name of workloadFieldNames) {
    const member = given[name];
    if (member !== undefined) values[name] = checkedField(named(name), workloadFields[name], member);
  }
  const workload = { test: checkedTest(given['test']), ...values } as Workload;
  checkFit(workload, named);
  return workload;
}

/** @throws ConfigurationError naming the field that contradicts the others */
function checkFit(asked: Workload, named: FieldNaming): void {
  for (const rule of [refusedField, ...testKinds[asked.test].rules]) {
    const refusal = rule(asked, named);
    if (refusal === undefined) continue;
    const [field, range, value = asked[field]] = refusal;
    throw new ConfigurationError(named(field), value, range);
  }
}

/** A field that the kind of test lacks, or that only another kind has. */
function refusedField(asked: Workload): Refusal | undefined {
  const { test } = asked;
  const kind = testKinds[test];
  const others = allKinds.flatMap(({ own }) => (own === undefined || own === kind.own ? [] : [own]));
  const absent = [
    ...(kind.lacking === undefined ? [] : [kind.lacking]),
    ...others.map(({ fields, thing }) => ({ fields, instead: `no ${thing}` })),
  ];
  for (const { fields, instead } of absent) {
    const found = fields.find((field) => asked[field] !== undefined);
    if (found !== undefined) return [found, `left out: ${test} has ${instead}`];
  }
  return;
}

function checkedName(name: string): WorkloadFieldName {
  const found = workloadFieldNames.find((candidate) => candidate === name);
  if (found !== undefined) return found;
  const hint = hintFor(name, workloadFieldNames);
  throw new ConfigurationError('workload field', name, `one of ${workloadFieldNames.join(', ')}${hint}`);
}

/**
 * Parses `write-bw,size=64,region=64Mi,pattern=random`: the test or a predefined workload comes first; a flag needs no
 * value.
 * @throws ConfigurationError as {@link checkedWorkload} does
 */
export function parsedWorkload(text: string): Workload {
  const [test, ...parts] = text.split(',').map((part) => part.trim());
  const words = new Map<WorkloadFieldName, string>();
  let last: WorkloadFieldName | undefined;
  for (const part of parts) {
    const at = part.indexOf('=');
    // A list continues after its comma.
    if (at < 0 && last !== undefined && /^\d/.test(part)) {
      words.set(last, `${words.get(last)},${part}`);
      continue;
    }
    last = checkedName(at < 0 ? part : part.slice(0, at).trim());
    if (words.has(last)) throw new ConfigurationError(last, part, 'given once');
    if (at < 0 && workloadFields[last].kind !== 'flag')
      throw new ConfigurationError('workload', text, `a value: ${last}=…`);
    words.set(last, at < 0 ? 'true' : part.slice(at + 1).trim());
  }
  const values = [...words].map(([name, word]) => [name, parsedField(name, workloadFields[name], word)]);
  return checkedWorkload({ ...startOf(test!), ...(Object.fromEntries(values) as object) });
}

/** Initial fields of a test, or of a predefined workload of this name. */
export const startOf = (name: string): Workload =>
  readyWorkload(name) ?? { test: checkedTest(name, [...perfTestNames, ...readyWorkloadNames]) };

/** The canonical text of a workload; {@link parsedWorkload} parses it. */
export function workloadText(workload: Workload): string {
  const words = workloadFieldNames.flatMap((name) => {
    const value = workload[name];
    return value === undefined ? [] : [`${name}=${fieldText(workloadFields[name], value)}`];
  });
  return [workload.test, ...words].join(',');
}

/**
 * The programs' arguments.
 * @throws ConfigurationError for an invalid workload
 */
export function perfArgsOf(workload: Workload): PerfArgs {
  const asked = checkedWorkload(workload);
  const { test, txDepth, rxDepth, inline, events, cqMod, mtu, onDemand, threads } = asked;
  const { verb, sizeBytes, inlineBytes, cqModeration, ...plan } = testKinds[test].presetOf(asked);
  return {
    verb,
    isLatency: isLatencyTest(test),
    sizeBytes,
    iterations: iterationsOf(asked, sizeBytes),
    qpCount: qpsOf(asked),
    txDepth: txDepth ?? perfDefaults.txDepth,
    rxDepth: rxDepth ?? perfDefaults.rxDepth,
    inlineBytes: inline ?? inlineBytes,
    usesEvents: events === true,
    cqModeration: cqMod ?? cqModeration,
    mtuBytes: mtu ?? 0,
    ...routeOf(asked),
    ...(asked.region === undefined ? {} : { region: regionOf(asked.region, asked) }),
    ...(onDemand === undefined ? {} : { isOnDemand: onDemand }),
    ...(threads === undefined || threads === 1 ? {} : { threads }),
    ...extrasOf(asked),
    ...plan,
  };
}

function routeOf({ gidIndex, trafficClass }: Workload): Pick<PerfArgs, 'route'> {
  if (gidIndex === undefined && trafficClass === undefined) return {};
  const place = gidIndex === undefined ? {} : { gidIndex };
  return { route: { ...place, ...(trafficClass === undefined ? {} : { trafficClass }) } };
}

/** Differences from perftest's plain test; omits fields that were not requested. */
function extrasOf(asked: Workload): Partial<PerfArgs> {
  const {
    connection = 'RC',
    postList = 1,
    bidirectional,
    warmup,
    sizes,
    pageSize,
    blueflame,
    moderation,
    useSrq,
  } = asked;
  const [count = 0, microseconds = 0] = moderation?.split(':').map(Number) ?? [];
  return {
    ...(connection === 'RC' ? {} : { connection }),
    ...(postList === 1 ? {} : { postList }),
    ...(useSrq === true ? { usesSrq: true } : {}),
    ...(bidirectional === true ? { isBidirectional: true } : {}),
    ...(asked.echo === true ? { isEchoed: true } : {}),
    ...(warmup === undefined ? {} : { warmupIterations: warmup }),
    ...(sizes === undefined ? {} : { sizes: sharesOf(sizes) }),
    ...(pageSize === '2M' ? { pageBytes: 2 ** 21 } : {}),
    ...(blueflame === 'off' ? { usesBlueFlame: false } : {}),
    ...(moderation === undefined ? {} : { eventModeration: { count, microseconds } }),
    ...(asked.rate === undefined
      ? {}
      : {
          load: {
            perSecond: asked.rate,
            arrivals: asked.arrivals ?? loadDefaults.arrivals,
            backlog: asked.backlog ?? loadDefaults.backlog,
          },
        }),
  };
}

const regionOf = (
  bytes: number,
  { pattern = 'sequential', stride, keys = 1, fixedLocal }: Workload,
): PerfRegion => ({
  bytes,
  pattern,
  ...(stride === undefined ? {} : { strideBytes: stride }),
  ...(keys === 1 ? {} : { keys }),
  ...(fixedLocal === true ? { isLocalFixed: true } : {}),
});
