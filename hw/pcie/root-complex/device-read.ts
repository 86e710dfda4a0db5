/** What the root complex keeps of a device's read while it is worked on. */
import type { Wide } from '../../../base/index.ts';

/** A read of the device and how far it has been answered. Objects are used again and again. */
export class DeviceRead {
  /** Reads that came before it, and it. */
  number = 0;
  /** Of its next byte. */
  address: Wide = 0;
  lengthBytes = 0;
  /** Without an answer so far. */
  remainingBytes = 0;
  descriptor = 0;
  /** With which it will be answered. */
  status = 0;
  /** Credits that it holds. */
  credits = 0;
  /** Cycle from which its next completion may leave, once it is worked on. */
  readyCycle = 0;
  next: DeviceRead = this;
}

/** The reads that a root complex holds, the oldest first, each with the one that came after it. */
export class DeviceReads {
  count = 0;
  /** The oldest, when there is one. */
  oldest: DeviceRead;
  #youngest: DeviceRead;
  /** Objects not in use. */
  #free: DeviceRead;

  /** @param countMax held at once */
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

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    let read = this.oldest;
    for (let left = this.count; left > 0; left--) {
      read.readyCycle -= cycles;
      read = read.next;
    }
  }

  /** The reads held, the oldest first. */
  get all(): readonly DeviceRead[] {
    let read = this.oldest;
    return Array.from({ length: this.count }, () => {
      const one = read;
      read = one.next;
      return one;
    });
  }

  /** Adds a read, the youngest now, to be filled in. The caller has checked that there is room. */
  append(): DeviceRead {
    const read = this.#free;
    this.#free = read.next;
    if (this.count++ === 0) this.oldest = read;
    else this.#youngest.next = read;
    this.#youngest = read;
    return read;
  }

  /** Removes a read; its object is used again. */
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
