/**
 * The forwarding tables of an InfiniBand switch: one output port for each unicast LID, and a set of ports for all multicast LIDs (IBTA volume
 * 1, 14.2.5.10 to 14.2.5.12 and 18.2.4). A subnet manager writes them.
 */
import { InvariantError, type Picoseconds } from '../../base/index.ts';
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
  /** Entries written lately, in order. */
  readonly #rewrites: { readonly lid: number; readonly port: number; atPs: Picoseconds }[] = [];
  /** Ports of every group: the subnet manager keeps no members. */
  groupPorts: readonly number[] = [];

  /** @param lid a unicast LID, @param port its output, from 1; {@link NO_PORT} drops */
  setPort(lid: number, port: number): void {
    if (lid <= 0 || lid >= LINEAR_ENTRIES)
      throw new InvariantError('LID of a linear entry', lid, `1 to ${LINEAR_ENTRIES - 1}`);
    this.#linear[lid] = port;
  }

  /** As {@link setPort}, while packets move: counts from the instant after. */
  rewritePort(lid: number, port: number, nowPs: Picoseconds): void {
    this.#rewrites.push({ lid, port, atPs: nowPs });
  }

  /** Whether packets to a LID go to a group. */
  isGroup(lid: number): boolean {
    return lid >= MULTICAST_LID_FIRST && lid !== PERMISSIVE_LID;
  }

  /** The output of a unicast LID, or {@link NO_PORT}. */
  portOf(lid: number, nowPs: Picoseconds): number {
    if (this.#rewrites.length > 0) this.#rewriteBefore(nowPs);
    return lid < LINEAR_ENTRIES ? this.#linear[lid]! : NO_PORT;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const rewrite of this.#rewrites) rewrite.atPs -= ps;
  }

  #rewriteBefore(nowPs: Picoseconds): void {
    while (this.#rewrites.length > 0 && this.#rewrites[0]!.atPs < nowPs) {
      const { lid, port } = this.#rewrites.shift()!;
      this.setPort(lid, port);
    }
  }

  inspect(): BlockState {
    const linear = this.#linear.slice();
    for (const { lid, port } of this.#rewrites) linear[lid] = port;
    const entries = [...linear.entries()].filter(([, port]) => port !== NO_PORT);
    return {
      linear: entries.map(([lid, port]) => [lid, port]),
      groupPorts: [...this.groupPorts],
    };
  }
}
