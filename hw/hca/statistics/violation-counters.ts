/** Violations of the interface or the protocol that the data path answers by refusing, counted by name. */
const dataPathViolations = {
  /** A send doorbell or BlueFlame post for a QP that does not exist. */
  doorbellUnknownQp: 0,
  /** A send doorbell on a UAR page that is not the QP's. */
  doorbellForeignUar: 1,
  /** A doorbell for a QP in a state that sends nothing. */
  doorbellQpState: 2,
  /** A CQ arm for a CQ that does not exist, or on a UAR page that is not the CQ's. */
  armUnknownCq: 3,
  armForeignUar: 4,
  /** A CQ arm of a round that has already fired. */
  armStale: 5,
  /** A write of BAR2 that hits no register, or with the wrong size. */
  doorbellOffset: 6,
  /** A BlueFlame post overtaken by another one in the same register half: executed from memory instead. */
  blueFlameTorn: 7,
  /** Packets dropped: QP unknown, in the wrong state, or of a service that is not there. */
  packetUnknownQp: 8,
  packetQpState: 9,
  packetOpcode: 10,
  /** A packet for another port's LID. */
  packetForeignLid: 11,
  /** A packet whose GRH is for another port, or is not the one that the QP's path demands. */
  packetForeignGid: 12,
  /** Datagrams dropped for their Q_Key or P_Key. */
  datagramQkey: 13,
  datagramPkey: 14,
  /** Packets of connections dropped for their P_Key. */
  packetPkey: 15,
  /** A frame that its tag made longer than the port sends. */
  frameTooLong: 16,
} as const;

export type DataPathViolation = keyof typeof dataPathViolations;

export class ViolationCounters {
  readonly counts = new Float64Array(Object.keys(dataPathViolations).length);

  count(name: DataPathViolation): void {
    const index = dataPathViolations[name];
    this.counts[index] = this.counts[index]! + 1;
  }

  /** The counters that are not zero, by name. */
  report(): Record<string, number> {
    const entries = Object.entries(dataPathViolations).map(
      ([name, index]) => [name, this.counts[index]!] as const,
    );
    return Object.fromEntries(entries.filter(([, count]) => count > 0));
  }
}
