/**
 * Drafts of workloads for a sweep: fields are checked one by one, because an axis may still change some of them. Each
 * point checks their combination.
 */
import { ConfigurationError, shortJson } from '../../base/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import {
  checkedField,
  checkedTest,
  checkedWorkload,
  type FieldValue,
  workloadFieldNames as namesOfTable,
  type PerfArgs,
  parsedField,
  parsedWorkload,
  perfArgsOf,
  perfTestNames,
  type WorkloadField,
  type WorkloadFieldName,
  workloadFields,
  workloadText,
} from '../workloads/index.ts';

/** Fields by name; each has a valid value. */
export type WorkloadDraft = Readonly<Record<string, FieldValue>>;

/** Every field that an axis may vary, the test first. */
export const workloadFieldNames: readonly string[] = ['test', ...namesOfTable];

export const isWorkloadField = (name: string): boolean => workloadFieldNames.includes(name);

/** Whether K, M and G are powers of 1000 in values of this axis. */
export function isRateField(name: string): boolean {
  const field: WorkloadField | undefined = workloadFields[name as WorkloadFieldName];
  return field?.kind === 'integer' && field.unit === 'msg/s';
}

/**
 * One value of a field, from JSON or text.
 * @throws ConfigurationError naming field, value and range
 */
export function checkedFieldValue(name: string, value: unknown): FieldValue {
  if (name === 'test') return checkedTest(value);
  const field: WorkloadField = workloadFields[name as WorkloadFieldName];
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

/**
 * The programs' arguments.
 * @throws ConfigurationError for contradictory fields
 */
export const perfArgsOfDraft = (draft: WorkloadDraft): PerfArgs => perfArgsOf(checkedWorkload(draft));

/** The canonical text of the workload, which is part of hashes. */
export const workloadTextOfDraft = (draft: WorkloadDraft): string => workloadText(checkedWorkload(draft));

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
    test: { description: 'The test, by its perftest name.', enum: perfTestNames },
    ...Object.fromEntries(Object.entries(workloadFields).map(([name, field]) => [name, schemaOf(field)])),
  },
} as const;
