/**
 * Typed errors for misuse of the simulator itself, and the checks that raise them.
 *
 * The device never throws at its user (docs: architecture, decision 8): it answers any write of software as hardware would.
 * These errors are for people who build or configure the machine. Each names the field, its value, and the accepted range.
 */

/** Root of all errors this project throws: field, value, and accepted range. */
export class SimulatorError extends Error {
  override readonly name: string = 'SimulatorError';
  readonly field: string;
  readonly value: unknown;
  readonly range: string;

  constructor(field: string, value: unknown, range: string) {
    super(`${field} is ${describe(value)}, expected ${range}`);
    this.field = field;
    this.value = value;
    this.range = range;
  }
}

/** A configuration or an option that the simulator cannot accept. */
export class ConfigurationError extends SimulatorError {
  override readonly name = 'ConfigurationError';
}

/** A table (layout, register map, opcode list) that contradicts itself; thrown while the module loads. */
export class DeclarationError extends SimulatorError {
  override readonly name = 'DeclarationError';
}

/** A value that does not fit the field it is encoded into. */
export class FieldValueError extends SimulatorError {
  override readonly name = 'FieldValueError';
}

/** The model reached a state that it promised never to reach: a bug of the simulator, not of its user. */
export class InvariantError extends SimulatorError {
  override readonly name = 'InvariantError';
}

/** Throws an InvariantError unless `condition` holds; `claim` describes in words the condition that should hold. */
export function assertInvariant(condition: boolean, claim: string): asserts condition {
  if (!condition) throw new InvariantError(claim, false, 'true');
}

/** Checks that a configuration value is an integer in [minimum, maximum], and returns it. */
export function assertRange(field: string, value: number, minimum: number, maximum: number): number {
  if (!Number.isSafeInteger(value) || value < minimum || value > maximum) {
    throw new ConfigurationError(field, value, `an integer from ${minimum} to ${maximum}`);
  }
  return value;
}

/** Checks that a configuration value is a finite number above zero, and returns it. */
export function assertPositive(field: string, value: number): number {
  if (!Number.isFinite(value) || value <= 0)
    throw new ConfigurationError(field, value, 'a number above zero');
  return value;
}

/** Checks that a configuration value is one of the listed ones, and returns it with their type. */
export function assertOneOf<T extends string | number>(
  field: string,
  value: string | number,
  allowed: readonly T[],
): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw new ConfigurationError(field, value, `one of ${allowed.join(', ')}`);
  return found;
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `0x${value.toString(16)}`;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return typeof value === 'object' && value !== null ? shortJson(value) : String(value);
}

const shortChars = 60;

/** A value as JSON for a message: cut if it is long, and described in words if it is nested too deep. */
export function shortJson(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > shortChars ? `${text.slice(0, shortChars)}…` : text;
  } catch {
    return Array.isArray(value) ? 'a list' : 'an object';
  }
}
