/** A CQ owned by the kernel, in kernel memory. Source: interface sheet 6.6, 6.8, 6.10. */
import { CqArmCommand, cqArm, cqe, cqeBytes, cqRecord, uarOffset } from '../abi/index.ts';
import { log2Exact, mask24, passBit, viewOf } from '../base/index.ts';
import { ContextMemory } from './context-memory.ts';
import { type CompletionQueue, createCq, destroyCq } from './cq.ts';
import type { Device } from './device.ts';
import type { EventSink } from './event-router.ts';
import { kernelProcess } from './kernel-process.ts';
import type { Cpu } from './platform.ts';
import type { UserUar } from './uar.ts';

/** Its address, and its doorbells. */
export interface KernelCompletionsPlace {
  /** A power of two. */
  readonly entries: number;
  /** Physical addresses of its ring and of its doorbell record. */
  readonly ring: number;
  readonly record: number;
  readonly uar: UserUar;
}

export class KernelCompletions {
  readonly cqn: number;
  readonly #device: Device;
  readonly #cq: CompletionQueue;
  readonly #memory: ContextMemory;
  readonly #place: KernelCompletionsPlace;
  #consumerCounter = 0;
  #armSequence = 0;

  private constructor(
    device: Device,
    cq: CompletionQueue,
    memory: ContextMemory,
    place: KernelCompletionsPlace,
  ) {
    this.#device = device;
    this.#cq = cq;
    this.#memory = memory;
    this.#place = place;
    this.cqn = cq.cqn;
  }

  /** @throws KernelError ENOMEM */
  static async open(
    cpu: Cpu,
    device: Device,
    place: KernelCompletionsPlace,
    sink: EventSink,
  ): Promise<KernelCompletions> {
    const { entries, ring, record, uar } = place;
    // Hands no entry to software yet: every owner bit is that of the pass before the first.
    device.platform.memory.bytes.fill(0xff, ring, ring + entries * cqeBytes);
    const request = {
      entries,
      bufferAddress: ring,
      doorbellRecordAddress: record,
      channel: -1,
      completionVector: 0,
    };
    const memory = new ContextMemory(kernelProcess);
    const cq = await createCq(cpu, device, memory, uar.page, request, sink);
    return new KernelCompletions(device, cq, memory, place);
  }

  close(cpu: Cpu): Promise<void> {
    return destroyCq(cpu, this.#device, this.#memory, this.#cq);
  }

  /** Dequeues the oldest entry. @returns its physical address, or -1 if the CQ is empty */
  next(): number {
    const { view } = this.#device.platform.memory;
    const { entries, ring, record } = this.#place;
    const at = ring + (this.#consumerCounter & (entries - 1)) * cqeBytes;
    if (cqe.fields.owner.get(view, at) !== passBit(this.#consumerCounter, log2Exact(entries))) return -1;
    this.#consumerCounter++;
    cqRecord.fields.consumerCounter.set(view, record, this.#consumerCounter & mask24);
    return at;
  }

  /** Requests an event for the next completion, or immediately if a completion has not been dequeued yet. */
  arm(cpu: Cpu): void {
    const { view } = this.#device.platform.memory;
    const { record, uar } = this.#place;
    const consumer = this.#consumerCounter & mask24;
    const { fields } = cqRecord;
    const sequence = ++this.#armSequence & 3;
    fields.sequenceNumber.set(view, record, sequence);
    fields.command.set(view, record, CqArmCommand.NEXT);
    fields.consumerCounterAtArming.set(view, record, consumer);
    const request = { sequenceNumber: sequence, command: CqArmCommand.NEXT, cqn: this.cqn };
    const words = viewOf(cqArm.encode({ ...request, consumerCounter: consumer }));
    const to = uar.busAddress + uarOffset.cqArm;
    cpu.mmioWrite32(to, words.getUint32(0, true));
    cpu.mmioWrite32(to + 4, words.getUint32(4, true));
  }
}
