/** Command mailboxes: 4 KiB frames, zeroed, kept for the next command and freed at removal. */
import { mailboxBytes } from '../abi/index.ts';
import { KernelError } from './kernel-error.ts';
import type { KernelMemory } from './platform.ts';

export class MailboxPool {
  private readonly memory: KernelMemory;
  private readonly idle: number[] = [];

  constructor(memory: KernelMemory) {
    this.memory = memory;
  }

  /** @returns the physical address of a zeroed mailbox */
  take(): number {
    const address = this.idle.pop() ?? this.memory.allocateFrames(1);
    if (address < 0) throw new KernelError('ENOMEM', 'no page for a command mailbox');
    this.memory.bytes.fill(0, address, address + mailboxBytes);
    return address;
  }

  give(address: number): void {
    this.idle.push(address);
  }

  /** Frees all frames; every mailbox must have been returned before. */
  close(): void {
    for (const address of this.idle.splice(0)) this.memory.freeFrames(address, 1);
  }
}
