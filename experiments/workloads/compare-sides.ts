/** The two programs of a comparison (compare-transfer.ts), for a file's bytes or random ones. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { InvariantError } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { CompareArgs, Message, SideResult } from './compare-plan.ts';
import { type CompareBytes, comparedSide, fillRandomly } from './compare-transfer.ts';

/** The side of host 0, which has the bytes. */
export const compareSender = (program: ProgramContext<CompareArgs>): Promise<SideResult> =>
  compare(program, 0);
/** The side of host 1, which receives them. */
export const compareReceiver = (program: ProgramContext<CompareArgs>): Promise<SideResult> =>
  compare(program, 1);

async function compare(program: ProgramContext<CompareArgs>, node: 0 | 1): Promise<SideResult> {
  return comparedSide(program, node, ofFile);
}

const ofFile: CompareBytes = {
  fill(program, messages) {
    const { file } = program.args;
    if (file === null) fillRandomly(program, messages);
    else fillFromFile(program, messages, file);
  },
  digest(pieces) {
    const sha256 = createHash('sha256');
    for (const piece of pieces) sha256.update(piece);
    return sha256.digest('hex');
  },
};

/** @throws InvariantError if the file has become shorter */
function fillFromFile({ memory }: ProgramContext, messages: readonly Message[], file: string): void {
  const handle = openSync(file, 'r');
  try {
    let at = 0;
    for (const { address, lengthBytes } of messages) {
      const bytes = new Uint8Array(lengthBytes);
      if (readSync(handle, bytes, 0, lengthBytes, at) !== lengthBytes)
        throw new InvariantError('bytes of the file', at, 'as many as when the run began');
      memory.write(address, bytes);
      at += lengthBytes;
    }
  } finally {
    closeSync(handle);
  }
}
