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
  fabricConnections,
  fabricDefaults,
  fabricPatterns,
  fabricVerbs,
} from './fabric-plan.ts';
import { placements, serversAt } from './server-placement.ts';
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
    meaning: 'QPs of a flow, to which its messages go in turn; over UD those of a host (default 1)',
  },
  verb: {
    kind: 'choice',
    unit: 'verb',
    choices: fabricVerbs,
    meaning: 'who moves the data: the sender by WRITE or SEND, or the receiver by READ',
  },
  connection: {
    kind: 'choice',
    unit: 'type',
    choices: fabricConnections,
    meaning: 'transport of SENDs (default RC)',
  },
  useSrq: {
    kind: 'flag',
    meaning: 'the RC QPs of a host take the receives of SENDs from one queue',
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
  servers: {
    kind: 'integer',
    unit: 'n',
    min: 1,
    max: 128,
    meaning: 'parameter servers, each with an equal part of a vector (default 1)',
  },
  placement: {
    kind: 'choice',
    unit: 'where',
    choices: placements,
    meaning:
      'hosts of the parameter servers: the last ones, the last of each rack in turn, or all, workers too (default packed)',
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
 * @param racks hosts of the topology, those at one switch together
 * @throws ConfigurationError for more hosts than the topology has, and for fields that the pattern has not
 */
export function fabricArgsOf(workload: FabricWorkload, racks: readonly (readonly number[])[]): FabricArgs {
  const { test: pattern, size, messages, window, qps, verb, algorithm, sl, victimSl } = workload;
  const fabricHosts = racks.flat().length;
  const { hosts = fabricHosts } = workload;
  if (hosts > fabricHosts)
    throw new ConfigurationError('hosts', hosts, `at most those of the topology, ${fabricHosts}`);
  checkFields(workload);
  if (pattern === 'parameter-server') return serverArgsOf(workload, racks, hosts);
  return {
    pattern,
    verb: verb ?? fabricDefaults.verb,
    hostCount: hosts,
    sizeBytes: size ?? fabricDefaults.sizeBytes,
    messages: messages ?? fabricDefaults.messages,
    window: window ?? fabricDefaults.window,
    ...(qps === undefined ? {} : { qpCount: qps }),
    ...(workload.connection === undefined ? {} : { connection: workload.connection }),
    ...(workload.useSrq === true ? { usesSrq: true } : {}),
    ...(pattern === 'all-reduce' ? { algorithm: algorithm ?? 'ring' } : {}),
    ...(sl === undefined ? {} : { serviceLevel: sl }),
    ...(victimSl === undefined ? {} : { victimLevel: victimSl }),
  };
}

/** Arguments of rounds with parameter servers. @throws ConfigurationError for servers without workers, or a vector that they cannot share */
function serverArgsOf(
  {
    size = fabricDefaults.sizeBytes,
    messages = fabricDefaults.messages,
    servers,
    placement,
    sl,
  }: FabricWorkload,
  racks: readonly (readonly number[])[],
  hosts: number,
): FabricArgs {
  const part = racks.map((rack) => rack.filter((host) => host < hosts));
  const places = serversAt(part, placement ?? 'packed', servers);
  if (size % places.length !== 0)
    throw new ConfigurationError(
      'size',
      size,
      `a multiple of ${places.length}, the servers that share a vector`,
    );
  return {
    pattern: 'parameter-server',
    verb: 'write',
    hostCount: hosts,
    sizeBytes: size,
    messages,
    window: 1,
    servers: places,
    ...(sl === undefined ? {} : { serviceLevel: sl }),
  };
}

/** Fields that only some patterns have, and fields that a pattern has not. */
const ownFields = {
  algorithm: 'all-reduce',
  servers: 'parameter-server',
  placement: 'parameter-server',
} as const;
const lacking: Partial<Record<FabricPattern, readonly [fields: readonly FabricFieldName[], reason: string]>> =
  {
    'all-reduce': [
      ['window', 'qps', 'verb', 'connection', 'useSrq', 'sl'],
      'an all-reduce, which sends messages in steps',
    ],
    'parameter-server': [
      ['window', 'qps', 'verb', 'connection', 'useSrq'],
      'parameter servers: each worker WRITEs one message to each server, then READs one from each',
    ],
  };

function checkFields(workload: FabricWorkload): void {
  const { test, victimSl, size = 4 } = workload;
  if (victimSl !== undefined && test !== 'victim')
    throw new ConfigurationError('victimSl', victimSl, `left out for ${test}`);
  for (const name of ['algorithm', 'servers', 'placement'] as const)
    if (workload[name] !== undefined && test !== ownFields[name])
      throw new ConfigurationError(name, workload[name], `left out for ${test}`);
  checkTransport(workload);
  const [names, reason] = lacking[test] ?? [[], ''];
  for (const name of names)
    if (workload[name] !== undefined)
      throw new ConfigurationError(name, workload[name], `left out for ${reason}`);
  if (test === 'all-reduce' && size % 4 !== 0)
    throw new ConfigurationError('size', size, 'a multiple of 4: an all-reduce adds 32-bit integers');
}

/** @throws ConfigurationError for a transport that the messages cannot have */
function checkTransport({
  verb = fabricDefaults.verb,
  connection,
  useSrq,
  size,
  test,
}: FabricWorkload): void {
  if (test === 'all-reduce' || test === 'parameter-server') return;
  for (const [name, value] of Object.entries({ connection, useSrq }))
    if (value !== undefined && verb !== 'send')
      throw new ConfigurationError(name, value, `left out with verb ${verb}: only SENDs have it here`);
  if (useSrq === true && connection !== undefined && connection !== 'RC')
    throw new ConfigurationError(
      'useSrq',
      useSrq,
      `left out with connection ${connection}: ${connection === 'XRC' ? 'it has a shared queue always' : 'a datagram QP has its own queue'}`,
    );
  const bytes = size ?? fabricDefaults.sizeBytes;
  if (connection === 'UD' && bytes > mtuMaxBytes)
    throw new ConfigurationError('size', bytes, `at most the MTU, ${mtuMaxBytes}, with connection UD`);
}

/** Largest MTU of InfiniBand: IBTA vol 1, 4.2. */
const mtuMaxBytes = 4096;
