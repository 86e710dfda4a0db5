/**
 * The steps of which commands consist. A command is a generator: it yields its next need (a DMA read or write, cycles,
 * a condition), and the command processor resumes it when that is met, so a command reads from top to bottom.
 *
 *     function* queryEq(device, request) {
 *       const context = contextOf(device, liveQueue(device, request.inputModifier));
 *       yield* write(addressOf(request), context);
 *     }
 *
 * A command that finds something illegal calls {@link reject} before it has changed anything; the processor turns that
 * into the command's status.
 */

/** A posted command. Each card gives the modifiers and the two 64-bit parameters a meaning of its own. */
export interface CommandRequest {
  readonly opcode: number;
  readonly opcodeModifier: number;
  readonly inputModifier: number;
  readonly inParamHigh: number;
  readonly inParamLow: number;
  readonly outParamHigh: number;
  readonly outParamLow: number;
  readonly token: number;
  /** Completion by an event instead of in the source. */
  readonly byEvent: boolean;
}

/** 64 bits that a command returns. */
export interface OutImmediate {
  readonly high: number;
  readonly low: number;
}

export type CommandStep =
  | { readonly kind: 'read'; readonly address: number; readonly lengthBytes: number }
  | { readonly kind: 'write'; readonly address: number; readonly bytes: Uint8Array }
  /** Writes copies of a pattern of the card: see CommandDma. */
  | {
      readonly kind: 'fill';
      readonly address: number;
      readonly lengthBytes: number;
      readonly pattern: number;
    }
  | { readonly kind: 'wait'; readonly cycles: number }
  | { readonly kind: 'until'; readonly isTrue: () => boolean };

/** A piece of a command; only `read` steps return something. */
export type Steps<T> = Generator<CommandStep, T, Uint8Array>;

/** Ends a command with a status other than 0. Caught by the command processor alone. */
export class CommandRejection {
  readonly status: number;
  constructor(status: number) {
    this.status = status;
  }
}

export function reject(status: number): never {
  throw new CommandRejection(status);
}

/** Rejects unless `condition` holds. */
export function demand(condition: boolean, status: number): asserts condition {
  if (!condition) reject(status);
}

/** Reads host memory; the result is the command's own copy. */
export function* read(address: number, lengthBytes: number): Steps<Uint8Array> {
  return yield { kind: 'read', address, lengthBytes };
}

/** Writes host memory; returns when the write has left towards the host. `bytes` must not change until then. */
export function* write(address: number, bytes: Uint8Array): Steps<void> {
  yield { kind: 'write', address, bytes };
}

/** Fills host memory with copies of a pattern, by its number among the card's. */
export function* fill(address: number, lengthBytes: number, pattern: number): Steps<void> {
  if (lengthBytes > 0) yield { kind: 'fill', address, lengthBytes, pattern };
}

/** Spends cycles. */
export function* wait(cycles: number): Steps<void> {
  yield { kind: 'wait', cycles };
}

/** Waits until the rest of the device has reached a state. */
export function* until(isTrue: () => boolean): Steps<void> {
  yield { kind: 'until', isTrue };
}
