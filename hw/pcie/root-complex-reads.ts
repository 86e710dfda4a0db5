/**
 * Reads of a device: held while they are worked on, answered from `readLatencyPs` after they came, in completions
 * that end at the read completion boundary.
 *
 *     arrival ── slot ── ready (latency) ── completion, completion, … ── slot free, credits back
 *
 * At most `outstandingReadCount` reads are worked on; one that comes later starts at the edge after an older one
 * has ended. Completions of one read keep their order; different reads are answered in the order of their
 * arrival, or when their seeded delay is over. Memory is sampled when a completion is handed to the link.
 */
import type { ClockDomain } from '../../sim/clock-domain.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import * as linkParameters from './link-parameters.ts';
import type { PcieLinkPort } from './link-port.ts';
import type { HostMemory, ReadFaults } from './root-complex-interfaces.ts';
import * as rootComplexInterfaces from './root-complex-interfaces.ts';
import type { DeviceFaultLog } from './root-complex-log.ts';
import type { RootComplexConfig } from './root-complex-parameters.ts';
import * as rootComplexParameters from './root-complex-parameters.ts';
import type { LinkTap } from './root-complex-tap.ts';
import { isMalformed, latencyCyclesOf } from './root-complex-writes.ts';
import * as tlp from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { HEADER_CREDIT_MAX } = linkParameters;
const { READ_LOST, READ_POISONED } = rootComplexInterfaces;
const { MESSAGE_WINDOW_BYTES } = rootComplexParameters;
const { FLAG_POISONED, FLOAT_ADDRESS, MEMORY_READ, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST } = tlp;
const { WORD_LENGTH, WORD_REQUESTER_ID, WORD_TAG, WORD_TRAFFIC_CLASS } = tlp;

const SLOT_COUNT = HEADER_CREDIT_MAX + 1;
/** Places in a slot: floats, then words. */
const SLOT_FLOATS_SHIFT = 3;
const SLOT_WORDS_SHIFT = 4;
const ADDRESS = 0;
const READY_CYCLE = 1;
const NUMBER = 2;
const LENGTH = 6;
const TAG = 7;
const REQUESTER_ID = 8;
const TRAFFIC_CLASS = 9;
const CREDITS = 10;
const SENT_BYTES = 11;
const STATUS = 12;
const NEVER = Number.POSITIVE_INFINITY;
const NO_BYTES = new Uint8Array(0);
/** Shuffled order: so many edges at most may pass between two completions of one read. */
const INTERLEAVE_CYCLES = 16;

/**
 * Bytes of the next completion of a read: as many as fit, ending at a boundary unless the read ends before.
 * @param boundaryBytes a power of two
 */
export function completionBytesOf(
  address: number,
  remainingBytes: number,
  completionBytesMax: number,
  boundaryBytes: number,
): number {
  const reach = address + completionBytesMax;
  return Math.min(remainingBytes, reach - (reach & (boundaryBytes - 1)) - address);
}

export class RootComplexReads {
  readCount = 0;
  readBytes = 0;
  completionCount = 0;
  /** Reads that a fault left without an answer. */
  lostCount = 0;
  /** Faults to inject; undefined is none. */
  faults: ReadFaults | undefined;
  /** Who looks on; undefined is nobody. */
  tap: LinkTap | undefined;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #memory: HostMemory;
  readonly #log: DeviceFaultLog;
  readonly #latencyCycles: number;
  readonly #outstandingMax: number;
  readonly #completionBytesMax: number;
  readonly #boundaryBytes: number;
  readonly #messageWindow: number;
  readonly #jitterCycles: number;
  readonly #seed: number;
  /**
   * Slots of reads in the order of arrival: the #count places from #head of a ring; the others hold free slots. A
   * slot copies its request, so that a read worked on for long does not hold up the channel. It is one cache line of
   * floats and words.
   */
  readonly #order = Int32Array.from({ length: SLOT_COUNT }, (_, slot) => slot);
  readonly #floats = new Float64Array(SLOT_COUNT << SLOT_FLOATS_SHIFT);
  readonly #words = new Int32Array(this.#floats.buffer);
  #head = 0;
  #count = 0;

  constructor(
    lp: LogicalProcess,
    domain: ClockDomain,
    port: PcieLinkPort,
    memory: HostMemory,
    log: DeviceFaultLog,
    config: RootComplexConfig,
  ) {
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#memory = memory;
    this.#log = log;
    this.#latencyCycles = latencyCyclesOf(domain, config.readLatencyPs);
    this.#outstandingMax = config.outstandingReadCount;
    this.#completionBytesMax = Math.min(config.completionCombineBytes, port.link.maxPayloadBytes);
    this.#boundaryBytes = config.readCompletionBoundaryBytes;
    this.#messageWindow = config.messageWindowAddress;
    this.#jitterCycles =
      config.completionOrder === 'shuffled' ? latencyCyclesOf(domain, config.completionJitterPs) + 1 : 0;
    this.#seed = config.seed;
  }

  /** A non-posted request has arrived. Returns the cycle at which it may be answered; Infinity while it must wait. */
  receive(offset: number): number {
    if (this.#count === SLOT_COUNT) return this.#discard('overflow', offset);
    const address = this.#port.reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    if (isMalformed(address, this.#port.reader.words[(offset >> 2) + WORD_LENGTH]!)) {
      return this.#discard('malformed', offset);
    }
    this.readCount++;
    const slot = this.#slotAt(this.#count);
    const isStarted = this.#count < this.#outstandingMax;
    this.#count++;
    this.#take(slot, offset);
    const arrivalCycle = this.#domain.clock.cycleAfter(this.#lp.nowPs);
    const readyCycle = isStarted ? this.#readyFrom(slot, arrivalCycle) : NEVER;
    this.#floats[(slot << SLOT_FLOATS_SHIFT) + READY_CYCLE] = readyCycle;
    return readyCycle;
  }

  /** Earliest cycle at which a completion can be handed over, or Infinity. */
  get readyCycle(): number {
    return this.#count === 0
      ? NEVER
      : this.#floats[(this.#slotAt(this.#earliest()) << SLOT_FLOATS_SHIFT) + READY_CYCLE]!;
  }

  /** Hands one completion to the link. The caller has checked that one is ready and that the link takes it. */
  complete(cycle: number): void {
    const place = this.#earliest();
    const slot = this.#slotAt(place);
    const words = this.#words;
    const word = slot << SLOT_WORDS_SHIFT;
    const float = slot << SLOT_FLOATS_SHIFT;
    const tag = words[word + TAG]!;
    const requesterId = words[word + REQUESTER_ID]!;
    const trafficClass = words[word + TRAFFIC_CLASS]!;
    const sentBytes = words[word + SENT_BYTES]!;
    let status = words[word + STATUS]!;
    const remainingBytes = words[word + LENGTH]! - sentBytes;
    const address = this.#floats[float + ADDRESS]! + sentBytes;
    const bytes = completionBytesOf(address, remainingBytes, this.#completionBytesMax, this.#boundaryBytes);
    if (status === STATUS_SUCCESS && !this.#isThere(address, bytes)) {
      status = STATUS_UNSUPPORTED_REQUEST;
      words[word + STATUS] = status;
      this.#log.note('readOutsideMemory', this.#lp.nowPs, address, bytes);
      this.tap?.refused('readOutsideMemory', address, bytes, trafficClass, this.#lp.nowPs);
    }
    if (status === READ_LOST) {
      this.lostCount++;
      this.#end(place, cycle);
      return;
    }
    const isPoisoned = status === READ_POISONED;
    this.completionCount++;
    if (status !== STATUS_SUCCESS && !isPoisoned) {
      this.#show(slot, address, NO_BYTES, 0, 0, remainingBytes);
      this.#port.sendCompletion(tag, requesterId, trafficClass, status, remainingBytes, address);
      this.#end(place, cycle);
      return;
    }
    // A zero-length read (a flush) is answered by one dword of which no byte counts, byte count 1 (2.3.1.1).
    const byteCount = remainingBytes === 0 ? 1 : remainingBytes;
    const flags = isPoisoned ? FLAG_POISONED : 0;
    this.#port.placeCompletionData(tag, requesterId, trafficClass, bytes, byteCount, address, flags);
    const { payloadTarget, payloadOffset } = this.#port;
    // Memory that fails although it said that it can be read gives zeros: never what lay in the buffer before.
    if (!this.#memory.readInto(address, bytes, payloadTarget.target, payloadOffset))
      payloadTarget.target.fill(0, payloadOffset, payloadOffset + bytes);
    if (this.tap !== undefined) {
      this.#show(slot, address, payloadTarget.target, payloadOffset, bytes, remainingBytes);
    }
    this.#port.commit();
    this.readBytes += bytes;
    words[word + SENT_BYTES] = sentBytes + bytes;
    if (bytes === remainingBytes) this.#end(place, cycle);
    else if (this.#jitterCycles > 0) {
      this.#floats[float + READY_CYCLE] = cycle + 1 + this.#jitter(slot, INTERLEAVE_CYCLES);
    }
  }

  /** Memory with holes, or that may go while a read is worked on, is asked again when the bytes are due. */
  #isThere(address: number, lengthBytes: number): boolean {
    return this.#memory.canRead === undefined || this.#memory.canRead(address, lengthBytes);
  }

  /** Shows the tap one completion. */
  #show(
    slot: number,
    address: number,
    source: Uint8Array,
    offset: number,
    lengthBytes: number,
    remainingBytes: number,
  ): void {
    const [tag, trafficClass, status] = [
      this.#words[(slot << SLOT_WORDS_SHIFT) + TAG]!,
      this.#words[(slot << SLOT_WORDS_SHIFT) + TRAFFIC_CLASS]!,
      this.#words[(slot << SLOT_WORDS_SHIFT) + STATUS]!,
    ];
    const { nowPs } = this.#lp;
    this.tap?.deviceRead(
      tag,
      address,
      source,
      offset,
      lengthBytes,
      remainingBytes,
      trafficClass,
      status,
      nowPs,
    );
  }

  /** Slot at this place in the order of arrival. */
  #slotAt(place: number): number {
    return this.#order[(this.#head + place) & (SLOT_COUNT - 1)]!;
  }

  #take(slot: number, offset: number): void {
    const { words: from, floats } = this.#port.reader;
    const record = offset >> 2;
    const words = this.#words;
    const word = slot << SLOT_WORDS_SHIFT;
    const float = slot << SLOT_FLOATS_SHIFT;
    this.#floats[float + ADDRESS] = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    this.#floats[float + NUMBER] = this.readCount;
    words[word + LENGTH] = from[record + WORD_LENGTH]!;
    words[word + TAG] = from[record + WORD_TAG]!;
    words[word + REQUESTER_ID] = from[record + WORD_REQUESTER_ID]!;
    words[word + TRAFFIC_CLASS] = from[record + WORD_TRAFFIC_CLASS]!;
    words[word + SENT_BYTES] = 0;
    words[word + STATUS] = this.#judge(offset);
    words[word + CREDITS] = this.#port.release(offset);
  }

  /** A read has been answered in full: its slot and its credits are free; a waiting read starts. */
  #end(place: number, cycle: number): void {
    const slot = this.#slotAt(place);
    this.#port.returnCredits(this.#words[(slot << SLOT_WORDS_SHIFT) + CREDITS]!);
    for (let older = place; older > 0; older--) {
      this.#order[(this.#head + older) & (SLOT_COUNT - 1)] = this.#slotAt(older - 1);
    }
    this.#order[this.#head] = slot;
    this.#head = (this.#head + 1) & (SLOT_COUNT - 1);
    this.#count--;
    if (this.#count < this.#outstandingMax) return;
    const starting = this.#slotAt(this.#outstandingMax - 1);
    this.#floats[(starting << SLOT_FLOATS_SHIFT) + READY_CYCLE] = this.#readyFrom(starting, cycle + 1);
  }

  #readyFrom(slot: number, cycle: number): number {
    const ready = cycle + this.#latencyCycles + this.#jitter(slot, this.#jitterCycles);
    if (this.#memory.translationPs === undefined) return ready;
    return (
      ready +
      latencyCyclesOf(
        this.#domain,
        this.#memory.translationPs(this.#floats[(slot << SLOT_FLOATS_SHIFT) + ADDRESS]!),
      )
    );
  }

  /** A seeded delay below `limitCycles`; it depends on the read and its progress, not on what else happens. */
  #jitter(slot: number, limitCycles: number): number {
    return limitCycles === 0
      ? 0
      : scrambled(
          this.#seed,
          this.#floats[(slot << SLOT_FLOATS_SHIFT) + NUMBER]!,
          this.#words[(slot << SLOT_WORDS_SHIFT) + SENT_BYTES]!,
        ) % limitCycles;
  }

  /** Place of the read to be answered next: the oldest, or in shuffled order the one that is ready first. */
  #earliest(): number {
    if (this.#jitterCycles === 0) return 0;
    let earliest = 0;
    for (let place = 1; place < this.#count; place++) {
      if (
        this.#floats[(this.#slotAt(place) << SLOT_FLOATS_SHIFT) + READY_CYCLE]! <
        this.#floats[(this.#slotAt(earliest) << SLOT_FLOATS_SHIFT) + READY_CYCLE]!
      )
        earliest = place;
    }
    return earliest;
  }

  /** Status with which a request will be answered. */
  #judge(offset: number): number {
    const { words, floats } = this.#port.reader;
    if (this.faults !== undefined) {
      const answer = this.faults.answerTo(words[(offset >> 2) + WORD_TRAFFIC_CLASS]!);
      if (answer !== STATUS_SUCCESS) return answer;
    }
    if (this.#port.reader.kindAt(offset) !== MEMORY_READ) {
      this.#note('unsupportedRequest', offset);
      return STATUS_UNSUPPORTED_REQUEST;
    }
    const address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = words[(offset >> 2) + WORD_LENGTH]!;
    const windowOffset = address - this.#messageWindow;
    const isInWindow = windowOffset >= 0 && windowOffset < MESSAGE_WINDOW_BYTES;
    if (isInWindow || address < 0 || address + lengthBytes > this.#memory.sizeBytes) {
      this.#note('readOutsideMemory', offset);
      return STATUS_UNSUPPORTED_REQUEST;
    }
    return STATUS_SUCCESS;
  }

  /** Neither carried out nor answered: its requester runs into its completion timeout. */
  #discard(fault: 'overflow' | 'malformed', offset: number): number {
    this.#note(fault, offset);
    this.#port.consume(offset);
    return NEVER;
  }

  #note(fault: 'overflow' | 'malformed' | 'readOutsideMemory' | 'unsupportedRequest', offset: number): void {
    const { words, floats } = this.#port.reader;
    const address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = words[(offset >> 2) + WORD_LENGTH]!;
    this.#log.note(fault, this.#lp.nowPs, address, lengthBytes);
    this.tap?.refused(
      fault,
      address,
      lengthBytes,
      words[(offset >> 2) + WORD_TRAFFIC_CLASS]!,
      this.#lp.nowPs,
    );
  }
}

/** A number that depends on nothing but the seed and what it is for: murmur3's finaliser. */
function scrambled(seed: number, readNumber: number, sentBytes: number): number {
  let value = Math.imul(seed, 0x9e37_79b1) ^ Math.imul(readNumber, 0x85eb_ca6b) ^ sentBytes;
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
