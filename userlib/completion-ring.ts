/**
 * The ring of a completion queue: addresses of its entries, the program's read position, and the arm sequence number. Sources:
 * interface sheet 6.6, 6.8, 6.10.
 */
import { cqe, cqeBytes, cqeOwnerOffset } from '../abi/index.ts';
import { asInteger, log2Exact } from '../base/index.ts';
import type { UserMemory } from './platform.ts';
import type { DoorbellRecord, QueueMemory } from './queue-memory.ts';

const ownerMask = cqe.fields.owner.mask;

export class CompletionRing {
  readonly cqn: number;
  readonly record: DoorbellRecord;
  buffer: QueueMemory;
  entries: number;
  /** Free-running counter of 32 bits; the device uses its low 24. */
  consumerCounter = 0;
  /** Counts completion events; its low 2 bits are the arm sequence number. */
  armSequence = 1;
  /** Physical address of each entry. */
  slots: Float64Array;
  /** Holds when software owns the next entry; created once, for spinning. */
  readonly isReady: () => boolean;
  /** Name of the verb in which a polling program waits. */
  readonly pollText = (): string => `ibv_poll_cq for ${this.name}`;
  private readonly memory: UserMemory;

  constructor(cqn: number, memory: UserMemory, buffer: QueueMemory, entries: number, record: DoorbellRecord) {
    this.cqn = cqn;
    this.record = record;
    this.buffer = buffer;
    this.entries = asInteger(entries);
    this.memory = memory;
    this.slots = slotsOf(buffer, entries);
    this.isReady = () => this.nextEntry() >= 0;
  }

  /** Name of the CQ in errors. */
  get name(): string {
    return `CQ 0x${this.cqn.toString(16)}`;
  }

  /** log2 of the entries, for the kernel. */
  get logEntries(): number {
    return log2Exact(this.entries);
  }

  /** Continues in another ring. */
  moveTo(buffer: QueueMemory, entries: number): void {
    this.buffer = buffer;
    this.entries = asInteger(entries);
    this.slots = slotsOf(buffer, entries);
  }

  /** Physical address of the next entry if software owns it, else -1. */
  nextEntry(): number {
    return this.entryAt(this.consumerCounter);
  }

  /** Physical address of the entry with this counter if software owns it, else -1. */
  entryAt(counter: number): number {
    const { entries } = this;
    const address = this.slots[counter & (entries - 1)]!;
    // The owner bit of software's entries is set in odd passes.
    const passBit = (this.memory.bytesNow[address + cqeOwnerOffset]! & ownerMask) !== 0 ? entries : 0;
    return (counter & entries) === passBit ? address : -1;
  }
}

function slotsOf(buffer: QueueMemory, entries: number): Float64Array {
  const slots = new Float64Array(entries);
  for (let slot = 0; slot < entries; slot++) slots[slot] = buffer.physicalOf(slot * cqeBytes);
  return slots;
}
