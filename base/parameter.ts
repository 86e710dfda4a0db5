/**
 * Parameters are declared once, each with its unit, default, range and source. The block's configuration type, the profile's
 * schema, `hca profiles` and the documentation are all derived from the declaration.
 */

export interface NumberParameter {
  readonly kind: 'number';
  readonly default: number;
  /** Unit as printed: `ps`, `ns`, `cycles`, `bytes`, `entries`, `MHz`, `count` … */
  readonly unit: string;
  readonly min: number;
  readonly max: number;
  /** Source of the default: a document with its section, a row of measurements.csv, or `estimate`. */
  readonly source: string;
  readonly doc: string;
  /** True if only powers of two are meaningful. */
  readonly powerOfTwo?: boolean;
}

export interface ChoiceParameter<Choice extends string = string> {
  readonly kind: 'choice';
  readonly default: Choice;
  readonly choices: readonly Choice[];
  readonly source: string;
  readonly doc: string;
}

export interface FlagParameter {
  readonly kind: 'flag';
  readonly default: boolean;
  readonly source: string;
  readonly doc: string;
}

export type Parameter = NumberParameter | ChoiceParameter | FlagParameter;

/** Parameters of one block by name. All numbers are integers. */
export type ParameterTable = Readonly<Record<string, Parameter>>;

/** The configuration object that a parameter table describes. */
export type ConfigOf<Table extends ParameterTable> = {
  readonly [Name in keyof Table]: Table[Name] extends ChoiceParameter<infer Choice>
    ? Choice
    : Table[Name] extends FlagParameter
      ? boolean
      : number;
};

/** Declares an integer parameter. */
export function number(
  defaultValue: number,
  unit: string,
  range: readonly [min: number, max: number],
  source: string,
  doc: string,
): NumberParameter {
  return { kind: 'number', default: defaultValue, unit, min: range[0], max: range[1], source, doc };
}

/** Declares an integer parameter that must be a power of two. */
export function powerOfTwo(
  defaultValue: number,
  unit: string,
  range: readonly [min: number, max: number],
  source: string,
  doc: string,
): NumberParameter {
  return { ...number(defaultValue, unit, range, source, doc), powerOfTwo: true };
}

/** Declares a parameter whose value is one of a few words. */
export function choice<const Choice extends string>(
  defaultValue: NoInfer<Choice>,
  choices: readonly Choice[],
  source: string,
  doc: string,
): ChoiceParameter<Choice> {
  return { kind: 'choice', default: defaultValue, choices, source, doc };
}

/** Declares a yes-or-no parameter. */
export function flag(defaultValue: boolean, source: string, doc: string): FlagParameter {
  return { kind: 'flag', default: defaultValue, source, doc };
}

/** The configuration in which every parameter has its default. */
export function defaultsOf<Table extends ParameterTable>(table: Table): ConfigOf<Table> {
  const entries = Object.entries(table).map(([name, parameter]) => [name, asInteger(parameter.default)]);
  return Object.fromEntries(entries) as ConfigOf<Table>;
}

/**
 * The same value, narrowed where 32 bits suffice (build/README.md). Defaults of parameters are Wide, since some need it; a
 * value computed from a configuration may be narrow.
 */
export function asInteger<Value>(value: Value): Value | number {
  if (typeof value !== 'number') return value;
  const integer = value | 0;
  return integer === value ? integer : value;
}
