/**
 * VL arbitration of one port: which data lane sends the next packet (InfiniBand Architecture Specification, volume 1, 7.6.9).
 *
 *     high-priority table ──▶ until VLHighLimit is used up ──┐
 *     low-priority table ───▶ then one packet ───────────────┴─▶ link
 *
 * Within a table the entries take turns. An entry sends until its weight, in units of 64 bytes, is used up, or until its lane has no packet
 * that may leave; what is left of the weight is lost. A packet that begins with weight left leaves whole. Lane 15 is not arbitrated: it
 * always goes first. A lane in no entry, or in entries of weight 0 alone, never sends.
 */
import type { BlockState } from '../sim/index.ts';
import { VlArbitrationTable } from './vl-arbitration-table.ts';

/** VLHighLimit counts 4 KiB, and this value has no limit. */
const LIMIT_BLOCKS = 64;
const NO_LIMIT = 255;
const NO_ENTRY = -1;
/** No lane may send. */
export const NO_LANE = -1;

/** One table, and whose turn it is. */
class TableTurn {
  readonly table: VlArbitrationTable;
  /** The entry whose turn it is, and the rest of its weight. */
  #entry: number;
  #weightLeft = 0;

  constructor(table: VlArbitrationTable) {
    this.table = table;
    this.#entry = table.entryCount - 1;
  }

  /** The entry that sends next, of those whose lanes, as bits, have a packet that may leave; or {@link NO_ENTRY}. */
  next(ready: number): number {
    const { table } = this;
    if (this.#weightLeft > 0 && (ready & (1 << table.laneAt(this.#entry))) !== 0) return this.#entry;
    for (let step = 1; step <= table.entryCount; step++) {
      const entry = (this.#entry + step) % table.entryCount;
      if (table.weightAt(entry) > 0 && (ready & (1 << table.laneAt(entry))) !== 0) return entry;
    }
    return NO_ENTRY;
  }

  /** A packet of this number of blocks leaves by an entry. */
  sent(entry: number, blocks: number): void {
    if (entry !== this.#entry || this.#weightLeft <= 0) {
      this.#entry = entry;
      this.#weightLeft = this.table.weightAt(entry);
    }
    this.#weightLeft -= blocks;
  }

  inspect(): BlockState {
    return { entry: this.#entry, weightLeft: this.#weightLeft };
  }
}

/** Tables of a port, as its subnet manager has written them. */
export interface PortArbitration {
  readonly high: VlArbitrationTable;
  readonly low: VlArbitrationTable;
  /** VLHighLimit of PortInfo: units of 4 KiB; 0: one packet; 255: no limit. */
  readonly highLimit: number;
}

export class VlArbiter {
  readonly #port: PortArbitration;
  readonly #high: TableTurn;
  readonly #low: TableTurn;
  /** The limit by which blocks are counted now. */
  #highLimit = 0;
  /** Blocks that the high-priority table may send before the low-priority table gets its opportunity. */
  #highBlocksLeft = 0;
  /** Table and entry of the lane that {@link choose} has returned. */
  #chosen: TableTurn;
  #chosenEntry = 0;

  /** @param port whose tables and limit count as they are at each packet */
  constructor(port: PortArbitration) {
    this.#port = port;
    this.#high = new TableTurn(port.high);
    this.#low = new TableTurn(port.low);
    this.#chosen = this.#low;
    this.#renewHigh();
  }

  /** @param ready lanes with a packet that may leave now, as bits. @returns the lane that sends, or {@link NO_LANE} */
  choose(ready: number): number {
    if (this.#port.highLimit !== this.#highLimit) this.#renewHigh();
    const high = this.#high.next(ready);
    const mayHigh = high !== NO_ENTRY && this.#highBlocksLeft > 0;
    const low = mayHigh ? NO_ENTRY : this.#low.next(ready);
    this.#chosen = low === NO_ENTRY ? this.#high : this.#low;
    this.#chosenEntry = low === NO_ENTRY ? high : low;
    return this.#chosenEntry === NO_ENTRY ? NO_LANE : this.#chosen.table.laneAt(this.#chosenEntry);
  }

  /** A packet of this number of blocks of 64 bytes leaves in the lane that {@link choose} has returned. */
  sent(blocks: number): void {
    // The low-priority table has had its opportunity, whether it has used it or had no packet.
    if (this.#chosen === this.#low || this.#highBlocksLeft <= 0) this.#renewHigh();
    if (this.#chosen === this.#high) this.#highBlocksLeft -= blocks;
    this.#chosen.sent(this.#chosenEntry, blocks);
  }

  /** A limit of 0 is one packet, which any number of blocks exceeds. */
  #renewHigh(): void {
    const limit = this.#port.highLimit;
    this.#highLimit = limit;
    this.#highBlocksLeft = limit === NO_LIMIT ? Number.POSITIVE_INFINITY : Math.max(1, limit * LIMIT_BLOCKS);
  }

  inspect(): BlockState {
    return { high: this.#high.inspect(), low: this.#low.inspect() };
  }
}

/** A table in which each of so many data lanes has one entry, of these weights; lanes beyond them have none. */
export const arbitrationOf = (weights: readonly number[], entryCount: number): VlArbitrationTable => {
  const table = new VlArbitrationTable(new Uint8Array(2 * entryCount));
  weights.forEach((weight, lane) => {
    table.setEntry(lane, lane, weight);
  });
  return table;
};
