/**
 * Received packets whose payload is still read where it lies after they were given back: the room of their records in the
 * ring of the channel stays theirs until the loans made before are settled. Credits and books are not concerned.
 *
 * What is lent lies before everything taken since, in a ring of which the other end counts on its share. Before that is
 * touched, the loans are called in.
 */
import type { ChannelReader } from '../sim/channel.ts';
import { Fifo } from '../sim/fifo.ts';

/** The slice of hw/pcie/payload-loans.ts that the owner of lent memory uses. */
export interface RecordLoans {
  /** Numbers of the last loan made, and of the last one settled: loans are settled in the order made. */
  readonly lentCount: number;
  readonly settledCount: number;
  /** From now on nobody reads what is lent: all loans made so far are settled. */
  callIn(): void;
}

const RECORD_BYTES_MIN = 64;

export class LentRecords {
  readonly #reader: ChannelReader;
  readonly #loans: RecordLoans;
  readonly #takenBytesMax: number;
  /** Records given back, each visible at the count of loans settled that releases it; as many as the ring has room for. */
  readonly #held: Fifo;

  /** @param takenBytesMax room in the ring that records taken may have, and still leave the other end its share */
  constructor(reader: ChannelReader, loans: RecordLoans, takenBytesMax: number) {
    this.#reader = reader;
    this.#loans = loans;
    this.#takenBytesMax = takenBytesMax;
    this.#held = new Fifo({
      name: 'records lent',
      capacity: reader.bytes.length / RECORD_BYTES_MIN,
      whenFull: 'never: the channel holds no more records',
    });
  }

  /** Records held. */
  get heldCount(): number {
    return this.#held.count;
  }

  /** Releases a record when all loans made so far are settled, and those held for loans that are. */
  release(offset: number): void {
    const { lentCount, settledCount } = this.#loans;
    this.#releaseHeld(settledCount);
    if (lentCount === settledCount) this.#reader.release(offset);
    else this.#held.push(offset, lentCount);
  }

  /** Sees to it that the other end has its share of the ring. */
  makeRoom(): void {
    if (this.#reader.takenBytes <= this.#takenBytesMax || this.#held.isEmpty) return;
    this.#releaseHeld(this.#loans.settledCount);
    if (this.#reader.takenBytes <= this.#takenBytesMax) return;
    this.#loans.callIn();
    this.#releaseHeld(this.#loans.settledCount);
  }

  #releaseHeld(settledCount: number): void {
    while (this.#held.headCycle <= settledCount) this.#reader.release(this.#held.pop());
  }
}
