/**
 * A stand-in for the DMA engines in specs of the HCA's control side: the same contract over a sparse host memory, with a
 * fixed latency and one operation per cycle. Reports come in order; sources are copied when the write leaves.
 */
import { type Cycles, pageBytes } from '../../../base/units.ts';
import type { ClockDomain } from '../../../sim/clock-domain.ts';
import type {
  DmaReads,
  DmaRequester,
  DmaWrites,
  ReadRequesterPort,
  WriteRequesterPort,
} from '../memory/dma-ports.ts';

/** Host memory at any address; unwritten bytes are zero. */
export class SparseMemory {
  readonly #pages = new Map<number, Uint8Array>();
  /** Addresses at or above this do not answer: reads end with an unsupported request. */
  limit = 2 ** 52;

  /** All zero, as at power-on. */
  clear(): void {
    this.#pages.clear();
  }

  read(address: number, lengthBytes: number): Uint8Array {
    const bytes = new Uint8Array(lengthBytes);
    for (let at = 0; at < lengthBytes; ) {
      const inPage = (address + at) % pageBytes;
      const count = Math.min(lengthBytes - at, pageBytes - inPage);
      const stored = this.#pages.get(Math.floor((address + at) / pageBytes));
      if (stored !== undefined) bytes.set(stored.subarray(inPage, inPage + count), at);
      at += count;
    }
    return bytes;
  }

  write(address: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const inPage = (address + at) % pageBytes;
      const page = Math.floor((address + at) / pageBytes);
      const count = Math.min(bytes.length - at, pageBytes - inPage);
      let stored = this.#pages.get(page);
      if (stored === undefined) {
        stored = new Uint8Array(pageBytes);
        this.#pages.set(page, stored);
      }
      stored.set(bytes.subarray(at, at + count), inPage);
      at += count;
    }
  }
}

interface Operation {
  readonly dueCycle: Cycles;
  run(cycle: Cycles): void;
}

interface Requester extends DmaRequester {
  readonly name: string;
  readonly fifoDepth: number;
  readonly port: ReadRequesterPort | WriteRequesterPort;
  count: number;
  readonly counters: { requests: number };
}

/** Reads and writes share one order, as posted writes and later reads do on PCIe. */
export class MemoryDma implements DmaReads, DmaWrites {
  /** Every write in the order in which it reached memory. */
  readonly writeLog: { requester: string; address: number; bytes: Uint8Array; cycle: Cycles }[] = [];
  /** Every read in the order in which memory answered it. */
  readonly readLog: { requester: string; address: number; lengthBytes: number; cycle: Cycles }[] = [];
  readonly #memory: SparseMemory;
  readonly #domain: ClockDomain;
  readonly #sram: Uint8Array;
  readonly #latencyCycles: number;
  readonly #stage: number;
  readonly #requesters: Requester[] = [];
  #operations: Operation[] = [];

  constructor(memory: SparseMemory, domain: ClockDomain, sram: Uint8Array, latencyCycles: number) {
    this.#memory = memory;
    this.#domain = domain;
    this.#sram = sram;
    this.#latencyCycles = latencyCycles;
    this.#stage = domain.addStage(this.#run, this);
  }

  /** One for 256 bytes. */
  tlpCount(_address: number, lengthBytes: number): number {
    return Math.ceil(lengthBytes / 256);
  }

  addRequester(
    options: { name: string; trafficClass: number; fifoDepth: number },
    port: ReadRequesterPort | WriteRequesterPort = {},
  ): number {
    this.#requesters.push({
      name: options.name,
      fifoDepth: options.fifoDepth,
      port,
      trafficClass: options.trafficClass,
      count: 0,
      counters: { requests: 0 },
    });
    return this.#requesters.length - 1;
  }

  get requesters(): readonly DmaRequester[] {
    return this.#requesters;
  }

  canRequest(requester: number): boolean {
    const { count, fifoDepth } = this.#requesters[requester]!;
    return count < fifoDepth;
  }

  /** Nothing is placed early here. */
  withdrawPlaces(): void {}

  /** A read when the third parameter after the length is a number, a write when it is bytes. */
  request(requester: number, address: number, lengthBytes: number, sramOffset: number, cookie: number): void;
  request(
    requester: number,
    address: number,
    lengthBytes: number,
    source: Uint8Array,
    sourceOffset: number,
    cookie: number,
  ): void;
  request(
    requester: number,
    address: number,
    lengthBytes: number,
    place: number | Uint8Array,
    third: number,
    fourth = 0,
  ): void {
    const owner = this.#requesters[requester]!;
    if (owner.count === owner.fifoDepth) throw new RangeError(`${owner.name} has no room`);
    owner.count++;
    owner.counters.requests++;
    const run =
      typeof place === 'number'
        ? (cycle: Cycles) => this.#read(owner, address, lengthBytes, place, third, cycle)
        : (cycle: Cycles) =>
            this.#write(owner, address, place.slice(third, third + lengthBytes), fourth, cycle);
    this.#operations.push({ dueCycle: this.#domain.cycle + this.#latencyCycles, run });
    this.#domain.wake(this.#stage, this.#domain.cycle + this.#latencyCycles);
  }

  /** Reset: everything held is dropped unreported. */
  reset(): void {
    this.#operations = [];
    for (const requester of this.#requesters) requester.count = 0;
  }

  #run(cycle: Cycles): void {
    const operation = this.#operations[0];
    if (operation !== undefined && operation.dueCycle <= cycle) {
      this.#operations.shift();
      operation.run(cycle);
    }
    if (this.#operations.length > 0) {
      this.#domain.wake(this.#stage, Math.max(cycle + 1, this.#operations[0]!.dueCycle));
    }
  }

  #read(
    owner: Requester,
    address: number,
    lengthBytes: number,
    sramOffset: number,
    cookie: number,
    cycle: Cycles,
  ): void {
    this.readLog.push({ requester: owner.name, address, lengthBytes, cycle });
    const answers = address + lengthBytes <= this.#memory.limit;
    if (answers) this.#sram.set(this.#memory.read(address, lengthBytes), sramOffset);
    this.#finish(owner);
    (owner.port as ReadRequesterPort).done(cookie, answers ? 0 : 1, cycle);
  }

  #write(owner: Requester, address: number, bytes: Uint8Array, cookie: number, cycle: Cycles): void {
    this.#memory.write(address, bytes);
    this.writeLog.push({ requester: owner.name, address, bytes, cycle });
    this.#finish(owner);
    (owner.port as WriteRequesterPort).done?.(cookie, cycle);
  }

  #finish(owner: Requester): void {
    const wasFull = owner.count === owner.fifoDepth;
    owner.count--;
    if (wasFull) owner.port.space?.();
  }
}
