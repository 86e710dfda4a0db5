/** What the root complex keeps of a device's read while it is worked on. */
import { FLOAT_ZERO } from '../../base/float-zero.ts';

/** A read of the device and how far it has been answered. Objects are used again and again. */
export class DeviceRead {
  /** Reads that came before it, and it. */
  number = 0;
  /** Of its next byte. */
  address = FLOAT_ZERO;
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

/** Reads not in use, each with the next one. */
export function makeReads(count: number): DeviceRead {
  const first = new DeviceRead();
  for (let made = 1; made < count; made++) {
    const read = new DeviceRead();
    read.next = first.next;
    first.next = read;
  }
  return first;
}
