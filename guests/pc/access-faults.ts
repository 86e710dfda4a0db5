/**
 * Faults of the path between a PC's processor and its function, at chosen accesses of the BARs. What happens obeys PCI Express
 * (Base Specification 4.0):
 *
 *     loads    all ones      the answer of a root complex to a completion with an error status (2.3.2)
 *              late          the completion takes longer; the load after it waits, too
 *              timeout       the completion never comes, and the root port's timer expires (2.8): all ones
 *     stores   lost          a posted write that a switch drops, with nothing to tell the processor
 *              late          later ones, and loads, do not pass it (2.4.1, table 2-39): the next load pushes it out
 *              twice         no link does so, since it drops what it has received (3.6.2); a defective bridge does
 *     either   removal       the function is gone from this access on (6.7.1.2): ones, no effect, no DMA, no interrupt
 */
import { ConfigurationError } from '../../base/index.ts';

/** Kinds by the accesses at which they happen. */
const loadFaults = ['load-ones', 'load-late', 'load-timeout'] as const;
const storeFaults = ['store-lost', 'store-late', 'store-twice'] as const;
export type AccessFaultKind = (typeof loadFaults)[number] | (typeof storeFaults)[number] | 'removal';

export interface AccessFault {
  readonly kind: AccessFaultKind;
  /** Which load, store or (removal) access from now on, from 1; accesses of the MSI-X table do not count. */
  readonly nth: number;
  /** Delay of a late load or store, from 1 ns to 10 s; or time to a timeout, 50 ms if left out (Device Control 2, 7.5.3.16). */
  readonly delayPs?: number | undefined;
}

const timeoutPs = 50_000_000_000;
const delayMinPs = 1000;
const delayMaxPs = 1e13;
/** A driver's whole life has fewer accesses. */
const nthMax = 1e9;
const pendingMax = 1024;

interface Pending extends AccessFault {
  /** Count of its accesses at which it happens. */
  readonly at: number;
}

export class AccessFaults {
  /** Whether the function is gone. */
  isRemoved = false;
  /** Faults that have happened. */
  happenedCount = 0;
  #loads = 0;
  #stores = 0;
  readonly #pending: Pending[] = [];

  /** Faults that have not happened yet. */
  get pendingCount(): number {
    return this.#pending.length;
  }

  /** @throws ConfigurationError */
  inject(fault: AccessFault): void {
    const { kind, nth, delayPs } = fault;
    const kinds = [...loadFaults, ...storeFaults, 'removal'];
    if (!kinds.includes(kind)) throw new ConfigurationError('kind', kind, `one of ${kinds.join(', ')}`);
    if (!Number.isInteger(nth) || nth < 1 || nth > nthMax)
      throw new ConfigurationError('nth', nth, `a whole number from 1 to ${nthMax}`);
    const isDelayed = kind === 'load-late' || kind === 'store-late';
    const mayBeDelayed = isDelayed || kind === 'load-timeout';
    if (
      delayPs === undefined ? isDelayed : !mayBeDelayed || !(delayPs >= delayMinPs && delayPs <= delayMaxPs)
    )
      throw new ConfigurationError(
        'delayPs',
        delayPs ?? 'left out',
        mayBeDelayed ? `picoseconds from ${delayMinPs} to ${delayMaxPs}` : `left out for ${kind}`,
      );
    if (this.#pending.length >= pendingMax)
      throw new ConfigurationError(
        'access faults',
        this.#pending.length + 1,
        `at most ${pendingMax} at a time`,
      );
    this.#pending.push({ ...fault, at: this.#countOf(kind) + nth });
  }

  /** The fault of the load that begins, if it has one. */
  atLoad(): AccessFault | undefined {
    this.#loads++;
    return this.#taken(loadFaults);
  }

  /** The fault of the store that begins, if it has one. */
  atStore(): AccessFault | undefined {
    this.#stores++;
    return this.#taken(storeFaults);
  }

  #countOf(kind: AccessFaultKind): number {
    if (kind === 'removal') return this.#loads + this.#stores;
    return (loadFaults as readonly string[]).includes(kind) ? this.#loads : this.#stores;
  }

  #taken(kinds: readonly string[]): AccessFault | undefined {
    if (this.#pending.length === 0) return undefined;
    const index = this.#pending.findIndex(
      ({ kind, at }) => at === this.#countOf(kind) && (kind === 'removal' || kinds.includes(kind)),
    );
    const [fault] = index < 0 ? [] : this.#pending.splice(index, 1);
    if (fault === undefined) return undefined;
    this.happenedCount++;
    if (fault.kind === 'removal') this.isRemoved = true;
    return fault.kind === 'load-timeout' ? { delayPs: timeoutPs, ...fault } : fault;
  }
}
