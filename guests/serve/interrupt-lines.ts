/**
 * Converts interrupt messages of the device to writes of the descriptors (eventfds) by which a guest's machine receives them.
 *
 *     MSI-X message ── address, data ──► vector ── descriptor? ──► raised
 *     Assert_INTx, Deassert_INTx ──► level ── not masked, descriptor? ──► raised, and masked until the guest unmasks
 *
 * The platform chose address and data of every vector itself ({@link InterruptLines.messageFor}), as a host's vfio driver does. INTx is
 * automasked as VFIO's: a level is raised once, and again after an unmask if it is still asserted.
 */
import type { GatedSink } from '../../machine/faults/index.ts';

/** Signals one interrupt to a guest's machine by its descriptor. */
export type RaiseInterrupt = (descriptor: number) => void;

const NO_DESCRIPTOR = -1;

/** Free-running, per vector; copied by a report. */
export class LineCounters {
  /** Arrived messages of the vector, and those for which a descriptor was written. */
  readonly arrived: Float64Array;
  readonly raised: Float64Array;
  /** Value of `raised` when the guest's machine last enabled MSI-X: its driver counts from there. */
  readonly raisedBefore: Float64Array;

  constructor(vectorCount: number) {
    this.arrived = new Float64Array(vectorCount);
    this.raised = new Float64Array(vectorCount);
    this.raisedBefore = new Float64Array(vectorCount);
  }
}

export class InterruptLines implements GatedSink {
  readonly vectorCount: number;
  readonly counters: LineCounters;
  /** Messages without a valid vector: a device's write into the message window that the platform did not arrange. */
  unroutedCount = 0;
  /** INTx levels asserted by the device, and those for which a descriptor was written. */
  pinAssertedCount = 0;
  pinRaisedCount = 0;
  readonly #messageAddress: number;
  readonly #raise: RaiseInterrupt;
  readonly #descriptors: Int32Array;
  #pinDescriptor = NO_DESCRIPTOR;
  #isPinAsserted = false;
  #isPinMasked = false;

  /** @param messageAddress start of the message window */
  constructor(vectorCount: number, messageAddress: number, raise: RaiseInterrupt) {
    this.vectorCount = vectorCount;
    this.counters = new LineCounters(vectorCount);
    this.#messageAddress = messageAddress;
    this.#raise = raise;
    this.#descriptors = new Int32Array(vectorCount).fill(NO_DESCRIPTOR);
  }

  /** Address and data of a vector's message. */
  messageFor(vector: number): { readonly address: number; readonly data: number } {
    return { address: this.#messageAddress, data: vector };
  }

  /** The vector of a message, or -1. */
  vectorOf(address: number, data: number): number {
    return address === this.#messageAddress && data < this.vectorCount ? data : -1;
  }

  hasVector(vector: number): boolean {
    return this.#descriptors[vector] !== NO_DESCRIPTOR;
  }

  /** True if any vector has a descriptor: the guest's machine has MSI-X enabled. */
  get hasVectors(): boolean {
    return this.#descriptors.some((descriptor) => descriptor !== NO_DESCRIPTOR);
  }

  get isPinAsserted(): boolean {
    return this.#isPinAsserted;
  }

  /**
   * @param descriptor the eventfd; -1 removes the vector's
   */
  setVector(vector: number, descriptor: number): void {
    if (descriptor !== NO_DESCRIPTOR && !this.hasVectors)
      this.counters.raisedBefore.set(this.counters.raised);
    this.#descriptors[vector] = descriptor;
  }

  /** A pin that receives a descriptor is not masked. */
  setPin(descriptor: number): void {
    this.#pinDescriptor = descriptor;
    this.#isPinMasked = false;
    this.#raisePin();
  }

  maskPin(isMasked: boolean): void {
    this.#isPinMasked = isMasked;
    this.#raisePin();
  }

  message(address: number, data: number): void {
    const vector = this.vectorOf(address, data);
    if (vector < 0) {
      this.unroutedCount++;
      return;
    }
    const { arrived, raised } = this.counters;
    arrived[vector] = arrived[vector]! + 1;
    const descriptor = this.#descriptors[vector]!;
    if (descriptor === NO_DESCRIPTOR) return;
    raised[vector] = raised[vector]! + 1;
    this.#raise(descriptor);
  }

  /** The function has one pin: any pin is the guest's only INTx. */
  intx(_pin: number, isAsserted: boolean): void {
    if (isAsserted) this.pinAssertedCount++;
    this.#isPinAsserted = isAsserted;
    this.#raisePin();
  }

  /** All descriptors are removed, and the device is reset: nothing is asserted. */
  reset(): void {
    this.#descriptors.fill(NO_DESCRIPTOR);
    this.#pinDescriptor = NO_DESCRIPTOR;
    this.#isPinAsserted = false;
    this.#isPinMasked = false;
  }

  #raisePin(): void {
    if (!this.#isPinAsserted || this.#isPinMasked || this.#pinDescriptor === NO_DESCRIPTOR) return;
    this.#isPinMasked = true;
    this.pinRaisedCount++;
    this.#raise(this.#pinDescriptor);
  }
}
