/**
 * Memory requests about to be sent: begun, filled in by name, and sent by `PcieLinkPort.sendMemoryRead` and `sendMemoryWrite`.
 *
 *     const read = port.read.begin(address, lengthBytes);
 *     read.tag = tag;
 *     port.sendMemoryRead();
 */
import type { BusAddress, Wide } from '../../../base/index.ts';

const NO_BYTES = new Uint8Array(0);

export class MemoryReadFields {
  /** Requested bytes, which do not cross 4 KiB, and the bus address of the first. */
  address: Wide = 0;
  lengthBytes = 0;
  /** Accounting only: TC is 0 on the link. */
  trafficClass = 0;
  tag = 0;
  requesterId = 0;
  flags = 0;

  /** Begins a read; fields that are not filled in afterwards are 0. */
  begin(address: BusAddress, lengthBytes: number): this {
    this.address = address;
    this.lengthBytes = lengthBytes;
    this.trafficClass = 0;
    this.tag = 0;
    this.requesterId = 0;
    this.flags = 0;
    return this;
  }
}

export class MemoryWriteFields {
  /** Payload bytes, 1 to MPS, which do not cross 4 KiB, and the bus address of the first. */
  address: Wide = 0;
  lengthBytes = 0;
  /** The payload, from `source[sourceOffset]` on. */
  source: Uint8Array = NO_BYTES;
  sourceOffset = 0;
  /** Accounting only: TC is 0 on the link. */
  trafficClass = 0;
  flags = 0;

  /** Begins a write; fields that are not filled in afterwards are 0. */
  begin(address: BusAddress, source: Uint8Array, sourceOffset: number, lengthBytes: number): this {
    this.address = address;
    // Most payload uses the same memory: storing an object reference is expensive (build/README.md).
    if (this.source !== source) this.source = source;
    this.sourceOffset = sourceOffset;
    this.lengthBytes = lengthBytes;
    this.trafficClass = 0;
    this.flags = 0;
    return this;
  }
}
