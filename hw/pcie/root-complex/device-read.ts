/** State of a device's read in the root complex while it is processed. */
import type { Wide } from '../../../base/index.ts';

/** A read of the device and its progress. Objects are reused. */
export class DeviceRead {
  /** Number of reads up to and including it. */
  number = 0;
  /** Address of the read's next byte. */
  address: Wide = 0;
  lengthBytes = 0;
  /** Bytes without an answer so far. */
  remainingBytes = 0;
  descriptor = 0;
  /** Status of the read's completion. */
  status = 0;
  /** Credits that the read holds. */
  credits = 0;
  /** Cycle from which its next completion may leave, once it is processed. */
  readyCycle = 0;
  next: DeviceRead = this;
}

/** The reads that a root complex holds, oldest first, each linked to the next. */
export class DeviceReads {
  count = 0;
  /** The oldest, if any. */
  oldest: DeviceRead;
  #youngest: DeviceRead;
  /** Unused objects. */
  #free: DeviceRead;

  /** @param countMax limit of held reads */
  constructor(countMax: number) {
    const first = new DeviceRead();
    for (let made = 1; made < countMax; made++) {
      const read = new DeviceRead();
      read.next = first.next;
      first.next = read;
    }
    this.oldest = first;
    this.#youngest = first;
    this.#free = first;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    let read = this.oldest;
    for (let left = this.count; left > 0; left--) {
      read.readyCycle -= cycles;
      read = read.next;
    }
  }

  /** The held reads, oldest first. */
  get all(): readonly DeviceRead[] {
    let read = this.oldest;
    return Array.from({ length: this.count }, () => {
      const one = read;
      read = one.next;
      return one;
    });
  }

  /** Adds a read, now the youngest, to be filled in by the caller, who has checked for room. */
  append(): DeviceRead {
    const read = this.#free;
    this.#free = read.next;
    if (this.count++ === 0) this.oldest = read;
    else this.#youngest.next = read;
    this.#youngest = read;
    return read;
  }

  /** Removes a read; its object is reused. */
  remove(read: DeviceRead): void {
    if (read === this.oldest) {
      this.oldest = read.next;
    } else {
      let before = this.oldest;
      while (before.next !== read) before = before.next;
      before.next = read.next;
      if (read === this.#youngest) this.#youngest = before;
    }
    read.next = this.#free;
    this.#free = read;
    this.count--;
  }
}
