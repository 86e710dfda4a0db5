/** The SL-to-VL tables of a switch: one for each pair of input and output (IBTA volume 1, 7.6.6 and 14.2.5.8). */
import type { Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import { SlToVlTable } from '../../wire/index.ts';

export class SlToVlTables {
  readonly #initial: SlToVlTable;
  /** Tables that were asked for, by input and output. */
  readonly #tables = new Map<number, SlToVlTable>();
  /** Tables before the last instant at which any was set, and that instant: packets of that instant find these. */
  readonly #before = new Map<number, SlToVlTable>();
  #setPs = Number.NEGATIVE_INFINITY;

  /** @param initial entries of every table */
  constructor(initial: SlToVlTable) {
    this.#initial = initial;
  }

  /** The table of packets from an input to an output, ports from 0 to 255: a packet of the switch itself comes by port 0. */
  of(input: number, output: number): SlToVlTable {
    const key = (input << 8) | output;
    let table = this.#tables.get(key);
    if (table === undefined) {
      table = new SlToVlTable(this.#initial.bytes.slice());
      this.#tables.set(key, table);
    }
    return table;
  }

  /** Sets a table from the beginning of a block of 64 bytes: packets find it from the next instant on. */
  setBlock(input: number, output: number, block: Uint8Array, nowPs: Picoseconds): void {
    const table = this.of(input, output);
    if (nowPs > this.#setPs) this.#before.clear();
    this.#setPs = nowPs;
    const key = (input << 8) | output;
    if (!this.#before.has(key)) this.#before.set(key, new SlToVlTable(table.bytes.slice()));
    table.setBlock(block);
  }

  laneOf(input: number, output: number, serviceLevel: number, nowPs: Picoseconds): number {
    const key = (input << 8) | output;
    const before = nowPs === this.#setPs ? this.#before.get(key) : undefined;
    return (before ?? this.#tables.get(key) ?? this.#initial).laneOf(serviceLevel);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#setPs -= ps;
  }

  inspect(): BlockState {
    return Object.fromEntries([...this.#tables].map(([key, { bytes }]) => [key, [...bytes]]));
  }
}
