/**
 * Received packets that were consumed while references to their payload are outstanding: their records stay in the ring of
 * the channel until those references are released. Credits and statistics are not affected.
 *
 * Referenced records precede all records taken later, in a ring of which the other end needs its share. Before that share is
 * used, a snapshot releases them.
 */
import { type ChannelReader, Fifo } from '../sim/index.ts';

/** The part of hw/pcie/link/payload-references.ts that the owner of the memory uses. */
export interface RecordReferences {
  /** Numbers of the last issued and of the last released reference: references are released in the order of issue. */
  readonly referenceCount: number;
  readonly releasedCount: number;
  /** Releases all references issued so far: the memory is not read any more. */
  snapshot(): void;
}

const RECORD_BYTES_MIN = 64;

export class ReferencedRecords {
  readonly #reader: ChannelReader;
  readonly #references: RecordReferences;
  readonly #takenBytesMax: number;
  /** Consumed records, each visible at the count of released references that frees it; as many as fit the ring. */
  readonly #held: Fifo;

  /** @param takenBytesMax room in the ring that taken records may occupy while leaving the other end its share */
  constructor(reader: ChannelReader, references: RecordReferences, takenBytesMax: number) {
    this.#reader = reader;
    this.#references = references;
    this.#takenBytesMax = takenBytesMax;
    this.#held = new Fifo({
      name: 'referenced records',
      capacity: reader.bytes.length / RECORD_BYTES_MIN,
      whenFull: 'never: the channel holds no more records',
    });
  }

  /** Held records. */
  get heldCount(): number {
    return this.#held.count;
  }

  /** Releases a record when all references issued so far are released; also releases held records that are due. */
  release(offset: number): void {
    const { referenceCount, releasedCount } = this.#references;
    this.#releaseHeld(releasedCount);
    if (referenceCount === releasedCount) this.#reader.release(offset);
    else this.#held.push(offset, referenceCount);
  }

  /** Keeps the other end's share of the ring free. */
  makeRoom(): void {
    if (this.#reader.takenBytes <= this.#takenBytesMax || this.#held.isEmpty) return;
    this.#releaseHeld(this.#references.releasedCount);
    if (this.#reader.takenBytes <= this.#takenBytesMax) return;
    this.#references.snapshot();
    this.#releaseHeld(this.#references.releasedCount);
  }

  #releaseHeld(releasedCount: number): void {
    while (this.#held.headCycle <= releasedCount) this.#reader.release(this.#held.pop());
  }
}
