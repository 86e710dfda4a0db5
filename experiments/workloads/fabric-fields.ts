/**
 * The fields of a fabric's workload, as text, as JSON and as axes of a sweep:
 *
 *     incast,size=64Ki,messages=50,window=16,qps=1,verb=write,hosts=8
 */
import { ConfigurationError } from '../../base/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { allReduceAlgorithms } from '../../userlib/messaging/index.ts';
import {
  type FabricArgs,
  type FabricPattern,
  fabricDefaults,
  fabricPatterns,
  fabricVerbs,
} from './fabric-plan.ts';
import { workloadFields } from './test-kinds.ts';
import {
  checkedField,
  type FieldValue,
  fieldText,
  type ValueOfField,
  type WorkloadField,
} from './workload-fields.ts';

/** Every field except the pattern, in canonical order. */
export const fabricFields = {
  size: { ...workloadFields.size, meaning: 'bytes of a message' },
  messages: { kind: 'integer', unit: 'n', min: 1, max: 1_000_000, meaning: 'messages of each flow' },
  window: { ...workloadFields.window, meaning: 'messages of a flow in flight' },
  qps: {
    kind: 'integer',
    unit: 'n',
    min: 1,
    max: 256,
    meaning: 'QPs of a flow, to which its messages go in turn (default 1)',
  },
  verb: {
    kind: 'choice',
    unit: 'verb',
    choices: fabricVerbs,
    meaning: 'who moves the data: the sender by WRITE, or the receiver by READ',
  },
  algorithm: {
    kind: 'choice',
    unit: 'name',
    choices: allReduceAlgorithms,
    meaning: 'of an all-reduce (default ring)',
  },
  sl: {
    kind: 'integer',
    unit: 'n',
    min: 0,
    max: 15,
    meaning: 'service level of the flows on InfiniBand (default 0)',
  },
  victimSl: {
    kind: 'integer',
    unit: 'n',
    min: 0,
    max: 15,
    meaning: "service level of victim's flow to the host with no other sender (default: as the others)",
  },
  hosts: {
    kind: 'integer',
    unit: 'n',
    min: 2,
    max: 128,
    meaning: 'hosts that take part, the first of the fabric (default: all)',
  },
} as const satisfies Readonly<Record<string, WorkloadField>>;

type FabricFieldName = keyof typeof fabricFields;
export const fabricFieldNames = Object.keys(fabricFields) as readonly FabricFieldName[];

type FabricValues = { readonly [Name in FabricFieldName]?: ValueOfField<(typeof fabricFields)[Name]> };

export interface FabricWorkload extends FabricValues {
  readonly test: FabricPattern;
}

export const isFabricPattern = (test: unknown): test is FabricPattern =>
  fabricPatterns.some((pattern) => pattern === test);

/**
 * Checks each field; the result has them in canonical order.
 * @throws ConfigurationError naming field, value and the accepted values; for an unknown field it suggests the nearest
 */
export function checkedFabricWorkload(given: Readonly<Record<string, unknown>>): FabricWorkload {
  const { test, ...fields } = given;
  if (!isFabricPattern(test))
    throw new ConfigurationError('test', test, `one of ${fabricPatterns.join(', ')}`);
  for (const name of Object.keys(fields))
    if (!Object.hasOwn(fabricFields, name))
      throw new ConfigurationError(
        `field of ${test}`,
        name,
        `one of ${fabricFieldNames.join(', ')}${hintFor(name, fabricFieldNames)}`,
      );
  const values: Partial<Record<FabricFieldName, FieldValue>> = {};
  for (const name of fabricFieldNames) {
    const member = fields[name];
    if (member !== undefined) values[name] = checkedField(name, fabricFields[name], member);
  }
  return { test, ...values } as FabricWorkload;
}

/** The canonical text of a workload. */
export function fabricText(workload: FabricWorkload): string {
  const words = fabricFieldNames.flatMap((name) => {
    const value = workload[name];
    return value === undefined ? [] : [`${name}=${fieldText(fabricFields[name], value)}`];
  });
  return [workload.test, ...words].join(',');
}

/**
 * The programs' arguments.
 * @param fabricHosts hosts of the topology
 * @throws ConfigurationError for more hosts than the topology has, and for fields that the pattern has not
 */
export function fabricArgsOf(workload: FabricWorkload, fabricHosts: number): FabricArgs {
  const { test: pattern, size, messages, window, qps, verb, algorithm, sl, victimSl } = workload;
  const { hosts = fabricHosts } = workload;
  if (hosts > fabricHosts)
    throw new ConfigurationError('hosts', hosts, `at most those of the topology, ${fabricHosts}`);
  checkFields(workload);
  return {
    pattern,
    verb: verb ?? fabricDefaults.verb,
    hostCount: hosts,
    sizeBytes: size ?? fabricDefaults.sizeBytes,
    messages: messages ?? fabricDefaults.messages,
    window: window ?? fabricDefaults.window,
    ...(qps === undefined ? {} : { qpCount: qps }),
    ...(pattern === 'all-reduce' ? { algorithm: algorithm ?? 'ring' } : {}),
    ...(sl === undefined ? {} : { serviceLevel: sl }),
    ...(victimSl === undefined ? {} : { victimLevel: victimSl }),
  };
}

function checkFields({ test, algorithm, window, qps, verb, sl, victimSl, size = 4 }: FabricWorkload): void {
  if (victimSl !== undefined && test !== 'victim')
    throw new ConfigurationError('victimSl', victimSl, `left out for ${test}`);
  if (test !== 'all-reduce') {
    if (algorithm !== undefined) throw new ConfigurationError('algorithm', algorithm, `left out for ${test}`);
    return;
  }
  for (const [name, value] of Object.entries({ window, qps, verb, sl }))
    if (value !== undefined)
      throw new ConfigurationError(name, value, 'left out for an all-reduce, which sends messages in steps');
  if (size % 4 !== 0)
    throw new ConfigurationError('size', size, 'a multiple of 4: an all-reduce adds 32-bit integers');
}
