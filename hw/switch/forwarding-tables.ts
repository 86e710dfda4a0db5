/**
 * The forwarding tables of an InfiniBand switch: one output port for each unicast LID, and a set of ports for all multicast LIDs (IBTA volume
 * 1, 14.2.5.10 to 14.2.5.12 and 18.2.4). A subnet manager writes them.
 */
import { InvariantError } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

/** LIDs of groups begin here; 0xffff is the permissive LID. */
const MULTICAST_LID_FIRST = 0xc000;
const PERMISSIVE_LID = 0xffff;
/** Entries of the linear table: 48 Ki, as InfiniScale IV has (Abts and Kim, figure 6.9). */
const LINEAR_ENTRIES = MULTICAST_LID_FIRST;
/** An entry without a port: packets are dropped. */
export const NO_PORT = 255;

export class ForwardingTables {
  readonly #linear = new Uint8Array(LINEAR_ENTRIES).fill(NO_PORT);
  /** Ports of every group: the subnet manager keeps no members. */
  groupPorts: readonly number[] = [];

  /** @param lid a unicast LID, @param port its output, from 1; {@link NO_PORT} drops */
  setPort(lid: number, port: number): void {
    if (lid <= 0 || lid >= LINEAR_ENTRIES)
      throw new InvariantError('LID of a linear entry', lid, `1 to ${LINEAR_ENTRIES - 1}`);
    this.#linear[lid] = port;
  }

  /** Whether packets to a LID go to a group. */
  isGroup(lid: number): boolean {
    return lid >= MULTICAST_LID_FIRST && lid !== PERMISSIVE_LID;
  }

  /** The output of a unicast LID, or {@link NO_PORT}. */
  portOf(lid: number): number {
    return lid < LINEAR_ENTRIES ? this.#linear[lid]! : NO_PORT;
  }

  inspect(): BlockState {
    const entries = [...this.#linear.entries()].filter(([, port]) => port !== NO_PORT);
    return {
      linear: entries.map(([lid, port]) => [lid, port]),
      groupPorts: [...this.groupPorts],
    };
  }
}
