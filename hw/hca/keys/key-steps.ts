/**
 * The steps of which operations on memory keys consist. An operation is a generator: it yields its next access to host
 * memory, and the key unit resumes it when that is done, so an operation reads from top to bottom and ends with the
 * syndrome of its work request.
 */
import { CqeSyndrome } from '../../../abi/index.ts';
import { type BusAddress, pageBytes } from '../../../base/index.ts';

type KeyStep =
  | { readonly kind: 'read'; readonly address: BusAddress; readonly lengthBytes: number }
  | { readonly kind: 'write'; readonly address: BusAddress; readonly bytes: Uint8Array }
  /** Waits until no access in flight can reach memory by a translation that was dropped. */
  | { readonly kind: 'fence' };

/** A piece of an operation; only `read` steps return something: the bytes, or none when they could not be read. */
export type KeySteps<T> = Generator<KeyStep, T, Uint8Array | undefined>;

/** Most bytes of one read or write: a page of the host. */
export const KEY_STEP_BYTES_MAX = pageBytes;

/** Reads host memory. Undefined: the host does not answer for it. */
export function* read(address: BusAddress, lengthBytes: number): KeySteps<Uint8Array | undefined> {
  return yield { kind: 'read', address, lengthBytes };
}

/** Writes host memory; returns when the write has been handed to the link, which no later read can overtake. */
export function* write(address: BusAddress, bytes: Uint8Array): KeySteps<void> {
  yield { kind: 'write', address, bytes };
}

export function* fence(): KeySteps<void> {
  yield { kind: 'fence' };
}

/** Ends an operation with a syndrome. Caught by the key unit alone. */
export class KeyRefusal {
  readonly syndrome: number;
  constructor(syndrome: number) {
    this.syndrome = syndrome;
  }
}

/** Refuses the operation unless `condition` holds: a memory management operation error, if no other (IBTA vol 1, 11.6.2). */
export function demand(condition: boolean, syndrome: number = CqeSyndrome.MW_BIND_ERR): asserts condition {
  if (!condition) throw new KeyRefusal(syndrome);
}
