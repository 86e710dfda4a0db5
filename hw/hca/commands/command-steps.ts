/**
 * The words a command is written in. A command is a generator: it yields what it needs (a DMA read or write, cycles,
 * a condition) and the command processor resumes it when that has happened, so a command reads from top to bottom.
 *
 *     function* queryEq(device, request) {
 *       const context = device.eqs.contextOf(liveEq(device, request.inputModifier));
 *       yield* writeOutBox(device, request, context);
 *     }
 *
 * A command that finds something illegal calls {@link reject} before it has changed anything; the processor turns that
 * into the command's status. Sources: interface sheet 3.1, 3.2.
 */
import { CommandStatus, mailboxBytes } from '../../../abi/index.ts';
import { joinWords } from '../../../base/index.ts';

/** The command as latched from the HCR. */
export interface CommandRequest {
  readonly opcode: number;
  readonly opcodeModifier: number;
  readonly inputModifier: number;
  readonly inParamHigh: number;
  readonly inParamLow: number;
  readonly outParamHigh: number;
  readonly outParamLow: number;
  readonly token: number;
  /** E bit: completion by an EQE instead of in the HCR. */
  readonly byEvent: boolean;
}

/** 64 bits returned in out_param. */
export interface OutImmediate {
  readonly high: number;
  readonly low: number;
}

export type CommandStep =
  | { readonly kind: 'read'; readonly address: number; readonly lengthBytes: number }
  | { readonly kind: 'write'; readonly address: number; readonly bytes: Uint8Array }
  /** Writes queue entries of 32 bytes, all zero but the owner bit. */
  | {
      readonly kind: 'fill';
      readonly address: number;
      readonly lengthBytes: number;
      readonly ownerBit: number;
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

/** Fills part of a queue buffer with empty entries of 32 bytes whose owner bit is `ownerBit`. */
export function* fillEntries(address: number, lengthBytes: number, ownerBit: number): Steps<void> {
  if (lengthBytes > 0) yield { kind: 'fill', address, lengthBytes, ownerBit };
}

/** Spends cycles. */
export function* wait(cycles: number): Steps<void> {
  yield { kind: 'wait', cycles };
}

/** Waits until the rest of the device has come to a state. */
export function* until(isTrue: () => boolean): Steps<void> {
  yield { kind: 'until', isTrue };
}

export const inParamOf = (request: CommandRequest): number =>
  joinWords(request.inParamHigh, request.inParamLow);
export const outParamOf = (request: CommandRequest): number =>
  joinWords(request.outParamHigh, request.outParamLow);

/** Reads the first `lengthBytes` of the command's in box. A box that is not 4 KiB aligned is refused. */
export function* readInBox(request: CommandRequest, lengthBytes: number): Steps<Uint8Array> {
  const address = inParamOf(request);
  demand(address % mailboxBytes === 0, CommandStatus.BAD_PARAM);
  return yield* read(address, lengthBytes);
}

/** Fills the command's out box; only the documented length is written. */
export function* writeOutBox(request: CommandRequest, bytes: Uint8Array): Steps<void> {
  const address = outParamOf(request);
  demand(address % mailboxBytes === 0, CommandStatus.BAD_PARAM);
  yield* write(address, bytes);
}
