/**
 * Neighbours of a port of Ethernet: the MACs behind addresses, as Linux keeps them, whatever protocol asks for them.
 *
 *     nothing ─ asked for ─► incomplete ── answer ──► reachable ◄─► stale        stale: learnt of a request, or not asked for
 *                             │  asks at 0, 1 and 2 s
 *                             └── 3 s without an answer ──► failed ─ asked for ─► incomplete
 *
 * A MAC that is known is used in either state, for ever: RDMA sends past the kernel, which so never finds out whether it is still
 * right (Linux keeps a valid entry until its table has 128).
 *
 * Who asks waits for as long as it says, longer or shorter than the table tries. Sources: Linux 6.1, net/core/neighbour.c, net/ipv4/arp.c
 * (ARP_PARMS: mcast_solicit 3, retrans_time and locktime 1 s), drivers/infiniband/core/addr.c (process_one_req); RFC 4861, 7.2 and 10.
 */
import { bytesEqual, msToPs, psPerSecond, toHex } from '../../base/index.ts';
import type { Cpu, Stopwatch } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { errnoNumbers } from '../uapi.ts';

const solicitationsMax = 3;
const retransmitPs = psPerSecond;
/** The first of several answers stands for so long. */
const lockPs = psPerSecond;
/** Neighbours that are kept (gc_thresh3). */
const neighboursMax = 1024;

type NeighbourState = 'incomplete' | 'reachable' | 'stale' | 'failed';

/** Takes 6 bytes of MAC, or an errno. It must not wait. */
export type MacTaken = (outcome: Uint8Array | number) => void;

/** Somebody who waits for a MAC. */
interface Waiter {
  readonly taken: MacTaken;
  timer: ProtocolTimer | undefined;
}

interface Entry {
  readonly address: Uint8Array;
  state: NeighbourState;
  mac: Uint8Array | undefined;
  /** Solicitations since it was last asked for. */
  solicitations: number;
  timer: ProtocolTimer | undefined;
  /** Since its MAC or its state changed. */
  age: Stopwatch;
  readonly waiters: Set<Waiter>;
}

/** @template Thread what asks, and what limits of time run on */
export interface NeighbourTableParts<Thread extends Cpu = Cpu> {
  readonly timers: Pick<ProtocolTimers<Thread>, 'after'>;
  readonly newStopwatch: () => Stopwatch;
  /** Asks who has an address. It must not wait. */
  readonly solicit: (cpu: Thread, address: Uint8Array) => void;
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

  /**
   * Gives the MAC of an address: at once if it is known, else when an answer has come, or ETIMEDOUT.
   * @param address its bytes, always of one form: of ports of HCAs 16, as in a GID
   */
  resolve(cpu: Thread, address: Uint8Array, timeoutMs: number, taken: MacTaken): void {
    const entry = this.#entries.get(toHex(address)) ?? this.#add(address);
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
    const isSame = isKnown(entry) && bytesEqual(entry.mac!, mac);
    if (!isSame) this.#learn(entry, mac, 'stale');
  }

  /**
   * What ARP says of a neighbour, in an answer or to others: of several MACs the first stands for a second.
   * @returns false for one that nobody has asked for, or who is another for now
   */
  announced(address: Uint8Array, mac: Uint8Array, { isSolicited, overrides }: AnswerFlags): boolean {
    const entry = this.#entries.get(toHex(address));
    if (entry === undefined) return false;
    const isOther = isKnown(entry) && !bytesEqual(entry.mac!, mac);
    if (isOther && !overrides && entry.age.elapsedPs <= lockPs) return false;
    const isUnchanged = isKnown(entry) && !isOther;
    // A MAC that is the known one, and not asked for, says nothing new.
    if (isUnchanged && (!isSolicited || entry.state === 'reachable')) return true;
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
    if (entry === undefined || entry.state === 'failed') return false;
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
    else if (isSolicited) entry.state = 'reachable';
    return true;
  }

  /** The interface goes: who waits gets ENODEV. */
  close(): void {
    for (const entry of this.#entries.values()) {
      entry.timer?.cancel();
      this.#end(entry, errnoNumbers.ENODEV);
    }
    this.#entries.clear();
  }

  /** With the table full, the oldest goes that nobody waits for. */
  #add(address: Uint8Array): Entry {
    if (this.#entries.size >= neighboursMax) {
      const oldest = [...this.#entries].find(([, { state }]) => state !== 'incomplete');
      if (oldest !== undefined) this.#entries.delete(oldest[0]);
    }
    const entry: Entry = {
      address: Uint8Array.from(address),
      state: 'failed',
      mac: undefined,
      solicitations: 0,
      timer: undefined,
      age: this.#parts.newStopwatch(),
      waiters: new Set(),
    };
    this.#entries.set(toHex(address), entry);
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

  #learn(entry: Entry, mac: Uint8Array, state: 'reachable' | 'stale'): void {
    entry.timer?.cancel();
    if (entry.state === 'incomplete') this.counts.resolved++;
    entry.mac = Uint8Array.from(mac);
    entry.state = state;
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

const isKnown = ({ state }: Entry): boolean => state === 'reachable' || state === 'stale';
