/**
 * Completions without their bytes: if device and root complex share a thread, bytes are stored at the read's destination when
 * memory is sampled, and the record of the completion only has FLAG_PLACED_EARLY. A decorator of the root complex's reads;
 * completions without a destination carry their bytes as usual. The device's side is hw/dma/early-placement.ts.
 *
 * Consecutive completions, while nothing else is due, are handed to the link in one loop ({@link completeOn}), and adjacent
 * bytes are copied in one piece ({@link placeData}). Each completion keeps its edge, its credits and its entry in the
 * statistics.
 */
import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { Clock, ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import { AdjoiningCopies, type PcieLinkPort } from '../link/index.ts';
import {
  COMPLETION_DATA,
  DWORD_BYTES,
  FLAG_PLACED_EARLY,
  LOWER_ADDRESS_MASK,
  REQUEST_BOUNDARY_BYTES,
  STATUS_SUCCESS,
  WORD_AUX,
  WORD_BYTE_COUNT,
} from '../tlp/index.ts';
import type { CompletionSplit } from './completion-split.ts';
import type { DeviceRead } from './device-read.ts';
import type { EarlyPlaces } from './root-complex-interfaces.ts';

/** The part of the reads that early completions use. */
export interface AnsweredReads {
  completionCount: number;
  readBytes: number;
  /** The next read to answer; undefined if none is held. */
  readonly next: DeviceRead | undefined;
  /** Whether memory can always be read, no observer is attached, and reads are answered in order. */
  readonly isPlain: boolean;
  /** Whether memory can always be read, and no tap is attached. */
  readonly isUnwatched: boolean;
  /** Copies bytes of memory, and shows them to observers. */
  sample(read: DeviceRead, bytes: number, target: Uint8Array, offset: number): void;
  /** The same without observers. */
  readInto(address: number, bytes: number, target: Uint8Array, offset: number): void;
  /** A read was answered completely. */
  end(read: DeviceRead, cycle: Cycles): void;
}

export interface EarlyCompletionsParts {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly port: PcieLinkPort;
  readonly split: CompletionSplit;
  readonly places: EarlyPlaces;
  readonly reads: AnsweredReads;
}

const NOWHERE = -1;
/** Copies of fewer bytes are done at once: tracking adjoining copies would cost as much. */
const ADJOINING_BYTES_MIN = 128;

export class EarlyCompletions {
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #split: CompletionSplit;
  readonly #places: EarlyPlaces;
  readonly #reads: AnsweredReads;
  /** Copies from sampled memory to their destination. */
  readonly #copies = new AdjoiningCopies();

  constructor({ lp, domain, port, split, places, reads }: EarlyCompletionsParts) {
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#split = split;
    this.#places = places;
    this.#reads = reads;
  }

  /**
   * Hands a completion with the next `bytes` of a read to the link, if they have a destination; {@link placeData} follows.
   * @returns whether it has
   */
  send(read: DeviceRead, bytes: number, byteCount: number): boolean {
    const { descriptor, address } = read;
    const place = this.#places.placeOf(descriptor, byteCount);
    if (place === NOWHERE) return false;
    this.#port.placeCompletionData(descriptor, bytes, byteCount, address, FLAG_PLACED_EARLY);
    if (bytes < ADJOINING_BYTES_MIN || !this.#reads.isUnwatched) {
      this.placeData();
      this.#reads.sample(read, bytes, this.#places.memory, place);
    } else {
      this.#place(address, place, bytes);
    }
    this.#port.commit();
    return true;
  }

  /**
   * Hands over completions at edge `cycle` and later, each as soon as it is ready, up to edge `last`: while they are of plain
   * memory, have destinations, and leave at once. Until `last` nothing happens in the process except their effects.
   * @returns whether any was handed over
   */
  completeOn(cycle: Cycles, last: number): boolean {
    const reads = this.#reads;
    if (!reads.isPlain) return false;
    const { clock } = this.#domain;
    let edge = cycle;
    let completionCount = 0;
    let sentBytes = 0;
    for (let read = reads.next; read !== undefined; read = reads.next) {
      const { address, remainingBytes } = read;
      const place = this.#places.placeOf(read.descriptor, remainingBytes);
      if (read.status !== STATUS_SUCCESS || place === NOWHERE) break;
      const first = read.readyCycle > edge ? read.readyCycle : edge;
      const count = this.#sendRow(read, clock, first, last);
      if (count === 0) break;
      completionCount += count;
      edge = first + count;
      this.#lp.nowPs = clock.edgePs(edge - 1);
      const bytes = remainingBytes - read.remainingBytes;
      sentBytes += bytes;
      this.#place(address, place, bytes);
      if (read.remainingBytes > 0) break;
      reads.end(read, edge - 1);
    }
    if (completionCount === 0) return false;
    const { transmitter } = this.#port;
    transmitter.countAll(transmitter.completion, completionCount, sentBytes);
    reads.completionCount += completionCount;
    reads.readBytes += sentBytes;
    this.#domain.standAt(edge - 1, completionCount);
    return true;
  }

  /** Copies the sampled bytes: called before anything else happens in the process. */
  placeData(): void {
    const { count, address, lengthBytes, place } = this.#copies;
    if (count === 0) return;
    this.#reads.readInto(address, lengthBytes, this.#places.memory, place);
    this.#copies.clear();
  }

  #place(address: BusAddress, place: number, bytes: number): void {
    if (!this.#copies.adjoin(address, place)) this.placeData();
    this.#copies.add(address, place, bytes);
  }

  /**
   * Answers a read at edge `cycle` of `clock` and at later edges up to `last`, while completions are whole dwords and leave at
   * once. Updates `read`. Returns how many were sent; the caller continues after them.
   */
  #sendRow(read: DeviceRead, clock: Clock, cycle: Cycles, last: number): number {
    const port = this.#port;
    const { transmitter, completerId } = port;
    const { descriptor, address, remainingBytes } = read;
    // It is within a page: offsets inside are computed in integers.
    const start = address & (REQUEST_BOUNDARY_BYTES - 1);
    if (((start | remainingBytes) & (DWORD_BYTES - 1)) !== 0) return 0;
    let sentBytes = 0;
    let edge = cycle;
    for (; sentBytes < remainingBytes && edge <= last; edge++) {
      const at = start + sentBytes;
      const left = remainingBytes - sentBytes;
      const bytes = this.#split.bytesOf(at, left);
      const offset = port.placeAt(clock.edgePs(edge), transmitter.completion, COMPLETION_DATA, bytes);
      if (offset < 0) break;
      const { target } = transmitter;
      target.describe(offset, at & LOWER_ADDRESS_MASK, bytes, FLAG_PLACED_EARLY, descriptor);
      target.set(offset, WORD_BYTE_COUNT, left);
      target.set(offset, WORD_AUX, completerId);
      sentBytes += bytes;
    }
    read.address = address + sentBytes;
    read.remainingBytes = remainingBytes - sentBytes;
    return edge - cycle;
  }
}
