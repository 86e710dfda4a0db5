/**
 * Reads of a device: held while they are processed, answered from `readLatencyPs` after their arrival, in completions that end
 * at the read completion boundary.
 *
 *     arrival ── slot ── ready (latency) ── completion, completion, … ── slot free, credits back
 *
 * At most `outstandingReadCount` reads are processed at a time; a later one starts at the edge after an older one has ended.
 * Completions of one read keep their order; different reads are answered in order of arrival, or when their seeded delay is
 * over. Memory is sampled when a completion is handed to the link.
 */
import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import { HEADER_CREDIT_MAX, type PcieLinkPort } from '../link/index.ts';
import {
  COMPLETION_FLOW,
  FLAG_POISONED,
  FLOAT_ADDRESS,
  MEMORY_READ,
  STATUS_SUCCESS,
  STATUS_UNSUPPORTED_REQUEST,
  tagOf,
  trafficClassOf,
  WORD_DESCRIPTOR,
  WORD_KIND,
  WORD_LENGTH,
} from '../tlp/index.ts';
import { jitterOf } from './completion-jitter.ts';
import { CompletionSplit } from './completion-split.ts';
import type { DeviceFaultLog } from './device-fault-log.ts';
import { type DeviceRead, DeviceReads } from './device-read.ts';
import { type AnsweredReads, EarlyCompletions } from './early-completions.ts';
import type { RootComplexEgress } from './root-complex-egress.ts';
import {
  type EarlyPlaces,
  type HostMemory,
  READ_LOST,
  READ_POISONED,
  type ReadFaults,
} from './root-complex-interfaces.ts';
import { MESSAGE_WINDOW_BYTES } from './root-complex-parameters.ts';
import type { RootComplexParts } from './root-complex-parts.ts';
import type { LinkTap } from './root-complex-tap.ts';
import type { RootComplexWrites } from './root-complex-writes.ts';
import { isMalformed, latencyCyclesOf } from './root-complex-writes.ts';

const READ_COUNT_MAX = HEADER_CREDIT_MAX + 1;
const NO_BYTES = new Uint8Array(0);
/** Shuffled order: limit of edges between two completions of one read. */
const INTERLEAVE_CYCLES = 16;

export interface ReadsParts extends RootComplexParts {
  readonly memory: HostMemory;
  /** Destinations for early bytes; undefined if the device does not share this thread. */
  readonly places: EarlyPlaces | undefined;
}

export interface RootComplexReadsPorts {
  readonly writes: Pick<RootComplexWrites, 'settledCycle'>;
  readonly egress: Pick<RootComplexEgress, 'wake'>;
}

export class RootComplexReads implements AnsweredReads {
  readCount = 0;
  readBytes = 0;
  completionCount = 0;
  /** Reads that a fault left without an answer. */
  lostCount = 0;
  /** Faults to inject; undefined is none. */
  faults: ReadFaults | undefined;
  /** Optional observer. */
  tap: LinkTap | undefined;
  /** Early destinations of completions; undefined if the device does not share this thread. */
  readonly early: EarlyCompletions | undefined;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #memory: HostMemory;
  readonly #log: DeviceFaultLog;
  readonly #latencyCycles: number;
  readonly #outstandingMax: number;
  readonly #split: CompletionSplit;
  readonly #messageWindow: number;
  readonly #jitterCycles: number;
  readonly #seed: number;
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #reads = new DeviceReads(READ_COUNT_MAX);
  #writes!: RootComplexReadsPorts['writes'];
  #egress!: RootComplexReadsPorts['egress'];
  /** The oldest read not started yet, while more reads are held than processed. */
  #waiting: DeviceRead;
  /** The next read to answer: the oldest, or in shuffled order the first one ready. */
  #next: DeviceRead;

  constructor(parts: ReadsParts) {
    const { lp, domain, port, memory, log, config, places } = parts;
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#memory = memory;
    this.#words = port.reader.words;
    this.#floats = port.reader.floats;
    this.#log = log;
    this.#latencyCycles = latencyCyclesOf(domain, config.readLatencyPs);
    this.#outstandingMax = config.outstandingReadCount;
    const completionBytesMax = Math.min(config.completionCombineBytes, port.link.maxPayloadBytes);
    this.#split = new CompletionSplit(completionBytesMax, config.readCompletionBoundaryBytes);
    const early = { lp, domain, port, split: this.#split, reads: this };
    this.early = places === undefined ? undefined : new EarlyCompletions({ ...early, places });
    this.#messageWindow = config.messageWindowAddress;
    this.#jitterCycles =
      config.completionOrder === 'shuffled' ? latencyCyclesOf(domain, config.completionJitterPs) + 1 : 0;
    this.#seed = config.seed;
    this.#waiting = this.#reads.oldest;
    this.#next = this.#reads.oldest;
  }

  connect({ writes, egress }: RootComplexReadsPorts): void {
    this.#writes = writes;
    this.#egress = egress;
  }

  /** Accepted reads that were not answered completely. */
  get heldCount(): number {
    return this.#reads.count;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      reads: this.#reads.all.map(({ descriptor, address, remainingBytes, status }) => ({
        tag: tagOf(descriptor),
        address,
        remainingBytes,
        status,
      })),
    };
  }

  /** A non-posted request has arrived. */
  receive(offset: number): void {
    const address = this.#floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = this.#words[(offset >> 2) + WORD_LENGTH]!;
    if (this.#reads.count === READ_COUNT_MAX || isMalformed(address, lengthBytes)) {
      this.#discard(this.#reads.count === READ_COUNT_MAX ? 'overflow' : 'malformed', offset);
      return;
    }
    this.readCount++;
    const read = this.#reads.append();
    read.number = this.readCount;
    read.address = address;
    read.lengthBytes = lengthBytes;
    read.remainingBytes = lengthBytes;
    read.descriptor = this.#words[(offset >> 2) + WORD_DESCRIPTOR]!;
    read.status = this.#judge(offset, address, lengthBytes);
    // Copied, so that a long read does not block the channel.
    read.credits = this.#port.release(offset);
    if (this.#memory.translationPs !== undefined) read.readyCycle = this.#writes.settledCycle;
    if (this.#reads.count <= this.#outstandingMax) {
      this.#start(read, this.#domain.clock.cycleAfter(this.#lp.nowPs));
      if (read === this.#next) this.#egress.wake(read.readyCycle);
    } else if (this.#reads.count === this.#outstandingMax + 1) {
      this.#waiting = read;
    }
  }

  /** Whether a completion can be handed to the link. */
  isReady(cycle: Cycles): boolean {
    return this.#reads.count > 0 && this.#next.readyCycle <= cycle && this.#port.canSend(COMPLETION_FLOW);
  }

  /** Cycle, from `cycle` on, at which the next completion is ready; -1 if no read is held, or the link has no room. */
  nextCycle(cycle: Cycles): number {
    if (this.#reads.count === 0 || !this.#port.canSend(COMPLETION_FLOW)) return -1;
    const { readyCycle } = this.#next;
    return readyCycle > cycle ? readyCycle : cycle;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#reads.rebase(cycles);
  }

  /** Hands one completion to the link; {@link isReady} has confirmed it. */
  complete(cycle: Cycles): void {
    const read = this.#next;
    const { address, remainingBytes } = read;
    const bytes = this.#split.bytesOf(address, remainingBytes);
    if (read.status === STATUS_SUCCESS && !this.#isThere(address, bytes)) this.#refuse(read, bytes);
    const hasData = read.status === STATUS_SUCCESS || read.status === READ_POISONED;
    if (hasData) this.#sendData(read, bytes);
    else if (read.status === READ_LOST) this.lostCount++;
    else this.#sendError(read);
    if (!hasData || bytes === remainingBytes) {
      this.end(read, cycle);
    } else if (this.#jitterCycles > 0) {
      read.readyCycle = cycle + 1 + jitterOf(read, this.#seed, INTERLEAVE_CYCLES);
      this.#choose();
    }
  }

  #sendData(read: DeviceRead, bytes: number): void {
    const { descriptor, address, remainingBytes } = read;
    // A zero-length read (a flush) is answered by one dword without valid bytes, byte count 1 (2.3.1.1).
    const byteCount = remainingBytes === 0 ? 1 : remainingBytes;
    const isPoisoned = read.status === READ_POISONED;
    if (isPoisoned || this.early === undefined || !this.early.send(read, bytes, byteCount)) {
      const port = this.#port;
      port.placeCompletionData(descriptor, bytes, byteCount, address, isPoisoned ? FLAG_POISONED : 0);
      this.sample(read, bytes, port.payloadTarget.target, port.payloadOffset);
      port.commit();
    }
    this.completionCount++;
    this.readBytes += bytes;
    read.address = address + bytes;
    read.remainingBytes = remainingBytes - bytes;
  }

  /** Copies bytes of memory to their destination. */
  sample(read: DeviceRead, bytes: number, target: Uint8Array, offset: number): void {
    this.readInto(read.address, bytes, target, offset);
    if (this.tap !== undefined) this.#show(read, target, offset, bytes);
  }

  /** Memory that fails although it claimed to be readable returns zeros: never earlier contents of the buffer. */
  readInto(address: number, bytes: number, target: Uint8Array, offset: number): void {
    if (!this.#memory.readInto(address, bytes, target, offset)) target.fill(0, offset, offset + bytes);
  }

  /** Ends the read by a completion without data. */
  #sendError(read: DeviceRead): void {
    const { descriptor, status, address, remainingBytes } = read;
    if (this.tap !== undefined) this.#show(read, NO_BYTES, 0, 0);
    const completion = this.#port.completion.begin(descriptor);
    completion.status = status;
    completion.byteCount = remainingBytes;
    completion.address = address;
    this.#port.sendCompletion();
    this.completionCount++;
  }

  /** Whether memory can always be read, no observer is attached, and reads are answered in order. */
  get isPlain(): boolean {
    return this.#jitterCycles === 0 && this.isUnwatched;
  }

  /** Whether memory can always be read, and no tap is attached. */
  get isUnwatched(): boolean {
    return this.tap === undefined && this.#memory.canRead === undefined;
  }

  /** The next read to answer; undefined if none is held. */
  get next(): DeviceRead | undefined {
    return this.#reads.count > 0 ? this.#next : undefined;
  }

  /** Memory with holes, or memory that may vanish during a read, is checked again when the bytes are due. */
  #isThere(address: BusAddress, lengthBytes: number): boolean {
    return this.#memory.canRead === undefined || this.#memory.canRead(address, lengthBytes);
  }

  #refuse(read: DeviceRead, bytes: number): void {
    read.status = STATUS_UNSUPPORTED_REQUEST;
    const { nowPs } = this.#lp;
    this.#log.note('readOutsideMemory', this.#lp.instantPs, read.address, bytes);
    this.tap?.refused('readOutsideMemory', read.address, bytes, trafficClassOf(read.descriptor), nowPs);
  }

  /** Shows the tap one completion. */
  #show(read: DeviceRead, source: Uint8Array, offset: number, lengthBytes: number): void {
    if (this.tap === undefined) return;
    const { descriptor, address, remainingBytes, status } = read;
    const [tag, trafficClass] = [tagOf(descriptor), trafficClassOf(descriptor)];
    const data = { address, source, offset, lengthBytes, trafficClass };
    this.tap.deviceRead({ ...data, tag, remainingBytes, status }, this.#lp.nowPs);
  }

  /** A read was answered completely: its slot and credits are free; a waiting read starts. */
  end(read: DeviceRead, cycle: Cycles): void {
    this.#port.returnCredits(read.credits);
    this.#reads.remove(read);
    if (this.#reads.count >= this.#outstandingMax) {
      const starting = this.#waiting;
      this.#waiting = starting.next;
      this.#start(starting, cycle + 1);
    }
    this.#choose();
  }

  /** Processes a read from `cycle` on. */
  #start(read: DeviceRead, cycle: Cycles): void {
    let readyCycle = cycle + this.#latencyCycles;
    if (this.#jitterCycles > 0) readyCycle += jitterOf(read, this.#seed, this.#jitterCycles);
    if (this.#memory.missPs !== undefined)
      readyCycle += latencyCyclesOf(this.#domain, this.#memory.missPs(read.address, read.lengthBytes));
    if (this.#memory.translationPs !== undefined) {
      const waitPs = this.#memory.translationPs(read.address, this.#lp.nowPs);
      readyCycle += latencyCyclesOf(this.#domain, waitPs);
      // An earlier write may be waiting for its own translation.
      if (read.readyCycle > readyCycle) readyCycle = read.readyCycle;
    }
    read.readyCycle = readyCycle;
    if (this.#reads.count === 1 || this.#jitterCycles > 0) this.#choose();
  }

  /** Finds the next read to answer among those being processed. */
  #choose(): void {
    let next = this.#reads.oldest;
    if (this.#jitterCycles > 0) {
      let read = next;
      for (let left = Math.min(this.#reads.count, this.#outstandingMax); left > 1; left--) {
        read = read.next;
        if (read.readyCycle < next.readyCycle) next = read;
      }
    }
    this.#next = next;
  }

  /** Status of a request's answer. */
  #judge(offset: number, address: BusAddress, lengthBytes: number): number {
    const words = this.#words;
    if (this.faults !== undefined) {
      const answer = this.faults.answerTo(trafficClassOf(words[(offset >> 2) + WORD_DESCRIPTOR]!));
      if (answer !== STATUS_SUCCESS) return answer;
    }
    if (words[(offset >> 2) + WORD_KIND] !== MEMORY_READ) {
      this.#note('unsupportedRequest', offset);
      return STATUS_UNSUPPORTED_REQUEST;
    }
    const windowOffset = address - this.#messageWindow;
    const isInWindow = windowOffset >= 0 && windowOffset < MESSAGE_WINDOW_BYTES;
    if (isInWindow || address < 0 || address + lengthBytes > this.#memory.sizeBytes) {
      this.#note('readOutsideMemory', offset);
      return STATUS_UNSUPPORTED_REQUEST;
    }
    return STATUS_SUCCESS;
  }

  /** Neither carried out nor answered: its requester times out. */
  #discard(fault: 'overflow' | 'malformed', offset: number): void {
    this.#note(fault, offset);
    this.#port.consume(offset);
  }

  #note(fault: 'overflow' | 'malformed' | 'readOutsideMemory' | 'unsupportedRequest', offset: number): void {
    const address = this.#floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = this.#words[(offset >> 2) + WORD_LENGTH]!;
    this.#log.note(fault, this.#lp.instantPs, address, lengthBytes);
    this.tap?.refused(
      fault,
      address,
      lengthBytes,
      trafficClassOf(this.#words[(offset >> 2) + WORD_DESCRIPTOR]!),
      this.#lp.nowPs,
    );
  }
}
