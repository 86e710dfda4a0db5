/**
 * Neighbours of an Ethernet port: the MACs of addresses, as Linux keeps them, for any protocol.
 *
 *     nothing ─ asked for ─► incomplete ── answer ──► reachable ── 30 s unconfirmed ──► stale     stale: also learnt of a request, or not
 *                             │  asks at 0, 1 and 2 s     ▲ ▲                            │ a packet is sent         asked for
 *                             │                           │ └─ confirmed ───────────── delay
 *                             │                           └─── answer, confirmed ── probe ◄─┘ 5 s: asks the neighbour himself at 0, 1, 2 s
 *                             └── 3 s without an answer ──► failed ◄─ 3 s without one ──┘
 *
 * The table verifies the MAC of a neighbour if the kernel reports each packet to it ({@link NeighbourTable.used}). RDMA
 * bypasses the kernel: it uses a known MAC in any state, indefinitely (Linux keeps a valid entry until its table has 128).
 *
 * Each caller sets its own time limit, which may be longer or shorter than the table's attempts. Sources: Linux 6.1,
 * net/core/neighbour.c, net/ipv4/arp.c (ARP_PARMS: mcast_solicit and ucast_solicit 3, retrans_time and locktime 1 s),
 * drivers/infiniband/core/addr.c (process_one_req); RFC 4861, 7.2, 7.3 and 10 (whose REACHABLE_TIME is not randomised here).
 */
import { bytesEqual, msToPs, psPerSecond, toHex } from '../../base/index.ts';
import type { Cpu, Stopwatch } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { errnoNumbers } from '../uapi.ts';

const solicitationsMax = 3;
const retransmitPs = psPerSecond;
/** The first of several answers is kept for this long. */
const lockPs = psPerSecond;
/** REACHABLE_TIME, DELAY_FIRST_PROBE_TIME. */
const reachablePs = 30 * psPerSecond;
const delayPs = 5 * psPerSecond;
/** Interval within which only the first of several confirmations counts. */
const confirmationPs = psPerSecond / 10;
/** Limit of neighbours (gc_thresh3), in addition to those of the configuration. */
const neighboursMax = 1024;

/** `permanent`: set by the configuration and never changed by packets. */
type NeighbourState = 'incomplete' | 'reachable' | 'stale' | 'delay' | 'probe' | 'permanent' | 'failed';

/** Receives 6 bytes of MAC, or an errno. It must not wait. */
export type MacTaken = (outcome: Uint8Array | number) => void;

/** A caller that waits for a MAC. */
interface Waiter {
  readonly taken: MacTaken;
  timer: ProtocolTimer | undefined;
}

/** A neighbour as its senders see it. A failed one and a forgotten one look the same. */
export interface Neighbour {
  /** The neighbour's address in base 16. */
  readonly key: string;
  readonly address: Uint8Array;
  readonly state: NeighbourState;
}

interface Entry extends Neighbour {
  state: NeighbourState;
  mac: Uint8Array | undefined;
  /** Solicitations since the last request or probe began. */
  solicitations: number;
  timer: ProtocolTimer | undefined;
  /** Time of the last change of its MAC or state. */
  age: Stopwatch;
  /** Time when it was last known to be reachable. */
  confirmedAge: Stopwatch;
  readonly waiters: Set<Waiter>;
}

/** @template Thread the requester, on which time limits run */
export interface NeighbourTableParts<Thread extends Cpu = Cpu> {
  readonly timers: Pick<ProtocolTimers<Thread>, 'after'>;
  readonly newStopwatch: () => Stopwatch;
  /** Requests the owner of an address. It must not wait. */
  readonly solicit: (cpu: Thread, address: Uint8Array) => void;
  /** Asks a neighbour whether it still has its address. It must not wait. */
  readonly probe?: (cpu: Thread, address: Uint8Array, mac: Uint8Array) => void;
}

/** Contents of an answer besides the MAC. */
export interface AnswerFlags {
  /** It was solicited. */
  readonly isSolicited: boolean;
  /** It replaces a known MAC. */
  readonly overrides: boolean;
}

export class NeighbourTable<Thread extends Cpu = Cpu> {
  /** Requested addresses: those whose MAC has arrived, and those without an answer. */
  readonly counts = { resolved: 0, unresolved: 0 };
  readonly #parts: NeighbourTableParts<Thread>;
  /** Neighbours by address, in order of arrival. */
  readonly #entries = new Map<string, Entry>();
  #permanentCount = 0;

  constructor(parts: NeighbourTableParts<Thread>) {
    this.#parts = parts;
  }

  /** The state of every neighbour, by its address in base 16. */
  inspect(): Record<string, { readonly state: NeighbourState; readonly mac: string }> {
    return Object.fromEntries(
      [...this.#entries].map(([key, { state, mac }]) => [
        key,
        { state, mac: mac === undefined ? '' : toHex(mac) },
      ]),
    );
  }

  /** The MAC of an address, if it is known; sends no request. */
  macOf(address: Uint8Array): Uint8Array | undefined {
    const entry = this.#entries.get(toHex(address));
    return entry !== undefined && isKnown(entry) ? entry.mac : undefined;
  }

  /** The neighbour of an address, in any state; sends no request. */
  find(address: Uint8Array): Neighbour | undefined {
    return this.#entries.get(toHex(address));
  }

  /** The MAC for a packet to a neighbour, undefined if it is not known. A neighbour that is not confirmed in time is probed. */
  used(neighbour: Neighbour): Uint8Array | undefined {
    const entry = this.#ownEntry(neighbour);
    if (entry === undefined || !isKnown(entry)) return undefined;
    if (entry.state === 'reachable' && entry.confirmedAge.exactElapsedPs >= reachablePs)
      entry.state = 'stale';
    if (entry.state === 'stale') {
      entry.state = 'delay';
      entry.timer = this.#parts.timers.after(delayPs, (thread) => {
        entry.state = 'probe';
        entry.solicitations = 0;
        this.#probe(thread, entry);
      });
    }
    return entry.mac;
  }

  /** A neighbour has acted on a packet sent to it: it is reachable (RFC 4861, 7.3.1). */
  confirmed(neighbour: Neighbour): void {
    const entry = this.#ownEntry(neighbour);
    if (entry === undefined || !isKnown(entry) || entry.state === 'permanent') return;
    const isNews = entry.state !== 'reachable' || entry.confirmedAge.exactElapsedPs >= confirmationPs;
    if (isNews) this.#confirm(entry);
  }

  /** A neighbour of the configuration. */
  addPermanent(address: Uint8Array, mac: Uint8Array): void {
    const entry = this.#newEntry(address);
    entry.state = 'permanent';
    entry.mac = mac;
    this.#permanentCount++;
  }

  /**
   * Resolves the MAC of an address: at once if it is known, otherwise when an answer arrives, or ETIMEDOUT; ENOBUFS if the
   * table is full of unresolved neighbours.
   * @param address its bytes, always of one form: for HCA ports 16, as in a GID
   */
  resolve(cpu: Thread, address: Uint8Array, timeoutMs: number, taken: MacTaken): void {
    const entry = this.#entries.get(toHex(address)) ?? this.#add(address);
    if (entry === undefined) return taken(errnoNumbers.ENOBUFS);
    if (isKnown(entry)) return taken(entry.mac!);
    const waiter: Waiter = { taken, timer: undefined };
    entry.waiters.add(waiter);
    waiter.timer = this.#parts.timers.after(msToPs(timeoutMs), (thread) => {
      entry.waiters.delete(waiter);
      // Linux checks once more, and so asks again after it has given up.
      this.#ask(thread, entry);
      taken(errnoNumbers.ETIMEDOUT);
    });
    this.#ask(cpu, entry);
  }

  /** Handles a neighbour's request for one of this host's addresses, which announces its own. */
  asked(address: Uint8Array, mac: Uint8Array): void {
    const entry = this.#entries.get(toHex(address)) ?? this.#add(address);
    if (entry === undefined || entry.state === 'permanent') return;
    const isSame = isKnown(entry) && bytesEqual(entry.mac!, mac);
    if (!isSame) this.#learn(entry, mac, 'stale');
  }

  /**
   * Handles a MAC announced by ARP, in an answer or to other stations: the first of several MACs is kept for a second.
   * @returns false if the neighbour was not requested, or keeps another MAC for now
   */
  announced(address: Uint8Array, mac: Uint8Array, { isSolicited, overrides }: AnswerFlags): boolean {
    const entry = this.#entries.get(toHex(address));
    if (entry === undefined || entry.state === 'permanent') return false;
    const isOther = isKnown(entry) && !bytesEqual(entry.mac!, mac);
    if (isOther && !overrides && entry.age.exactElapsedPs <= lockPs) return false;
    const isUnchanged = isKnown(entry) && !isOther;
    // A MAC that is already known and was not requested carries no news.
    if (isUnchanged && !isSolicited) return true;
    if (isUnchanged && entry.state === 'reachable') {
      this.#confirm(entry);
      return true;
    }
    this.#learn(entry, mac, isSolicited ? 'reachable' : 'stale');
    return true;
  }

  /** Handles an advertisement by RFC 4861, 7.2.5. @returns false if it was not requested, or must change nothing */
  advertised(
    address: Uint8Array,
    mac: Uint8Array | undefined,
    { isSolicited, overrides }: AnswerFlags,
  ): boolean {
    const entry = this.#entries.get(toHex(address));
    if (entry === undefined || entry.state === 'failed' || entry.state === 'permanent') return false;
    if (!isKnown(entry)) {
      if (mac === undefined) return false;
      this.#learn(entry, mac, isSolicited ? 'reachable' : 'stale');
      return true;
    }
    const isOther = mac !== undefined && !bytesEqual(entry.mac!, mac);
    if (isOther && !overrides) {
      if (entry.state === 'reachable') entry.state = 'stale';
      return false;
    }
    if (isOther) this.#learn(entry, mac, isSolicited ? 'reachable' : 'stale');
    else if (isSolicited) this.#confirm(entry);
    return true;
  }

  /** The interface is being closed: waiting callers get ENODEV. */
  close(): void {
    for (const entry of this.#entries.values()) {
      entry.timer?.cancel();
      entry.state = 'failed';
      this.#end(entry, errnoNumbers.ENODEV);
    }
    this.#entries.clear();
    this.#permanentCount = 0;
  }

  /** If the table is full, removes the oldest neighbour without a waiting caller; undefined if every neighbour has one. */
  #add(address: Uint8Array): Entry | undefined {
    if (this.#entries.size - this.#permanentCount >= neighboursMax && !this.#forgetOldest()) return undefined;
    return this.#newEntry(address);
  }

  /** Undefined if it has been forgotten. */
  #ownEntry(neighbour: Neighbour): Entry | undefined {
    const entry = this.#entries.get(neighbour.key);
    return entry === neighbour ? entry : undefined;
  }

  #forgetOldest(): boolean {
    for (const [key, entry] of this.#entries) {
      if (entry.state === 'incomplete' || entry.state === 'permanent') continue;
      entry.timer?.cancel();
      entry.state = 'failed';
      this.#entries.delete(key);
      return true;
    }
    return false;
  }

  #newEntry(address: Uint8Array): Entry {
    const key = toHex(address);
    const entry: Entry = {
      key,
      address: Uint8Array.from(address),
      state: 'failed',
      mac: undefined,
      solicitations: 0,
      timer: undefined,
      age: this.#parts.newStopwatch(),
      confirmedAge: this.#parts.newStopwatch(),
      waiters: new Set(),
    };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Begins to send requests, unless that is in progress or unnecessary. */
  #ask(cpu: Thread, entry: Entry): void {
    if (entry.state !== 'failed') return;
    entry.state = 'incomplete';
    entry.solicitations = 0;
    this.#solicit(cpu, entry);
  }

  #solicit(cpu: Thread, entry: Entry): void {
    entry.solicitations++;
    entry.timer = this.#parts.timers.after(retransmitPs, (thread) => {
      if (entry.solicitations < solicitationsMax) this.#solicit(thread, entry);
      else {
        entry.state = 'failed';
        this.counts.unresolved++;
      }
    });
    this.#parts.solicit(cpu, entry.address);
  }

  #probe(cpu: Thread, entry: Entry): void {
    entry.solicitations++;
    entry.timer = this.#parts.timers.after(retransmitPs, (thread) => {
      if (entry.solicitations < solicitationsMax) this.#probe(thread, entry);
      else entry.state = 'failed';
    });
    this.#parts.probe?.(cpu, entry.address, entry.mac!);
  }

  #confirm(entry: Entry): void {
    entry.timer?.cancel();
    entry.state = 'reachable';
    entry.confirmedAge = this.#parts.newStopwatch();
  }

  #learn(entry: Entry, mac: Uint8Array, state: 'reachable' | 'stale'): void {
    entry.timer?.cancel();
    if (entry.state === 'incomplete') this.counts.resolved++;
    entry.mac = Uint8Array.from(mac);
    entry.state = state;
    if (state === 'reachable') entry.confirmedAge = this.#parts.newStopwatch();
    entry.age = this.#parts.newStopwatch();
    this.#end(entry, entry.mac);
  }

  #end(entry: Entry, outcome: Uint8Array | number): void {
    for (const { timer, taken } of entry.waiters) {
      timer?.cancel();
      taken(outcome);
    }
    entry.waiters.clear();
  }
}

const isKnown = ({ state }: Neighbour): boolean => state !== 'incomplete' && state !== 'failed';
