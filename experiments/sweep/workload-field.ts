/**
 * Drafts of workloads for a sweep: fields are checked one by one, because an axis may still change some of them. Each
 * point checks their combination. The test is one of `perf`, or a pattern of traffic over a fabric.
 */
import { ConfigurationError, shortJson } from '../../base/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import {
  checkedFabricWorkload,
  checkedField,
  checkedTest,
  checkedWorkload,
  type FabricArgs,
  type FieldValue,
  fabricArgsOf,
  fabricFields,
  fabricPatterns,
  fabricText,
  isFabricPattern,
  type PerfArgs,
  parsedField,
  parsedWorkload,
  perfArgsOf,
  perfTestNames,
  type WorkloadField,
  workloadFields,
  workloadText,
} from '../workloads/index.ts';

/** Fields by name; each has a valid value. */
export type WorkloadDraft = Readonly<Record<string, FieldValue>>;

/** The fields of every test by name. A name in both tables accepts the same values. */
const fields: Readonly<Record<string, WorkloadField>> = { ...fabricFields, ...workloadFields };

/** Every field that an axis may vary, the test first. */
export const workloadFieldNames: readonly string[] = ['test', ...Object.keys(fields)];
const testNames: readonly string[] = [...perfTestNames, ...fabricPatterns];

export const isWorkloadField = (name: string): boolean => workloadFieldNames.includes(name);

/** Whether K, M and G are powers of 1000 in values of this axis. */
export function isRateField(name: string): boolean {
  const field = fields[name];
  return field?.kind === 'integer' && field.unit === 'msg/s';
}

/**
 * One value of a field, from JSON or text.
 * @throws ConfigurationError naming field, value and range
 */
export function checkedFieldValue(name: string, value: unknown): FieldValue {
  if (name === 'test') return isFabricPattern(value) ? value : checkedTest(value, testNames);
  const field = fields[name]!;
  if (typeof value === 'string') return parsedField(name, field, value);
  return checkedField(name, field, value);
}

/**
 * A draft from a text such as `write-bw,size=64`, or from fields.
 * @throws ConfigurationError naming the error in a field
 */
export function checkedDraft(value: unknown): WorkloadDraft {
  const given = typeof value === 'string' ? fieldsOfText(value) : value;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new ConfigurationError('workload', shortJson(value), 'a text such as write-bw,size=64, or fields');
  return Object.fromEntries(
    Object.entries(given).map(([name, member]) => {
      if (isWorkloadField(name)) return [name, checkedFieldValue(name, member)];
      const hint = hintFor(name, workloadFieldNames);
      throw new ConfigurationError('workload field', name, `one of ${workloadFieldNames.join(', ')}${hint}`);
    }),
  );
}

/** A text that is a complete workload is parsed as one; else its fields are used as they are, because an axis may complete it. */
function fieldsOfText(text: string): object {
  try {
    return parsedWorkload(text);
  } catch {
    return looseFieldsOf(text);
  }
}

function looseFieldsOf(text: string): Record<string, string> {
  const [test = '', ...parts] = text.split(',').map((part) => part.trim());
  const fields: Record<string, string> = { test };
  let last = 'test';
  for (const part of parts) {
    const at = part.indexOf('=');
    if (at < 0 && last !== 'test' && /^\d/.test(part)) {
      // A list continues after its comma.
      fields[last] += `,${part}`;
      continue;
    }
    last = at < 0 ? part : part.slice(0, at).trim();
    if (Object.hasOwn(fields, last)) throw new ConfigurationError(last, part, 'given once');
    fields[last] = at < 0 ? 'true' : part.slice(at + 1).trim();
  }
  return fields;
}

/** The task of a point's programs. */
export type PointArgs = PerfArgs | FabricArgs;

export const isFabric = (args: PointArgs): args is FabricArgs => 'hostCount' in args;

/** Whether the draft is of traffic over a fabric. */
export const isFabricDraft = ({ test }: WorkloadDraft): boolean => isFabricPattern(test);

/**
 * The programs' arguments.
 * @param racks hosts of the topology, those at one switch together
 * @throws ConfigurationError for contradictory fields
 */
export const argsOfDraft = (draft: WorkloadDraft, racks: readonly (readonly number[])[]): PointArgs =>
  isFabricDraft(draft)
    ? fabricArgsOf(checkedFabricWorkload(draft), racks)
    : perfArgsOf(checkedWorkload(draft));

/** The canonical text of the workload, which is part of hashes. */
export const workloadTextOfDraft = (draft: WorkloadDraft): string =>
  isFabricDraft(draft) ? fabricText(checkedFabricWorkload(draft)) : workloadText(checkedWorkload(draft));

/** A field of the table as JSON Schema; text is parsed as on the command line. */
function schemaOf(field: WorkloadField): object {
  const description = field.meaning;
  if (field.kind === 'flag') return { description, type: 'boolean' };
  if (field.kind === 'choice') return { description, enum: field.choices };
  if (!('min' in field)) return { description, type: 'string' };
  const { min: minimum, max: maximum } = field;
  return { description, anyOf: [{ type: 'integer', minimum, maximum }, { type: 'string' }] };
}

/** The JSON Schema of a draft. */
export const workloadJsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    test: {
      description: 'The test, by its perftest name, or the pattern of traffic over a fabric.',
      enum: testNames,
    },
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, schemaOf(field)])),
  },
} as const;
