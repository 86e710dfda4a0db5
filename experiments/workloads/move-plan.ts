/** Agreement between the sender and the receiver of `move`, and the result of each. */

/** Ways to move the file, in execution order. */
export const moveMethods = ['SEND', 'WRITE', 'READ'] as const;
export type MoveMethod = (typeof moveMethods)[number];

/** Arguments of both programs. */
export interface MoveArgs {
  /** Path of the file; only the sender opens it. */
  readonly file: string;
  readonly fileBytes: number;
  readonly chunkBytes: number;
  /** Chunks in flight at once, and slots of the rings on both sides. */
  readonly window: number;
  /** Increments of each of the two counters. */
  readonly atomicCount: number;
}

/** Bytes of chunk `index`: all have `chunkBytes` but the last. */
export const chunkLengthOf = ({ fileBytes, chunkBytes }: MoveArgs, index: number): number =>
  Math.min(chunkBytes, fileBytes - index * chunkBytes);

export const chunkCountOf = ({ fileBytes, chunkBytes }: MoveArgs): number =>
  Math.ceil(fileBytes / chunkBytes);

/** One way of moving the file, from the view of one side. */
export interface MoveLeg {
  readonly method: MoveMethod;
  readonly startPs: number;
  readonly endPs: number;
  readonly sha256: string;
}

export interface MoveSenderResult {
  readonly legs: readonly MoveLeg[];
  readonly atomics: { readonly startPs: number; readonly endPs: number; readonly compareRetries: number };
}

export interface MoveReceiverResult {
  readonly legs: readonly MoveLeg[];
  /** The two counters in the receiver's memory at the end. */
  readonly fetchAddTotal: number;
  readonly compareSwapTotal: number;
}

/** Data of the two rings, exchanged as the note of the connection. */
export interface RingNote {
  readonly ringAddress: number;
  readonly ringKey: number;
  readonly wordsAddress: number;
  readonly wordsKey: number;
}

/** Offsets in the page of words that each side exposes. */
export const wordOffsets = {
  /** Counts of chunks that the peer has made available and consumed; the peer writes them. */
  available: 0,
  consumed: 64,
  /** Counters of FETCH_ADD and CMP_SWAP. */
  fetchAdd: 128,
  compareSwap: 192,
  /** Destination of atomic results, and source of sent words. */
  result: 256,
  outgoing: 320,
} as const;
export const wordsBytes = 4096;
