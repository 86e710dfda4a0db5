/**
 * Partition enforcement of one port of a switch: its P_Key table, and whether it checks packets that it receives and sends
 * (IBTA volume 1, 10.9, 14.2.5.6, 14.2.5.7, 18.2.4).
 *
 * Promise: a setting of a subnet manager applies to packets from the next instant on.
 */
import type { Picoseconds } from '../../base/index.ts';
import { isSamePartition } from '../management/index.ts';

/** PartitionEnforcementCap: entries of the table. */
export const FILTER_ENTRIES = 32;

export type FilterDirection = 'inbound' | 'outbound';

/** P_Key table and directions, as a subnet manager sets them. */
interface Setting {
  readonly pkeys: Uint16Array;
  readonly inbound: boolean;
  readonly outbound: boolean;
}

const defaultPkey = 0xffff;
const fullMember = 0x8000;

export class PartitionFilter {
  #setting: Setting = { pkeys: tableOf([defaultPkey]), inbound: false, outbound: false };
  /** The setting before the last instant at which it was set, and that instant. */
  #before = this.#setting;
  #setPs = Number.NEGATIVE_INFINITY;

  get pkeys(): Readonly<Uint16Array> {
    return this.#setting.pkeys;
  }

  /** PartitionEnforcementInbound and PartitionEnforcementOutbound. */
  get inbound(): boolean {
    return this.#setting.inbound;
  }

  get outbound(): boolean {
    return this.#setting.outbound;
  }

  setPkeys(pkeys: readonly number[], nowPs: Picoseconds): void {
    this.#set({ ...this.#setting, pkeys: tableOf(pkeys) }, nowPs);
  }

  setDirections(inbound: boolean, outbound: boolean, nowPs: Picoseconds): void {
    this.#set({ ...this.#setting, inbound, outbound }, nowPs);
  }

  /** Enforces these partitions both ways from power-on. The entries are full, so that limited members of the host pass. */
  enforce(partitions: readonly number[]): void {
    const pkeys = tableOf(partitions.map((partition) => partition | fullMember));
    this.#setting = { pkeys, inbound: true, outbound: true };
  }

  /** Whether a packet may pass the port. */
  admits(direction: FilterDirection, pkey: number, nowPs: Picoseconds): boolean {
    const setting = nowPs === this.#setPs ? this.#before : this.#setting;
    if (!setting[direction]) return true;
    for (const entry of setting.pkeys) if (isSamePartition(entry, pkey)) return true;
    return false;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#setPs -= ps;
  }

  #set(setting: Setting, nowPs: Picoseconds): void {
    if (nowPs > this.#setPs) this.#before = this.#setting;
    this.#setPs = nowPs;
    this.#setting = setting;
  }
}

function tableOf(pkeys: readonly number[]): Uint16Array {
  const table = new Uint16Array(FILTER_ENTRIES);
  table.set(pkeys);
  return table;
}
