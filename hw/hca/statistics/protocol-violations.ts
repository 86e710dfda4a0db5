/**
 * Counters of actions of software that no correct driver takes. They are counted by name and answered as hardware
 * would, never thrown.
 *
 * Promise: a count is one array increment, so that even a flood of bad doorbells costs no more than good ones.
 */

/** Violations and the index of their counters. The report lists those that occurred. */
export const violation = {
  /** A BAR0 access that is not one aligned dword. */
  registerAccessSize: 0,
  /** A write to a register that software may only read. */
  registerReadOnlyWrite: 1,
  /** An HCR write while GO is set. */
  commandWhileBusy: 2,
  /** A mailbox address that is not 4 KiB aligned. */
  mailboxMisaligned: 3,
  /** An EQ doorbell for an EQ that does not exist. */
  eventQueueUnknown: 4,
  /** An EQE dropped because software let the EQ fill up. */
  eventQueueOverrun: 5,
  /** An asynchronous event that MAP_EQ sends nowhere. */
  eventUnmapped: 6,
  /** An EQE whose place in host memory could not be found. */
  eventQueueAccess: 7,
} as const;

type ViolationName = keyof typeof violation;
export type Violation = (typeof violation)[ViolationName];

export class ProtocolViolations {
  readonly counts = new Float64Array(Object.keys(violation).length);

  count(index: Violation): void {
    this.counts[index] = this.counts[index]! + 1;
  }

  of(index: Violation): number {
    return this.counts[index]!;
  }

  /** The counters that are not zero, by name. */
  report(): Record<string, number> {
    const entries = Object.entries(violation).map(([name, index]) => [name, this.counts[index]!] as const);
    return Object.fromEntries(entries.filter(([, count]) => count > 0));
  }
}
