/** A device for specs: regions of plain memory, and a record of its calls. */

import {
  INTERRUPT_ERROR,
  INTERRUPT_INTX,
  INTERRUPT_MSIX,
  INTERRUPT_REQUEST,
  REGION_BAR0,
  REGION_CONFIG,
  REGION_ROM,
  type VfioUserDevice,
} from '../device.ts';
import type { GuestMemory } from '../memory.ts';

export const BAR0_BYTES = 65_536;
const ROM_BYTES = 8192;
export const CONFIG_BYTES = 4096;
export const MSIX_VECTORS = 40;

export class TestDevice implements VfioUserDevice {
  readonly regions = [
    { index: REGION_BAR0, sizeBytes: BAR0_BYTES, isReadable: true, isWritable: true },
    { index: REGION_ROM, sizeBytes: ROM_BYTES, isReadable: true, isWritable: false },
    { index: REGION_CONFIG, sizeBytes: CONFIG_BYTES, isReadable: true, isWritable: true },
  ];
  readonly interrupts = [
    { index: INTERRUPT_INTX, count: 1 },
    { index: INTERRUPT_MSIX, count: MSIX_VECTORS },
    { index: INTERRUPT_ERROR, count: 1 },
    { index: INTERRUPT_REQUEST, count: 1 },
  ];

  /** One line per call, except reads and writes. */
  readonly notified: string[] = [];
  readonly bytes = new Map(
    this.regions.map(({ index, sizeBytes }) => [index, new Uint8Array(sizeBytes)] as const),
  );
  /** Eventfds by `index:vector`. */
  readonly eventfds = new Map<string, number>();
  memory: GuestMemory | undefined;
  isBroken = false;
  readCount = 0;
  writeCount = 0;

  regionRead(region: number, offset: number, into: Uint8Array): boolean {
    this.readCount++;
    if (this.isBroken) return false;
    into.set(this.bytes.get(region)!.subarray(offset, offset + into.length));
    return true;
  }

  regionWrite(region: number, offset: number, bytes: Uint8Array): boolean {
    this.writeCount++;
    if (this.isBroken) return false;
    this.bytes.get(region)!.set(bytes, offset);
    return true;
  }

  reset(): void {
    this.notified.push('reset');
  }

  setInterrupt(index: number, vector: number, descriptor: number): void {
    if (descriptor < 0) this.eventfds.delete(`${index}:${vector}`);
    else this.eventfds.set(`${index}:${vector}`, descriptor);
    this.notified.push(`interrupt ${index}:${vector} ${descriptor < 0 ? 'gone' : 'set'}`);
  }

  maskInterrupt(index: number, vector: number, isMasked: boolean): void {
    this.notified.push(`interrupt ${index}:${vector} ${isMasked ? 'masked' : 'unmasked'}`);
  }

  clientConnected(memory: GuestMemory): void {
    this.memory = memory;
    this.notified.push('connected');
  }

  clientDisconnected(): void {
    this.notified.push('gone');
  }
}
