/**
 * Reports to the device when a dword of memory differs from the value that the device has read.
 *
 *     device ── monitor (number, address, dword) ──► compare ── differs ──► report, once
 *                                                       ▲
 *            a write to the page of a host's memory ────┤
 *            every millisecond, in a guest's memory ────┘
 *
 * A card that waits for software to change a dword of memory, such as the doorbell record of a QP in error, reads it
 * periodically. Reads that return the same value again carry no information, but keep a simulation from ever being idle. So the
 * device reads once, requests a report, and reads again when a report has arrived. No such wire exists on a card: it carries no
 * data, needs no time on the lanes and is in no account; the latency of the link is its only time
 * (docs/reference/deviations.md).
 *
 * If the processor's writes are visible, a page is compared at the edge after a write to it, or after a change of its mapping
 * by an IOMMU; each comparison reads memory without side effects. A guest's writes to its own memory are invisible, so its
 * words are compared every {@link POLL_PS}.
 */
import { type BusAddress, type Cycles, type Picoseconds, pageBytes, psPerMs } from '../../../base/index.ts';
import type { BlockState, ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import type { PcieLinkPort } from '../link/index.ts';
import {
  DWORD_BYTES,
  FLOAT_ADDRESS,
  SIDEBAND_MONITOR,
  SIDEBAND_WORD_CHANGED,
  WORD_AUX,
  WORD_DATA,
} from '../tlp/index.ts';
import type { HostMemory, MemoryWatcher } from './root-complex-interfaces.ts';
import type { RootComplexParts } from './root-complex-parts.ts';

/** Estimate: a guest that posts to a QP in error waits for its completion for less than a timer tick of Linux. */
const POLL_PS: Picoseconds = psPerMs;

/** A dword that the device monitors, in memory byte order. */
interface MonitoredWord {
  readonly number: number;
  readonly address: BusAddress;
  readonly word: number;
}

/** The monitored words of one page. */
class MonitoredPage implements MemoryWatcher {
  readonly page: number;
  readonly words: MonitoredWord[] = [];
  isWritten = false;
  readonly #monitor: WordMonitor;

  constructor(page: number, monitor: WordMonitor) {
    this.page = page;
    this.#monitor = monitor;
  }

  pageWritten(): void {
    if (this.isWritten) return;
    this.isWritten = true;
    this.#monitor.compareLater(this);
  }
}

export interface MonitorParts extends RootComplexParts {
  readonly memory: HostMemory;
}

export class WordMonitor {
  reportCount = 0;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #memory: HostMemory;
  readonly #stage: number;
  readonly #pollHandler: number;
  readonly #pages = new Map<number, MonitoredPage>();
  /** The page of each monitor, by its number. */
  readonly #pageOf = new Map<number, MonitoredPage>();
  /** Pages that were written, or whose words have changed, since the last edge; each once. */
  #written: MonitoredPage[] = [];
  #isPolling = false;
  readonly #found = new Uint8Array(DWORD_BYTES);
  readonly #foundView = new DataView(this.#found.buffer);

  constructor({ lp, domain, port, memory }: MonitorParts) {
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#memory = memory;
    this.#stage = domain.addStage(this.#compare, this);
    this.#pollHandler = lp.queue.addHandler(() => this.#poll());
  }

  /** Active monitors: at most one for each number that the device uses. */
  get heldCount(): number {
    return this.#pageOf.size;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { monitoredWords: this.#pageOf.size };
  }

  /** Starts or ends a monitor. The record is consumed. */
  receive(offset: number, kind: number): void {
    const { words, floats } = this.#port.reader;
    const number = words[(offset >> 2) + WORD_AUX]!;
    const address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const word = words[(offset >> 2) + WORD_DATA]!;
    this.#port.consume(offset);
    this.#end(number);
    if (kind === SIDEBAND_MONITOR) this.#begin({ number, address, word });
  }

  /** The device is in reset, and monitors nothing. */
  reset(): void {
    for (const number of [...this.#pageOf.keys()]) this.#end(number);
  }

  /** Compares the words of the page at the next edge. */
  compareLater(page: MonitoredPage): void {
    this.#written.push(page);
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  #begin(word: MonitoredWord): void {
    const number = Math.floor(word.address / pageBytes);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = new MonitoredPage(number, this);
      this.#pages.set(number, page);
      this.#watch(page);
    }
    page.words.push(word);
    this.#pageOf.set(word.number, page);
    // It may have changed since the device read it.
    page.pageWritten();
    if (this.#memory.watch === undefined) this.#planPoll();
  }

  #watch(page: MonitoredPage): void {
    this.#memory.unwatch?.(page);
    this.#memory.watch?.(page.page * pageBytes, page);
  }

  #end(number: number): void {
    const page = this.#pageOf.get(number);
    if (page === undefined) return;
    this.#pageOf.delete(number);
    page.words.splice(
      page.words.findIndex((word) => word.number === number),
      1,
    );
    if (page.words.length > 0) return;
    this.#memory.unwatch?.(page);
    this.#pages.delete(page.page);
  }

  #compare(_cycle: Cycles): void {
    // The undefined order within one instant must not matter: several cores may have written to several pages.
    const written = this.#written.toSorted((left, right) => left.page - right.page);
    this.#written = [];
    for (const page of written) {
      page.isWritten = false;
      // Its mapping may have changed.
      if (page.words.length > 0) this.#watch(page);
      const changed = page.words.filter((word) => this.#hasChanged(word));
      for (const { number } of changed.toSorted((left, right) => left.number - right.number)) {
        this.#end(number);
        this.reportCount++;
        this.#port.sendSideband(SIDEBAND_WORD_CHANGED, 0, number);
      }
    }
  }

  /** A word that cannot be read, as the device would find, has not changed. */
  #hasChanged({ address, word }: MonitoredWord): boolean {
    const memory = this.#memory;
    const isRead = memory.peek
      ? memory.peek(address, DWORD_BYTES, this.#found, 0)
      : memory.readInto(address, DWORD_BYTES, this.#found, 0);
    if (!isRead) return false;
    return this.#foundView.getInt32(0) !== word;
  }

  #planPoll(): void {
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#lp.queue.schedule(this.#lp.nowPs + POLL_PS, this.#pollHandler);
  }

  #poll(): void {
    this.#isPolling = false;
    if (this.#pages.size === 0) return;
    for (const page of this.#pages.values()) page.pageWritten();
    this.#planPoll();
  }
}
