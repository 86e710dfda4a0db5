/**
 * The virtual lane of each service level: an SLtoVLMappingTable (InfiniBand Architecture Specification, volume 1, 7.6.6 and 14.2.5.8). A
 * channel adapter has one for each port, a switch one for each pair of input and output.
 *
 * Lane 15 in an entry, or a data lane that the port does not have, means that packets of this service level are discarded.
 */

/** Bytes of the attribute: two service levels to a byte, the first in [7:4]. */
const TABLE_BYTES = 8;
/** Entry of a service level whose packets are discarded. */
export const DISCARDED_LANE = 15;

export class SlToVlTable {
  /** The bytes of the attribute. */
  readonly bytes: Uint8Array;

  /** @param bytes of the attribute, which the table then shares; left out: all service levels use lane 0 */
  constructor(bytes: Uint8Array = new Uint8Array(TABLE_BYTES)) {
    this.bytes = bytes;
  }

  /** Lane of a service level from 0 to 15. */
  laneOf(serviceLevel: number): number {
    const pair = this.bytes[serviceLevel >> 1]!;
    return (serviceLevel & 1) === 0 ? pair >> 4 : pair & 0xf;
  }

  setLane(serviceLevel: number, lane: number): void {
    const at = serviceLevel >> 1;
    const pair = this.bytes[at]!;
    this.bytes[at] = (serviceLevel & 1) === 0 ? (lane << 4) | (pair & 0xf) : (pair & 0xf0) | lane;
  }

  /** Writes the attribute to the beginning of a block of 64 bytes. */
  getBlock(into: Uint8Array): void {
    into.set(this.bytes);
  }

  /** Takes the attribute from the beginning of a block of 64 bytes. */
  setBlock(from: Uint8Array): void {
    this.bytes.set(from.subarray(0, TABLE_BYTES));
  }
}
