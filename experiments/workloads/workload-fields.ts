/**
 * A field of a workload: its kinds, its values, and their texts. Each kind of test declares its fields once, and
 * `test-kinds.ts` joins them: the options of `hca perf`, workloads as text and as JSON, and their JSON Schema follow
 * from that table, in its order.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { workloadFields } from './test-kinds.ts';

/** Properties of every field. */
export interface FieldWords {
  /** Text for the option's help. */
  readonly meaning: string;
  /** perftest's letter. */
  readonly letter?: string;
}

/** An integer. As text decimal or 0x, with optional K, M or G, or Ki, Mi, Gi: powers of 1024; for a rate k, M, G: of 1000. */
export interface IntegerField extends FieldWords {
  readonly kind: 'integer';
  readonly unit: 'bytes' | 'n' | 'msg/s';
  readonly min: number;
  readonly max: number;
}

export interface ChoiceField<Choice extends string | number = string | number> extends FieldWords {
  readonly kind: 'choice';
  /** Placeholder of the value in the option's help. */
  readonly unit: string;
  readonly choices: readonly Choice[];
}

export interface FlagField extends FieldWords {
  readonly kind: 'flag';
}

/** Words with a form of their own. */
export interface TextField extends FieldWords {
  readonly kind: 'text';
  readonly unit: string;
  /** A regular expression for the whole text. */
  readonly form: string;
  /** The same in words. */
  readonly accepted: string;
}

export type WorkloadField = IntegerField | ChoiceField | FlagField | TextField;

/** Every field except the test. */
export type WorkloadFieldName = keyof typeof workloadFields;

/** Value of a field. */
export type ValueOfField<Field> =
  Field extends ChoiceField<infer Choice>
    ? Choice
    : Field extends FlagField
      ? boolean
      : Field extends TextField
        ? string
        : number;

/** Values of the fields; an omitted field has its default. */
export type WorkloadValues = {
  readonly [Name in WorkloadFieldName]?: ValueOfField<(typeof workloadFields)[Name]>;
};

export type FieldValue = number | string | boolean;

/** The accepted values of a field, in words. */
export function acceptedBy(field: WorkloadField): string {
  if (field.kind === 'flag') return 'true or false';
  if (field.kind === 'choice') return `one of ${field.choices.join(', ')}`;
  if (field.kind === 'text') return field.accepted;
  return `an integer from ${field.min} to ${field.max}`;
}

/**
 * Checks a JSON value.
 * @throws ConfigurationError under this name
 */
export function checkedField(name: string, field: WorkloadField, value: unknown): FieldValue {
  if (isValueOf(field, value)) return value;
  throw new ConfigurationError(name, value, acceptedBy(field));
}

function isValueOf(field: WorkloadField, value: unknown): value is FieldValue {
  if (field.kind === 'flag') return typeof value === 'boolean';
  if (field.kind === 'choice') return field.choices.some((candidate) => candidate === value);
  if (field.kind === 'text') return typeof value === 'string' && new RegExp(`^${field.form}$`).test(value);
  return Number.isSafeInteger(value) && (value as number) >= field.min && (value as number) <= field.max;
}

/**
 * Parses text to a value.
 * @throws ConfigurationError under this name
 */
export function parsedField(name: string, field: WorkloadField, text: string): FieldValue {
  return checkedField(name, field, meantBy(field, text) ?? text);
}

function meantBy(field: WorkloadField, text: string): FieldValue | undefined {
  if (field.kind === 'flag') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (field.kind === 'choice') return field.choices.find((candidate) => String(candidate) === text);
  if (field.kind === 'text') return text;
  return field.unit === 'msg/s' ? parsedRate(text) : parsedInteger(text);
}

const powers = ['', 'K', 'M', 'G'] as const;

/** Parses an integer as users write it: decimal or 0x, with optional K, M or G, or Ki, Mi, Gi, for powers of 1024. */
export function parsedInteger(text: string): number | undefined {
  const match = /^(0x[0-9a-f]+|\d+)(?:([KMG])i?)?$/i.exec(text);
  if (match === null) return;
  return Number(match[1]) * 1024 ** powers.indexOf((match[2] ?? '').toUpperCase() as 'K');
}

/** Parses a rate as users write it: with optional k, M or G for powers of 1000. */
function parsedRate(text: string): number | undefined {
  const match = /^(\d+)([KMG])?$/i.exec(text);
  if (match === null) return;
  return Number(match[1]) * 1000 ** powers.indexOf((match[2] ?? '').toUpperCase() as 'K');
}

/** The canonical text of a value: bytes in the largest power of 1024 that leaves an integer. */
export function fieldText(field: WorkloadField, value: FieldValue): string {
  if (field.kind !== 'integer' || field.unit !== 'bytes' || value === 0) return String(value);
  let [rest, power] = [value as number, 0];
  for (; power < 3 && rest % 1024 === 0; power++) rest /= 1024;
  return power === 0 ? String(rest) : `${rest}${powers[power]}i`;
}
