/**
 * The fields of a workload, declared once. The options of `hca perf`, workloads as text and as JSON, and their JSON
 * Schema follow from this table, in its order.
 */
import { ConfigurationError } from '../../base/index.ts';
import { inlineMaxOf } from './inline-limits.ts';
import { kvDefaults } from './kv-plan.ts';
import { arrivalKinds, loadDefaults } from './offered-load.ts';
import { strideDefaultBytes } from './perf-places.ts';
import { perfConnections, perfDefaults, perfPatterns } from './perf-plan.ts';

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

const bytes = (letter: string | undefined, min: number, max: number, meaning: string): IntegerField => ({
  kind: 'integer',
  unit: 'bytes',
  min,
  max,
  meaning,
  ...(letter === undefined ? {} : { letter }),
});

const count = (letter: string | undefined, min: number, max: number, meaning: string): IntegerField => ({
  ...bytes(letter, min, max, meaning),
  unit: 'n',
});

const flag = (letter: string | undefined, meaning: string): FlagField => ({
  kind: 'flag',
  meaning,
  ...(letter === undefined ? {} : { letter }),
});

const choice = <const Choice extends string | number>(
  letter: string | undefined,
  unit: string,
  choices: readonly Choice[],
  meaning: string,
): ChoiceField<Choice> => ({
  kind: 'choice',
  unit,
  choices,
  meaning,
  ...(letter === undefined ? {} : { letter }),
});

const number = '[1-9]\\d{0,9}';

/** Every field except the test, in canonical order. */
export const workloadFields = {
  size: bytes('s', 1, 2 ** 30, 'bytes of a message (default as perftest)'),
  iters: count('n', 1, 1e8, 'messages of a QP (default 1000 or 5000; fewer of large ones)'),
  qps: count('q', 1, 16_384, 'QPs of a bandwidth test, over all threads (default one each)'),
  threads: count(undefined, 1, 64, 'programs of each side, each on a core of its own (default 1)'),
  connection: choice('c', 'type', perfConnections, 'transport service of the QPs (default RC)'),
  txDepth: count('t', 1, 16_000, `depth of the send queue (default ${perfDefaults.txDepth})`),
  rxDepth: count('r', 1, 16_000, `depth of the receive queue (default ${perfDefaults.rxDepth})`),
  useSrq: flag(undefined, 'the QPs of a program take their receives from one queue of --rx-depth'),
  inline: bytes(
    'I',
    0,
    inlineMaxOf(),
    `messages up to this many bytes are sent inline (WRITE: up to ${inlineMaxOf('RC', 'write')}, UD: ${inlineMaxOf('UD')})`,
  ),
  blueflame: choice(
    undefined,
    'how',
    ['on', 'off'],
    'short requests go by BlueFlame, or by a doorbell (default on)',
  ),
  postList: count('l', 1, 1024, 'requests posted in one call, with one doorbell (default 1)'),
  events: flag('e', 'sleep until a completion event instead of polling'),
  cqMod: count(
    'Q',
    1,
    16_000,
    `one completion for this many messages (default ${perfDefaults.cqModeration})`,
  ),
  moderation: {
    kind: 'text',
    unit: 'n:usec',
    form: '\\d{1,5}:\\d{1,5}',
    accepted: 'completions and microseconds up to 65535, such as 16:10',
    meaning:
      'with --events, one event for this many completions or after this many microseconds, such as 16:10',
  },
  mtu: choice('m', 'bytes', [256, 512, 1024, 2048, 4096], "path MTU (default: the port's)"),
  gidIndex: count('x', 0, 127, "place of the port's GID from which packets go; a GRH on InfiniBand"),
  trafficClass: count(undefined, 0, 255, 'traffic class of the GRH or IP header; a GRH on InfiniBand'),
  region: bytes(
    undefined,
    1,
    2 ** 38,
    'memory of each side that messages walk through (default: all have one place)',
  ),
  pattern: choice(
    undefined,
    'how',
    perfPatterns,
    'how they do: place by place, any, some more often, or so far apart (default sequential)',
  ),
  stride: bytes(
    undefined,
    1,
    2 ** 38,
    `from one message to the next, of the pattern stride (default ${strideDefaultBytes})`,
  ),
  keys: count(undefined, 1, 65_536, 'memory regions in which --region is registered (default 1)'),
  fixedLocal: flag(undefined, 'only the places at the other host vary, not those of the local buffer'),
  pageSize: choice(undefined, 'size', ['4K', '2M'], 'pages of --region (default 4K)'),
  bidirectional: flag('b', 'both sides send; rates are of both directions together'),
  echo: flag(undefined, 'the server answers each message with one like it; rates are of answered ones'),
  sizes: {
    kind: 'text',
    unit: 'list',
    form: `${number}:${number}(,${number}:${number})*`,
    accepted: 'lengths with their weights, such as 64:90,4096:10',
    meaning: 'draw the length of each message, by weight: 64:90,4096:10',
  },
  warmup: count(
    undefined,
    1,
    1e8,
    'messages of a QP before the measured ones: rates and counters are from then on',
  ),
  rate: {
    ...count(
      undefined,
      1,
      1e9,
      'offered load in messages a second, whether or not earlier ones have completed: 10k, 1M (default: as fast as they complete)',
    ),
    unit: 'msg/s',
  },
  arrivals: choice(
    undefined,
    'how',
    arrivalKinds,
    `with --rate, at random times or at even distances (default ${loadDefaults.arrivals})`,
  ),
  backlog: count(
    undefined,
    1,
    2 ** 20,
    `with --rate, messages of a program that may wait to be posted; more are dropped and counted (default ${loadDefaults.backlog})`,
  ),
  onDemand: flag(undefined, 'the buffer is registered on demand instead of pinned'),
  servers: count(
    undefined,
    1,
    64,
    `of kv-rpc: threads of the server, each with its part of the items (default ${kvDefaults.servers})`,
  ),
  window: count(
    undefined,
    1,
    1024,
    `of kv-rpc: requests of a client without an answer (default ${kvDefaults.window})`,
  ),
  keySize: bytes(undefined, 8, 128, `of kv-rpc: bytes of a key (default ${kvDefaults.keyBytes})`),
  valueSize: bytes(undefined, 8, 4096, `of kv-rpc: bytes of a value (default ${kvDefaults.valueBytes})`),
  items: count(undefined, 1, 2 ** 20, `of kv-rpc: items of the store (default ${kvDefaults.items})`),
  gets: count(
    undefined,
    0,
    100,
    `of kv-rpc: GETs among 100 requests, the others are PUTs (default ${kvDefaults.getPercent})`,
  ),
  lookup: count(
    undefined,
    0,
    1e6,
    `of kv-rpc: cycles that the store itself spends on a request (default ${kvDefaults.lookupCycles}, estimate)`,
  ),
} satisfies Readonly<Record<string, WorkloadField>>;

export type WorkloadFieldName = keyof typeof workloadFields;
export const workloadFieldNames = Object.keys(workloadFields) as readonly WorkloadFieldName[];

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
