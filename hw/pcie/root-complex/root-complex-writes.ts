/**
 * Posted requests of a device, applied in order, `writeLatencyPs` after their arrival: memory writes, interrupt messages, INTx.
 *
 * Each keeps its receive buffer, and so its credits, until it has taken effect.
 */
import type { BusAddress, Cycles, Picoseconds } from '../../../base/index.ts';
import { type BlockState, type ClockDomain, Fifo, type LogicalProcess } from '../../../sim/index.ts';
import { HEADER_CREDIT_MAX, type PcieLinkPort, type WritePayload } from '../link/index.ts';
import {
  FLAG_POISONED,
  FLOAT_ADDRESS,
  MEMORY_WRITE,
  MESSAGE_ASSERT_INTA,
  MESSAGE_DEASSERT_INTA,
  MESSAGE_ERR_COR,
  MESSAGE_ERR_FATAL,
  REQUEST_BOUNDARY_BYTES,
  trafficClassOf,
  WORD_AUX,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_LENGTH,
} from '../tlp/index.ts';
import type { DeviceFaultLog } from './device-fault-log.ts';
import type { HostMemory, InterruptSink } from './root-complex-interfaces.ts';
import { MESSAGE_WINDOW_BYTES } from './root-complex-parameters.ts';
import type { RootComplexParts } from './root-complex-parts.ts';
import type { LinkTap } from './root-complex-tap.ts';

const INTX_PIN_COUNT = 4;

export interface WritesParts extends RootComplexParts {
  readonly memory: HostMemory;
  readonly payload: WritePayload;
}

export class RootComplexWrites {
  writeCount = 0;
  writtenBytes = 0;
  interruptMessageCount = 0;
  intxMessageCount = 0;
  errorMessageCount = 0;
  /** Optional observer. */
  tap: LinkTap | undefined;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #memory: HostMemory;
  readonly #payload: WritePayload;
  readonly #log: DeviceFaultLog;
  readonly #stage: number;
  readonly #latencyCycles: number;
  readonly #messageWindow: number;
  readonly #fifo = new Fifo({
    name: 'posted writes',
    capacity: HEADER_CREDIT_MAX + 1,
    whenFull: 'never: it has a place for each posted header credit',
  });
  #interrupts!: InterruptSink;
  /** Cycle at which the last received one takes effect. */
  #lastCycle = 0;
  /** Asserted INTx wires, one bit for each pin. */
  #assertedWires = 0;

  constructor(parts: WritesParts) {
    const { lp, domain, port, memory, log, config, payload } = parts;
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#memory = memory;
    this.#payload = payload;
    this.#log = log;
    this.#latencyCycles = latencyCyclesOf(domain, config.writeLatencyPs);
    this.#messageWindow = config.messageWindowAddress;
    this.#stage = domain.addStage(this.#apply, this);
  }

  connect({ interrupts }: { readonly interrupts: InterruptSink }): void {
    this.#interrupts = interrupts;
  }

  /** A posted request has arrived. */
  receive(offset: number): void {
    if (this.#fifo.isFull) {
      this.#note('overflow', offset);
      this.#port.consume(offset);
      return;
    }
    let cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs) + this.#latencyCycles;
    if (this.#memory.translationPs !== undefined) cycle = this.#afterTranslation(offset, cycle);
    else this.#lastCycle = cycle;
    this.#fifo.push(offset, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  /** Instant at which all arrivals have taken effect: later requests are not visible before it. */
  get settledPs(): Picoseconds {
    return this.#fifo.isEmpty ? 0 : this.#domain.clock.edgePs(this.#lastCycle);
  }

  /** The cycle of that instant, or a past one. */
  get settledCycle(): Cycles {
    return this.#lastCycle;
  }

  get fifos(): readonly Fifo[] {
    return [this.#fifo];
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { writes: this.#fifo.count, assertedWires: this.#assertedWires };
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#fifo.rebase(cycles);
    this.#lastCycle -= cycles;
  }

  /** Cycle at which a write that needs address translation can be applied; none overtakes another. */
  #afterTranslation(offset: number, cycle: Cycles): number {
    const address = this.#port.reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const windowOffset = address - this.#messageWindow;
    const isMessage = windowOffset >= 0 && windowOffset < MESSAGE_WINDOW_BYTES;
    const isTranslated = this.#port.reader.kindAt(offset) === MEMORY_WRITE && !isMessage;
    const waitPs = isTranslated ? this.#memory.translationPs!(address, this.#lp.nowPs) : 0;
    this.#lastCycle = Math.max(this.#lastCycle, cycle + latencyCyclesOf(this.#domain, waitPs));
    return this.#lastCycle;
  }

  #apply(cycle: Cycles): void {
    const fifo = this.#fifo;
    while (fifo.headCycle <= cycle) {
      const offset = fifo.pop();
      if (this.#port.reader.kindAt(offset) === MEMORY_WRITE) this.#write(offset);
      else this.#message(this.#port.reader.words[(offset >> 2) + WORD_AUX]!);
      this.#port.consume(offset);
    }
    if (!fifo.isEmpty) this.#domain.wake(this.#stage, fifo.headCycle);
  }

  #write(offset: number): void {
    const payload = this.#payload;
    const at = payload.find(offset);
    this.#writeFrom(payload.bytes, at, offset);
    payload.finish(offset);
  }

  /** Writes the payload at `bytes[payload …]`. */
  #writeFrom(bytes: Uint8Array, payload: number, offset: number): void {
    const { words, floats } = this.#port.reader;
    const address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = words[(offset >> 2) + WORD_LENGTH]!;
    const windowOffset = address - this.#messageWindow;
    if ((words[(offset >> 2) + WORD_FLAGS]! & FLAG_POISONED) !== 0) {
      this.#note('poisonedWrite', offset);
    } else if (isMalformed(address, lengthBytes)) {
      this.#note('malformed', offset);
    } else if (windowOffset >= 0 && windowOffset < MESSAGE_WINDOW_BYTES) {
      this.interruptMessageCount++;
      const data = dwordAt(bytes, payload);
      this.tap?.message(address, data, this.#lp.nowPs);
      this.#interrupts.message(address, data, this.#lp.nowPs);
    } else if (this.#memory.write(address, lengthBytes, bytes, payload)) {
      this.writeCount++;
      this.writtenBytes += lengthBytes;
      if (this.tap !== undefined) {
        const trafficClass = trafficClassOf(words[(offset >> 2) + WORD_DESCRIPTOR]!);
        const data = { address, source: bytes, offset: payload, lengthBytes, trafficClass };
        this.tap.deviceWrite(data, this.#lp.nowPs);
      }
    } else {
      this.#note('writeOutsideMemory', offset);
    }
  }

  /** Lowers every wire of INTx that is asserted. */
  lowerWires(): void {
    for (let pin = 0; pin < INTX_PIN_COUNT; pin++)
      if ((this.#assertedWires & (1 << pin)) !== 0) this.#setWire(pin, false);
  }

  #setWire(pin: number, isAsserted: boolean): void {
    if (isAsserted) this.#assertedWires |= 1 << pin;
    else this.#assertedWires &= ~(1 << pin);
    this.tap?.intx(pin, isAsserted, this.#lp.nowPs);
    this.#interrupts.intx(pin, isAsserted, this.#lp.nowPs);
  }

  #message(code: number): void {
    if (code >= MESSAGE_ASSERT_INTA && code < MESSAGE_DEASSERT_INTA + INTX_PIN_COUNT) {
      this.intxMessageCount++;
      this.#setWire(code & (INTX_PIN_COUNT - 1), code < MESSAGE_DEASSERT_INTA);
    } else if (code >= MESSAGE_ERR_COR && code <= MESSAGE_ERR_FATAL) {
      this.errorMessageCount++;
    }
  }

  #note(fault: 'overflow' | 'poisonedWrite' | 'malformed' | 'writeOutsideMemory', offset: number): void {
    const { words, floats } = this.#port.reader;
    const address = floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = words[(offset >> 2) + WORD_LENGTH]!;
    this.#log.note(fault, this.#lp.instantPs, address, lengthBytes);
    this.tap?.refused(
      fault,
      address,
      lengthBytes,
      trafficClassOf(words[(offset >> 2) + WORD_DESCRIPTOR]!),
      this.#lp.nowPs,
    );
  }
}

/** A little-endian dword at any offset. */
const dwordAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;

/** Whether a request crosses a 4 KiB boundary: a malformed TLP (2.2.7). */
export function isMalformed(address: BusAddress, lengthBytes: number): boolean {
  return (address & (REQUEST_BOUNDARY_BYTES - 1)) + lengthBytes > REQUEST_BOUNDARY_BYTES;
}

/** Edges of a latency beyond the first edge after an arrival: rounded up. */
export function latencyCyclesOf(domain: ClockDomain, latencyPs: Picoseconds): number {
  return domain.clock.cycleAtOrAfter(latencyPs);
}
