/**
 * Neighbours of a port of Ethernet: the MACs behind addresses, as Linux keeps them, whatever protocol asks for them.
 *
 *     nothing ─ asked for ─► incomplete ── answer ──► reachable ── 30 s unconfirmed ──► stale     stale: also learnt of a request, or not
 *                             │  asks at 0, 1 and 2 s     ▲ ▲                            │ a packet is sent         asked for
 *                             │                           │ └─ confirmed ───────────── delay
 *                             │                           └─── answer, confirmed ── probe ◄─┘ 5 s: asks the neighbour himself at 0, 1, 2 s
 *                             └── 3 s without an answer ──► failed ◄─ 3 s without one ──┘
 *
 * Of a neighbour whose packets the table hears of ({@link NeighbourTable.used}) it finds out whether its MAC is still right. RDMA sends past
 * the kernel: there a MAC that is known is used in any state, for ever (Linux keeps a valid entry until its table has 128).
 *
 * Who asks waits for as long as it says, longer or shorter than the table tries. Sources: Linux 6.1, net/core/neighbour.c, net/ipv4/arp.c
 * (ARP_PARMS: mcast_solicit and ucast_solicit 3, retrans_time and locktime 1 s), drivers/infiniband/core/addr.c (process_one_req); RFC 4861,
 * 7.2, 7.3 and 10 (whose REACHABLE_TIME is not randomised here).
 */
import { bytesEqual, msToPs, psPerSecond, toHex } from '../../base/index.ts';
import type { Cpu, Stopwatch } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { errnoNumbers } from '../uapi.ts';

const solicitationsMax = 3;
const retransmitPs = psPerSecond;
/** The first of several answers stands for so long. */
const lockPs = psPerSecond;
/** REACHABLE_TIME, DELAY_FIRST_PROBE_TIME. */
const reachablePs = 30 * psPerSecond;
const delayPs = 5 * psPerSecond;
/** Of several confirmations within so long the first counts. */
const confirmationPs = psPerSecond / 10;
/** Neighbours that are kept (gc_thresh3), beside those of the configuration. */
const neighboursMax = 1024;

/** `permanent`: of the configuration, whatever others say. */
type NeighbourState = 'incomplete' | 'reachable' | 'stale' | 'delay' | 'probe' | 'permanent' | 'failed';

/** Takes 6 bytes of MAC, or an errno. It must not wait. */
export type MacTaken = (outcome: Uint8Array | number) => void;

/** Somebody who waits for a MAC. */
interface Waiter {
  readonly taken: MacTaken;
  timer: ProtocolTimer | undefined;
}

/** A neighbour as those see it that send to it; it may have failed, or been forgotten, which is the same. */
export interface Neighbour {
  /** Its address in base 16. */
  readonly key: string;
  readonly address: Uint8Array;
  readonly state: NeighbourState;
}

interface Entry extends Neighbour {
  state: NeighbourState;
  mac: Uint8Array | undefined;
  /** Solicitations since it was last asked for, or probed. */
  solicitations: number;
  timer: ProtocolTimer | undefined;
  /** Since its MAC or its state changed. */
  age: Stopwatch;
  /** Since it was last known to be reachable. */
  confirmedAge: Stopwatch;
  readonly waiters: Set<Waiter>;
}

/** @template Thread what asks, and what limits of time run on */
export interface NeighbourTableParts<Thread extends Cpu = Cpu> {
  readonly timers: Pick<ProtocolTimers<Thread>, 'after'>;
  readonly newStopwatch: () => Stopwatch;
  /** Asks who has an address. It must not wait. */
  readonly solicit: (cpu: Thread, address: Uint8Array) => void;
  /** Asks a neighbour whether it still has its address. It must not wait. */
  readonly probe?: (cpu: Thread, address: Uint8Array, mac: Uint8Array) => void;
}

/** What an answer says beside a MAC. */
export interface AnswerFlags {
  /** It was asked for. */
  readonly isSolicited: boolean;
  /** It takes the place of a MAC that is known. */
  readonly overrides: boolean;
}

export class NeighbourTable<Thread extends Cpu = Cpu> {
  /** Addresses that were asked for: whose MAC has come, and which nobody has answered for. */
  readonly counts = { resolved: 0, unresolved: 0 };
  readonly #parts: NeighbourTableParts<Thread>;
  /** By their addresses, in the order in which they came. */
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

  /** The MAC of an address, if it is known; nobody is asked. */
  macOf(address: Uint8Array): Uint8Array | undefined {
    const entry = this.#entries.get(toHex(address));
    return entry !== undefined && isKnown(entry) ? entry.mac : undefined;
  }

  /** The neighbour of an address, whatever its state; nobody is asked. */
  find(address: Uint8Array): Neighbour | undefined {
    return this.#entries.get(toHex(address));
  }

  /** The MAC to which a packet for a neighbour goes now, undefined when it is not known. Who is not confirmed in time is asked. */
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

  /** A neighbour has acted upon a packet that it was sent: it can be reached (RFC 4861, 7.3.1). */
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
   * Gives the MAC of an address: at once if it is known, else when an answer has come, or ETIMEDOUT; ENOBUFS where the table is full of
   * neighbours that are looked for.
   * @param address its bytes, always of one form: of ports of HCAs 16, as in a GID
   */
  resolve(cpu: Thread, address: Uint8Array, timeoutMs: number, taken: MacTaken): void {
    const entry = this.#entries.get(toHex(address)) ?? this.#add(address);
    if (entry === undefined) return taken(errnoNumbers.ENOBUFS);
    if (isKnown(entry)) return taken(entry.mac!);
    const waiter: Waiter = { taken, timer: undefined };
    entry.waiters.add(waiter);
    waiter.timer = this.#parts.timers.after(msToPs(timeoutMs), (thread) => {
      entry.waiters.delete(waiter);
      // Linux looks once more, which has it ask again where it had given up.
      this.#ask(thread, entry);
      taken(errnoNumbers.ETIMEDOUT);
    });
    this.#ask(cpu, entry);
  }

  /** A neighbour has asked for one of this host's addresses, and so said who he is. */
  asked(address: Uint8Array, mac: Uint8Array): void {
    const entry = this.#entries.get(toHex(address)) ?? this.#add(address);
    if (entry === undefined || entry.state === 'permanent') return;
    const isSame = isKnown(entry) && bytesEqual(entry.mac!, mac);
    if (!isSame) this.#learn(entry, mac, 'stale');
  }

  /**
   * What ARP says of a neighbour, in an answer or to others: of several MACs the first stands for a second.
   * @returns false for one that nobody has asked for, or who is another for now
   */
  announced(address: Uint8Array, mac: Uint8Array, { isSolicited, overrides }: AnswerFlags): boolean {
    const entry = this.#entries.get(toHex(address));
    if (entry === undefined || entry.state === 'permanent') return false;
    const isOther = isKnown(entry) && !bytesEqual(entry.mac!, mac);
    if (isOther && !overrides && entry.age.exactElapsedPs <= lockPs) return false;
    const isUnchanged = isKnown(entry) && !isOther;
    // A MAC that is the known one, and not asked for, says nothing new.
    if (isUnchanged && !isSolicited) return true;
    if (isUnchanged && entry.state === 'reachable') {
      this.#confirm(entry);
      return true;
    }
    this.#learn(entry, mac, isSolicited ? 'reachable' : 'stale');
    return true;
  }

  /** An advertisement, by RFC 4861, 7.2.5. @returns false for one that nobody has asked for, or that must change nothing */
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

  /** The interface goes: who waits gets ENODEV. */
  close(): void {
    for (const entry of this.#entries.values()) {
      entry.timer?.cancel();
      entry.state = 'failed';
      this.#end(entry, errnoNumbers.ENODEV);
    }
    this.#entries.clear();
    this.#permanentCount = 0;
  }

  /** With the table full, the oldest goes that nobody waits for; undefined when there is none. */
  #add(address: Uint8Array): Entry | undefined {
    if (this.#entries.size - this.#permanentCount >= neighboursMax && !this.#forgetOldest()) return undefined;
    return this.#newEntry(address);
  }

  /** Undefined of one that has been forgotten. */
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

  /** Begins to ask, unless that is under way or needless. */
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
