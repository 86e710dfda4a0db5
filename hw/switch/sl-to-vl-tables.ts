/** The SL-to-VL tables of a switch: one for each pair of input and output (IBTA volume 1, 7.6.6 and 14.2.5.8). */
import type { BlockState } from '../../sim/index.ts';
import { SlToVlTable } from '../../wire/index.ts';

export class SlToVlTables {
  readonly #initial: SlToVlTable;
  /** Tables that were asked for, by input and output. */
  readonly #tables = new Map<number, SlToVlTable>();

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

  laneOf(input: number, output: number, serviceLevel: number): number {
    return (this.#tables.get((input << 8) | output) ?? this.#initial).laneOf(serviceLevel);
  }

  inspect(): BlockState {
    return Object.fromEntries([...this.#tables].map(([key, { bytes }]) => [key, [...bytes]]));
  }
}
