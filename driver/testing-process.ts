/** Signals for the driver's specs, and a process whose memory the specs access directly. */

import { pageBytes } from '../base/index.ts';
import type { Cpu, PinnedPages, ProcessMemory, Signal } from './platform.ts';
import type { TestMachine } from './testing.ts';

const userPageOffset = 0x4000_0000;

/** A signal whose wait takes no real time. */
export class TestSignal implements Signal {
  private readonly machine: TestMachine;
  private isRaised = false;
  private readonly waiters: ((raised: boolean) => void)[] = [];

  constructor(machine: TestMachine) {
    this.machine = machine;
  }

  raise(): void {
    if (this.waiters.length === 0) this.isRaised = true;
    for (const wake of this.waiters.splice(0)) wake(true);
  }

  /** Waits; with a limit, lets other threads raise the signal before the limit passes. */
  async wait(_cpu: Cpu, timeoutPs?: number): Promise<boolean> {
    if (!this.isRaised && timeoutPs !== undefined) {
      for (let turn = 0; turn < 50 && !this.isRaised; turn++) await Promise.resolve();
      if (!this.isRaised) {
        this.machine.time += timeoutPs;
        return false;
      }
    }
    if (this.isRaised) {
      this.isRaised = false;
      return true;
    }
    return new Promise((resolve) => this.waiters.push(resolve));
  }
}

/** A process whose user address is the physical one plus a constant, so that specs can access its memory. */
export class TestProcess implements ProcessMemory {
  readonly processId = 1;
  pinnedPages = 0;
  mappedDevicePages = 0;
  /** Physical page of a user page, if not the usual one. */
  readonly scattered = new Map<number, number>();
  private readonly limitPages: number;
  private readonly machine: TestMachine;

  constructor(machine: TestMachine, limitPages: number) {
    this.machine = machine;
    this.limitPages = limitPages;
  }

  /** User address of fresh memory. */
  map(lengthBytes: number): number {
    const pages = Math.ceil(lengthBytes / pageBytes);
    const address = this.machine.platform.memory.allocateFrames(pages);
    return address + userPageOffset;
  }

  pin(_cpu: Cpu, address: number, lengthBytes: number): PinnedPages | 'EFAULT' | 'ENOMEM' {
    if (address < userPageOffset) return 'EFAULT';
    const first = Math.floor(address / pageBytes);
    const count = Math.floor((address + lengthBytes - 1) / pageBytes) - first + 1;
    if (this.pinnedPages + count > this.limitPages) return 'ENOMEM';
    this.pinnedPages += count;
    const pages = Array.from({ length: count }, (_, at) => {
      const page = first + at;
      return this.scattered.get(page) ?? page * pageBytes - userPageOffset;
    });
    return { address, lengthBytes, pageCount: count, pages, isWritable: true };
  }

  unpin(_cpu: Cpu, pages: PinnedPages): void {
    this.pinnedPages -= pages.pageCount;
  }

  mapDevice(): number {
    this.mappedDevicePages++;
    return 0x7000_0000;
  }

  unmapDevice(): void {
    this.mappedDevicePages--;
  }
}
