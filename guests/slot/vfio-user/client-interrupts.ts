/**
 * Interrupts of one client: DEVICE_GET_IRQ_INFO, DEVICE_SET_IRQS and the eventfds that they pass.
 *
 *     TRIGGER eventfds   the device writes them: an interrupt
 *     UNMASK eventfd     the client writes it: its pin is unmasked, as by the message. KVM does so when the guest has served the pin
 *
 * An eventfd is made non-blocking on arrival, and only eventfds are accepted: raising an interrupt must not wait. (A client
 * that clears the flag again and fills the counter can still make us wait; against a shared file description, no defence
 * exists.)
 */
import { readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import {
  INTERRUPT_ERROR,
  INTERRUPT_INTX,
  INTERRUPT_MSI,
  INTERRUPT_REQUEST,
  PCI_INTERRUPT_COUNT,
  type VfioUserDevice,
} from '../device.ts';
import { nativeLibrary } from '../native/library.ts';
import { closeDescriptor, drainEventfd, signalEventfd } from '../native/poll.ts';
import { F_GETFL, F_SETFL, O_NONBLOCK } from '../native/structures.ts';
import type { MessageStream } from './message-stream.ts';
import {
  ACTION_MASK,
  ACTION_TRIGGER,
  ACTION_UNMASK,
  DATA_BOOL,
  DATA_EVENTFD,
  DATA_NONE,
  interruptInfo,
  setInterrupts,
} from './protocol.ts';
import { PAYLOAD_OFFSET, type Reply } from './reply.ts';

const { EINVAL, ENOTSUP } = constants.errno;

interface SetRequest {
  readonly dataType: number;
  readonly action: number;
  readonly index: number;
  readonly start: number;
  readonly count: number;
}

export class ClientInterrupts {
  readonly #device: VfioUserDevice;
  /** The eventfds of vectors, by interrupt index; -1 for none. */
  readonly #descriptors: readonly Int32Array[];
  /** The eventfd by which the client unmasks its pin, or -1. */
  #unmaskDescriptor = -1;

  constructor(device: VfioUserDevice) {
    this.#device = device;
    this.#descriptors = Array.from({ length: PCI_INTERRUPT_COUNT }, (_, index) => {
      const count = device.interrupts.find((interrupt) => interrupt.index === index)?.count ?? 0;
      return new Int32Array(count).fill(-1);
    });
  }

  /** DEVICE_GET_IRQ_INFO: bytes of the reply's payload, or minus an errno. */
  answerInfo(payload: Uint8Array, reply: Reply): number {
    if (payload.length < interruptInfo.sizeBytes) return -EINVAL;
    const { argumentBytes, index } = interruptInfo.decode(payload);
    if (argumentBytes < interruptInfo.sizeBytes || index >= PCI_INTERRUPT_COUNT) return -EINVAL;
    const isIntx = index === INTERRUPT_INTX ? 1 : 0;
    interruptInfo.encodeInto(
      {
        argumentBytes: interruptInfo.sizeBytes,
        eventfd: 1,
        maskable: isIntx,
        automasked: isIntx,
        noResize: index === INTERRUPT_MSI ? 1 : 0,
        index,
        count: this.#descriptors[index]!.length,
      },
      reply.bytes,
      PAYLOAD_OFFSET,
    );
    return interruptInfo.sizeBytes;
  }

  /** DEVICE_SET_IRQS, with its descriptors in `stream`: 0, or minus an errno. */
  set(payload: Uint8Array, stream: MessageStream): number {
    if (payload.length < setInterrupts.sizeBytes) return -EINVAL;
    const request = setInterrupts.decode(payload);
    const data = payload.subarray(setInterrupts.sizeBytes);
    if (request.argumentBytes < setInterrupts.sizeBytes || request.otherFlags !== 0) return -EINVAL;
    if (!this.#isValid(request, data.length, stream.descriptorCount)) return -EINVAL;
    if (request.action !== ACTION_TRIGGER)
      return request.dataType === DATA_EVENTFD
        ? this.#setUnmaskEventfd(request, stream)
        : this.#setMask(request, data);
    if (request.dataType === DATA_EVENTFD) return this.#setEventfds(request, stream);
    if (request.count === 0) this.#takeAway(request.index);
    else this.#trigger(request, data);
    return 0;
  }

  /** Descriptor for poll: readable when the client unmasks its pin; -1 for none. */
  get unmaskDescriptor(): number {
    return this.#unmaskDescriptor;
  }

  /** Unmasks the pin if its eventfd was written. Whether it was. */
  answerUnmask(): boolean {
    if (this.#unmaskDescriptor < 0 || drainEventfd(this.#unmaskDescriptor) === 0) return false;
    this.#device.maskInterrupt(INTERRUPT_INTX, 0, false);
    return true;
  }

  /** The client has disconnected: all its eventfds are removed from the device, then closed. */
  release(): void {
    for (let index = 0; index < this.#descriptors.length; index++) this.#takeAway(index);
  }

  #isValid(request: SetRequest, dataBytes: number, descriptorCount: number): boolean {
    const { dataType, action, index, start, count } = request;
    const vectors = this.#descriptors[index];
    if (vectors === undefined || start + count > vectors.length) return false;
    if (![ACTION_MASK, ACTION_UNMASK, ACTION_TRIGGER].includes(action)) return false;
    const isFatal = index === INTERRUPT_ERROR || index === INTERRUPT_REQUEST;
    if (isFatal && action !== ACTION_TRIGGER) return false;
    if (count === 0 && (start !== 0 || action !== ACTION_TRIGGER || dataType !== DATA_NONE)) return false;
    switch (dataType) {
      case DATA_NONE:
        return descriptorCount === 0;
      case DATA_BOOL:
        return descriptorCount === 0 && dataBytes === count;
      case DATA_EVENTFD:
        return descriptorCount === 0 || descriptorCount === count;
      default:
        return false;
    }
  }

  /** Only for the pin, the only automasked interrupt; Linux's vfio-pci also refuses an eventfd for masking. */
  #setUnmaskEventfd({ action, index }: SetRequest, stream: MessageStream): number {
    if (action !== ACTION_UNMASK || index !== INTERRUPT_INTX) return -ENOTSUP;
    const descriptor = stream.descriptorCount > 0 ? stream.descriptors[0]! : -1;
    if (descriptor >= 0) {
      if (!isEventfd(descriptor)) return -EINVAL;
      stream.descriptors[0] = -1;
      makeNonBlocking(descriptor);
    }
    this.#replaceUnmask(descriptor);
    return 0;
  }

  #replaceUnmask(descriptor: number): void {
    if (this.#unmaskDescriptor >= 0) closeDescriptor(this.#unmaskDescriptor);
    this.#unmaskDescriptor = descriptor;
  }

  #setMask({ dataType, action, index, start, count }: SetRequest, data: Uint8Array): number {
    for (let at = 0; at < count; at++) {
      if (dataType === DATA_NONE || data[at] !== 0) {
        this.#device.maskInterrupt(index, start + at, action === ACTION_MASK);
      }
    }
    return 0;
  }

  #setEventfds({ index, start, count }: SetRequest, stream: MessageStream): number {
    for (let at = 0; at < stream.descriptorCount; at++) {
      if (!isEventfd(stream.descriptors[at]!)) return -EINVAL;
    }
    for (let at = 0; at < count; at++) {
      const descriptor = at < stream.descriptorCount ? stream.descriptors[at]! : -1;
      if (descriptor >= 0) {
        stream.descriptors[at] = -1;
        makeNonBlocking(descriptor);
      }
      this.#replace(index, start + at, descriptor);
    }
    return 0;
  }

  #trigger({ dataType, index, start, count }: SetRequest, data: Uint8Array): void {
    for (let at = 0; at < count; at++) {
      const descriptor = this.#descriptors[index]![start + at]!;
      if (descriptor >= 0 && (dataType === DATA_NONE || data[at] !== 0)) signalEventfd(descriptor);
    }
  }

  #takeAway(index: number): void {
    if (index === INTERRUPT_INTX) this.#replaceUnmask(-1);
    const vectors = this.#descriptors[index]!;
    for (let vector = 0; vector < vectors.length; vector++) {
      if (vectors[vector]! >= 0) this.#replace(index, vector, -1);
    }
  }

  #replace(index: number, vector: number, descriptor: number): void {
    const vectors = this.#descriptors[index]!;
    const previous = vectors[vector]!;
    vectors[vector] = descriptor;
    this.#device.setInterrupt(index, vector, descriptor);
    if (previous >= 0) closeDescriptor(previous);
  }
}

function isEventfd(descriptor: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`) === 'anon_inode:[eventfd]';
  } catch {
    return false;
  }
}

function makeNonBlocking(descriptor: number): void {
  const native = nativeLibrary();
  native.fcntl(descriptor, F_SETFL, native.fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK);
}
