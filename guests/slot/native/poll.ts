/** ppoll(2) over a handful of descriptors, and the eventfd by which another thread ends a wait. */

import { closeSync, readSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { viewOf } from '../../../base/index.ts';
import { nativeLibrary } from './library.ts';
import { NativeCallError } from './native-call-error.ts';
import { EFD_CLOEXEC, EFD_NONBLOCK, POLLIN, POLLRDHUP, pollEntry, timeSpec } from './structures.ts';

const { descriptor: descriptorField, events, returnedEvents } = pollEntry.fields;

/** A fixed number of slots, each with a descriptor or none. */
export class PollSet {
  readonly #native = nativeLibrary();
  readonly #capacity: number;
  readonly #view: DataView;
  readonly #address: number;
  readonly #timeAddress: number;
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    const buffer = new ArrayBuffer(timeSpec.sizeBytes + capacity * pollEntry.sizeBytes);
    this.#view = new DataView(buffer);
    this.#timeAddress = this.#native.addressOf(buffer);
    this.#address = this.#timeAddress + timeSpec.sizeBytes;
  }

  clear(): void {
    this.#count = 0;
  }

  /** Also waits for `wanted` (POLLIN, POLLOUT) on a descriptor; a hang-up is always waited for. Returns its slot. */
  add(descriptor: number, wanted = POLLIN): number {
    if (this.#count === this.#capacity)
      throw new RangeError(`more than ${this.#capacity} descriptors to poll`);
    const offset = timeSpec.sizeBytes + this.#count * pollEntry.sizeBytes;
    descriptorField.set(this.#view, offset, descriptor);
    events.set(this.#view, offset, wanted);
    returnedEvents.set(this.#view, offset, 0);
    return this.#count++;
  }

  /** Waits at most `timeoutMs` (may be fractional or Infinity). A signal ends the wait early. */
  wait(timeoutMs: number): number {
    let time = 0;
    if (timeoutMs < 2 ** 31) {
      const wholeSeconds = Math.floor(Math.max(timeoutMs, 0) / 1000);
      timeSpec.fields.seconds.setNumber(this.#view, 0, wholeSeconds);
      const rest = Math.floor((Math.max(timeoutMs, 0) - wholeSeconds * 1000) * 1e6);
      timeSpec.fields.nanoseconds.setNumber(this.#view, 0, Math.min(rest, 999_999_999));
      time = this.#timeAddress;
    }
    const ready = this.#native.poll(this.#address, this.#count, time);
    if (ready >= 0) return ready;
    for (let place = 0; place < this.#count; place++) this.#setReturned(place, 0);
    const errno = this.#native.errno();
    if (errno !== constants.errno.EINTR) throw new NativeCallError('ppoll', errno);
    return 0;
  }

  /** Whether the awaited event, a hang-up or an error has occurred on the descriptor of a slot. */
  isReady(place: number): boolean {
    return returnedEvents.get(this.#view, timeSpec.sizeBytes + place * pollEntry.sizeBytes) !== 0;
  }

  #setReturned(place: number, value: number): void {
    returnedEvents.set(this.#view, timeSpec.sizeBytes + place * pollEntry.sizeBytes, value);
  }
}

/** Whether the other end of a socket is closed, or will send no more. */
export function hasHungUp(descriptor: number): boolean {
  const asked = new PollSet(1);
  asked.add(descriptor, POLLRDHUP);
  return asked.wait(0) > 0;
}

const one = new Uint8Array(8);
viewOf(one).setUint32(0, 1, true);
const drained = new Uint8Array(8);

/** A new eventfd that never blocks. Throws NativeCallError if the process has no descriptor left. */
export function createEventfd(): number {
  const native = nativeLibrary();
  const descriptor = native.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw new NativeCallError('eventfd', native.errno());
  return descriptor;
}

/** Adds one to an eventfd, from any thread. Returns false if that is impossible: it is closed, or its count is at the maximum. */
export function signalEventfd(descriptor: number): boolean {
  try {
    writeSync(descriptor, one, 0, 8, null);
    return true;
  } catch {
    return false;
  }
}

/** Sets an eventfd's count to zero; returns the old count. */
export function drainEventfd(descriptor: number): number {
  try {
    readSync(descriptor, drained, 0, 8, null);
  } catch {
    return 0;
  }
  return Number(viewOf(drained).getBigUint64(0, true));
}

/** Closes a descriptor; ignores one that is already closed. */
export function closeDescriptor(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    return;
  }
}
