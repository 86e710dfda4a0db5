/**
 * The forwarding tables of an InfiniBand switch: one output port for each unicast LID, and a set of ports for each multicast LID (IBTA volume
 * 1, 14.2.5.10 to 14.2.5.12 and 18.2.4). A subnet manager writes them, by the entry or in the blocks of its attributes.
 */
import { InvariantError, type Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

/** LIDs of groups begin here; 0xffff is the permissive LID. */
const MULTICAST_LID_FIRST = 0xc000;
const PERMISSIVE_LID = 0xffff;
/** Entries of the linear table: 48 Ki, as InfiniScale IV has (Abts and Kim, figure 6.9). */
export const LINEAR_ENTRIES = MULTICAST_LID_FIRST;
/** Entries of the multicast table: every LID of a group. */
export const MULTICAST_ENTRIES = PERMISSIVE_LID - MULTICAST_LID_FIRST;
/** An entry without a port: packets are dropped. */
export const NO_PORT = 255;

/** Entries of a block of the linear table, of one of the multicast table, and ports of a mask. */
const LINEAR_BLOCK = 64;
const MULTICAST_BLOCK = 32;
const MASK_PORTS = 16;

/** A change that counts from the instant after `atPs`. */
type Change = { atPs: Picoseconds } & (
  | { readonly kind: 'entry'; readonly lid: number; readonly port: number }
  | { readonly kind: 'top'; readonly top: number }
  | { readonly kind: 'linear'; readonly block: number; readonly ports: Uint8Array }
  | {
      readonly kind: 'groups';
      readonly block: number;
      readonly position: number;
      readonly masks: readonly number[];
    }
);

interface Entries {
  readonly linear: Uint8Array;
  /** Output ports of groups whose entries were written. */
  readonly groups: Map<number, readonly number[]>;
  /** Greatest LID that the linear table forwards (SwitchInfo.LinearFDBTop). */
  top: number;
}

export class ForwardingTables {
  readonly #entries: Entries = {
    linear: new Uint8Array(LINEAR_ENTRIES).fill(NO_PORT),
    groups: new Map(),
    top: LINEAR_ENTRIES - 1,
  };
  /** Changes of late, in order. */
  readonly #changes: Change[] = [];
  /** Ports of every group whose entry was not written: a subnet manager that keeps no members. */
  groupPorts: readonly number[] = [];

  /** @param lid a unicast LID, @param port its output, from 1; 0 the switch itself; {@link NO_PORT} drops */
  setPort(lid: number, port: number): void {
    if (lid <= 0 || lid >= LINEAR_ENTRIES)
      throw new InvariantError('LID of a linear entry', lid, `1 to ${LINEAR_ENTRIES - 1}`);
    this.#entries.linear[lid] = port;
  }

  /** As {@link setPort}, while packets move: counts from the instant after. */
  rewritePort(lid: number, port: number, nowPs: Picoseconds): void {
    this.#changes.push({ kind: 'entry', lid, port, atPs: nowPs });
  }

  /** Whether packets to a LID go to a group. */
  isGroup(lid: number): boolean {
    return lid >= MULTICAST_LID_FIRST && lid !== PERMISSIVE_LID;
  }

  /** The output of a unicast LID, or {@link NO_PORT}. */
  portOf(lid: number, nowPs: Picoseconds): number {
    if (this.#changes.length > 0) this.#changeBefore(nowPs);
    const { linear, top } = this.#entries;
    return lid <= top ? linear[lid]! : NO_PORT;
  }

  /** The outputs of a group. */
  portsOf(lid: number, nowPs: Picoseconds): readonly number[] {
    if (this.#changes.length > 0) this.#changeBefore(nowPs);
    return this.#entries.groups.get(lid) ?? this.groupPorts;
  }

  // ---- as attributes have them: a Get sees all changes, packets those before their instant ----

  get linearTop(): number {
    return this.#changed().top;
  }

  setLinearTop(top: number, nowPs: Picoseconds): void {
    this.#changes.push({ kind: 'top', top: Math.min(top, LINEAR_ENTRIES - 1), atPs: nowPs });
  }

  /** Ports of 64 LIDs; undefined if the block does not exist. */
  linearBlock(block: number): Uint8Array | undefined {
    if (!hasLids(block)) return undefined;
    return this.#changed().linear.slice(block * LINEAR_BLOCK, (block + 1) * LINEAR_BLOCK);
  }

  /** @returns false if the block does not exist */
  setLinearBlock(block: number, ports: Uint8Array, nowPs: Picoseconds): boolean {
    if (!hasLids(block)) return false;
    this.#changes.push({ kind: 'linear', block, ports: ports.slice(0, LINEAR_BLOCK), atPs: nowPs });
    return true;
  }

  /** Masks of 32 groups for the 16 ports of a position; undefined if the block does not exist. */
  multicastBlock(block: number, position: number): number[] | undefined {
    if (!hasGroups(block)) return undefined;
    const { groups } = this.#changed();
    return Array.from({ length: MULTICAST_BLOCK }, (_, index) =>
      maskOf(groups.get(groupOf(block, index)) ?? this.groupPorts, position),
    );
  }

  /** The masks replace the ports of their position; other ports of the groups stay. @returns false if the block does not exist */
  setMulticastBlock(block: number, position: number, masks: readonly number[], nowPs: Picoseconds): boolean {
    if (!hasGroups(block)) return false;
    this.#changes.push({ kind: 'groups', block, position, masks: [...masks], atPs: nowPs });
    return true;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const change of this.#changes) change.atPs -= ps;
  }

  #changeBefore(nowPs: Picoseconds): void {
    while (this.#changes.length > 0 && this.#changes[0]!.atPs < nowPs)
      this.#change(this.#entries, this.#changes.shift()!);
  }

  /** The entries with all changes. */
  #changed(): Entries {
    if (this.#changes.length === 0) return this.#entries;
    const { linear, groups, top } = this.#entries;
    const changed = { linear: linear.slice(), groups: new Map(groups), top };
    for (const change of this.#changes) this.#change(changed, change);
    return changed;
  }

  #change(entries: Entries, change: Change): void {
    switch (change.kind) {
      case 'entry':
        entries.linear[change.lid] = change.port;
        return;
      case 'top':
        entries.top = change.top;
        return;
      case 'linear':
        entries.linear.set(change.ports, change.block * LINEAR_BLOCK);
        return;
      case 'groups':
        for (const [index, mask] of change.masks.entries()) {
          const lid = groupOf(change.block, index);
          const ports = entries.groups.get(lid) ?? this.groupPorts;
          if (this.isGroup(lid)) entries.groups.set(lid, withMask(ports, change.position, mask));
        }
    }
  }

  inspect(): BlockState {
    const { linear, groups } = this.#changed();
    const entries = [...linear.entries()].filter(([, port]) => port !== NO_PORT);
    return {
      linear: entries.map(([lid, port]) => [lid, port]),
      groupPorts: [...this.groupPorts],
      ...(groups.size === 0 ? {} : { groups: [...groups].map(([lid, ports]) => [lid, [...ports]]) }),
    };
  }
}

const hasLids = (block: number): boolean => (block + 1) * LINEAR_BLOCK <= LINEAR_ENTRIES;
const hasGroups = (block: number): boolean => block * MULTICAST_BLOCK < MULTICAST_ENTRIES;

const groupOf = (block: number, index: number): number =>
  MULTICAST_LID_FIRST + block * MULTICAST_BLOCK + index;

/** The bits of those of the ports that belong to a position. */
const maskOf = (ports: readonly number[], position: number): number =>
  ports
    .filter((port) => Math.floor(port / MASK_PORTS) === position)
    .reduce((mask, port) => mask | (1 << (port % MASK_PORTS)), 0);

/** The ports with those of a position replaced by the bits of a mask, ascending. */
function withMask(ports: readonly number[], position: number, mask: number): readonly number[] {
  const others = ports.filter((port) => Math.floor(port / MASK_PORTS) !== position);
  const own = Array.from({ length: MASK_PORTS }, (_, bit) => bit)
    .filter((bit) => (mask & (1 << bit)) !== 0)
    .map((bit) => position * MASK_PORTS + bit);
  return [...others, ...own].toSorted((left, right) => left - right);
}
