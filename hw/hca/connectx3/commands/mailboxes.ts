/** Parameters and mailboxes of a command: 4 KiB of host memory that its 64-bit parameters point to. Source: interface sheet 3.1. */
import { CommandStatus, mailboxBytes } from '../../../../abi/index.ts';
import { joinWords } from '../../../../base/index.ts';
import { type CommandRequest, demand, read, type Steps, write } from '../../commands/index.ts';

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
