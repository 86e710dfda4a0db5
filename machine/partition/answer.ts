/** A worker's answer to a call: a value, or an error as plain data that keeps its type in the receiving thread. */
import { ConfigurationError, InvariantError, textOfThrown } from '../../base/index.ts';
import { ProgramFailedError } from '../../host/index.ts';
import {
  DeadlockError,
  ProcessFailedError,
  type ProcessInstant,
  RunAbortedError,
  WorkerLostError,
} from '../../sim/index.ts';

export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  /** Own fields of the error that can be sent. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type Answer = { readonly value: unknown } | { readonly error: ErrorRecord };

export function errorRecordOf(thrown: unknown): ErrorRecord {
  try {
    if (thrown instanceof Error) {
      const plain = Object.entries(thrown).filter(([, value]) => isPlain(value));
      return {
        name: String(thrown.name),
        message: String(thrown.message),
        fields: Object.fromEntries(plain),
      };
    }
  } catch {
    // A value that cannot be inspected still has a text.
  }
  return { name: 'Error', message: textOfThrown(thrown), fields: {} };
}

/** The error that a record describes, with its type if it is one of this project's. */
export function errorOf({ name, message, fields }: ErrorRecord): Error {
  const text = (field: string): string => String(fields[field]);
  const { instantPs: instant, waiting, value } = fields;
  const instantPs = typeof instant === 'bigint' ? instant : Number(instant);
  switch (name) {
    case 'ProcessFailedError':
      return new ProcessFailedError(text('processName'), instantPs, text('reason'));
    case 'ProgramFailedError':
      return new ProgramFailedError(text('programName'), instantPs, message.replace(/^program .*? ps: /, ''));
    case 'WorkerLostError':
      return new WorkerLostError(text('processName'), instantPs, message.slice(message.indexOf(' ps: ') + 5));
    case 'DeadlockError':
      return new DeadlockError(
        waiting as readonly ProcessInstant[],
        message.split(', but programs')[0],
        fields['programs'] as readonly string[],
      );
    case 'RunAbortedError':
      return new RunAbortedError(message);
    case 'ConfigurationError':
      return new ConfigurationError(text('field'), value, text('range'));
    case 'InvariantError':
      return new InvariantError(text('field'), value, text('range'));
    default:
      return Object.assign(new Error(message), { name });
  }
}

function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPlain);
  if (typeof value === 'object' && value !== null)
    return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
  return typeof value !== 'function' && typeof value !== 'symbol';
}
