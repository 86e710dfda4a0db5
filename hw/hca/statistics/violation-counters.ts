/** Refusals of the data path, counted by name, and the party that each accuses. */

/**
 * `rule`: software broke a rule of the interface. `lawful`: correct software may be refused so, too, and loses nothing.
 * `packet`: a packet was discarded because this port has no use for it; its sender may be wrong, or the packet late.
 */
export type RefusalKind = 'rule' | 'lawful' | 'packet';

/** Index among the counters and kind of each violation, by name. */
const refusals = {
  /** A send doorbell or BlueFlame post for a QP that does not exist. */
  doorbellUnknownQp: [0, 'rule'],
  /** A send doorbell on a UAR page that is not the QP's. */
  doorbellForeignUar: [1, 'rule'],
  /** A doorbell for a QP in a state that sends nothing. */
  doorbellQpState: [2, 'rule'],
  /** A CQ arm for a CQ that does not exist, or on a UAR page that is not the CQ's. */
  armUnknownCq: [3, 'rule'],
  armForeignUar: [4, 'rule'],
  /**
   * A CQ arm of a round that has fired: software that has not read the round's event yet arms with the same sequence
   * number (sheet 6.10; libmlx4 increments it in ibv_get_cq_event). The event in flight serves both.
   */
  armStale: [5, 'lawful'],
  /** A write of BAR2 that hits no register, or with the wrong size. */
  doorbellOffset: [6, 'rule'],
  /** A BlueFlame post overtaken by another one in the same register half: executed from memory instead. */
  blueFlameTorn: [7, 'rule'],
  /** Packets for an unknown QP, one in the wrong state, or a service that does not exist (IBTA 9.6.1.1: discarded silently). */
  packetUnknownQp: [8, 'packet'],
  packetQpState: [9, 'packet'],
  packetOpcode: [10, 'packet'],
  /** A packet for another port's LID. */
  packetForeignLid: [11, 'packet'],
  /** A packet whose GRH is for another port, or is not the one that the QP's path demands. */
  packetForeignGid: [12, 'packet'],
  /** Datagrams discarded for their Q_Key or P_Key. */
  datagramQkey: [13, 'packet'],
  datagramPkey: [14, 'packet'],
  /** Packets of connections discarded for their P_Key. */
  packetPkey: [15, 'packet'],
  /** A frame that its tag made longer than the port sends. */
  frameTooLong: [16, 'rule'],
} as const satisfies Record<string, readonly [index: number, kind: RefusalKind]>;

export type DataPathViolation = keyof typeof refusals;

const kinds: ReadonlyMap<string, RefusalKind> = new Map(
  Object.entries(refusals).map(([name, [, kind]]) => [name, kind]),
);

/** Returns the party that a counter of violations accuses; those of the control side all count broken rules. */
export const refusalKindOf = (name: string): RefusalKind => kinds.get(name) ?? 'rule';

export class ViolationCounters {
  readonly counts = new Float64Array(Object.keys(refusals).length);

  count(name: DataPathViolation): void {
    const [index] = refusals[name];
    this.counts[index] = this.counts[index]! + 1;
  }

  /** The counters that are not zero, by name. */
  report(): Record<string, number> {
    const entries = Object.entries(refusals).map(([name, [index]]) => [name, this.counts[index]!] as const);
    return Object.fromEntries(entries.filter(([, count]) => count > 0));
  }
}
