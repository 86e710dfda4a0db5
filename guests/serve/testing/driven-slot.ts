/**
 * The project's own kernel driver on a slot, as a guest's kernel: every access uses regions, every interrupt arrives by a
 * descriptor, and every wait advances the wall clock.
 *
 *     Driver ── DriverPlatform ──► regionRead, regionWrite, setInterrupt ──► Slot
 *            ◄── descriptor 1000 + vector ──────────────────────────────────┘
 */

import { outsideOfMicrotasks } from '../../../base/index.ts';
import { pageBytes, roundUp } from '../../../base/units.ts';
import type { Cpu, DriverPlatform, Signal } from '../../../driver/index.ts';
import { INTERRUPT_MSIX } from '../../slot/device.ts';
import { BAR0, BAR2, type BenchGuestMemory, CONFIG, type SlotBench } from './slot-bench.ts';

const bar0Address = 0xfe00_0000;
const bar2Address = 0xe000_0000;
const firstDescriptor = 1000;
const PS_PER_MS = 1e9;
/** Minimum wall time of one turn of the wait loop. */
const TURN_MS = 0.01;

export class DrivenSlot {
  readonly bench: SlotBench;
  readonly node: number;
  readonly memory: BenchGuestMemory;
  readonly platform: DriverPlatform;
  readonly cpu: Cpu;
  /** Called before each store into BAR0 and BAR2; its result is stored instead. */
  distort: (value: number) => number = (value) => value;
  readonly #handlers = new Map<number, (cpu: Cpu) => Promise<void>>();
  #nextPage = 1;
  #seenInterrupts = 0;

  /** A guest with this much memory connects to the slot. */
  constructor(bench: SlotBench, node = 0, memoryBytes = 64 * 2 ** 20) {
    this.bench = bench;
    this.node = node;
    this.memory = bench.connect(node, memoryBytes);
    bench.enable(node, bar0Address, bar2Address);
    this.cpu = this.#newCpu();
    this.platform = this.#newPlatform();
  }

  /** Lets this much time pass, on the wall and so in the model, and serves interrupts. */
  pass(durationMs: number): void {
    const endMs = this.bench.wallMs + durationMs;
    while (this.bench.wallMs < endMs) this.turn(endMs);
  }

  /** Lets time pass until the next due event, at most to `endMs`, and serves interrupts. */
  turn(endMs: number): void {
    const { bench } = this;
    const dueMs = bench.emulation.work(1000);
    const seen = this.#seenInterrupts;
    this.#serveInterrupts();
    if (seen === this.#seenInterrupts)
      bench.wallMs = Math.min(endMs, bench.wallMs + Math.max(dueMs, TURN_MS));
  }

  /** Lets time pass where programs of a simulated host can run, if one exists. */
  async turnOutside(endMs: number): Promise<void> {
    await this.#outside(() => this.turn(endMs));
  }

  /** Acts from a callback of the event loop if a simulated host exists, because its programs run only there. */
  #outside<T>(act: () => T): T | Promise<T> {
    return this.bench.emulation.peer === undefined ? act() : outsideOfMicrotasks(act);
  }

  #serveInterrupts(): void {
    const { raised } = this.bench;
    for (; this.#seenInterrupts < raised.length; this.#seenInterrupts++) {
      const vector = raised[this.#seenInterrupts]! - firstDescriptor;
      void this.#handlers.get(vector)?.(this.cpu);
    }
  }

  #newCpu(): Cpu {
    const { bench, node } = this;
    return {
      coreIndex: 0,
      get localPs() {
        return bench.wallMs * PS_PER_MS;
      },
      get ownPs() {
        return bench.wallMs * PS_PER_MS;
      },
      stopwatch: () => this.#stopwatch(),
      charge: () => {},
      settle: async () => {},
      keepCore: () => {},
      sleep: async (durationPs) => this.#outside(() => this.pass(durationPs / PS_PER_MS)),
      mmioRead32: async (address) => {
        const [region, offset] = placeOf(address);
        return this.#outside(() => bench.read(region, offset, 4, node));
      },
      mmioWrite32: (address, value) => {
        const [region, offset] = placeOf(address);
        bench.write(region, offset, this.distort(value), 4, node);
      },
      storeMemory: (address, bytes) => this.memory.bytes.set(bytes, address),
    };
  }

  #stopwatch(): ReturnType<DriverPlatform['stopwatch']> {
    const { bench } = this;
    const startMs = bench.wallMs;
    const elapsedPs = (): number => (bench.wallMs - startMs) * PS_PER_MS;
    return {
      get elapsedPs() {
        return elapsedPs();
      },
      get exactElapsedPs() {
        return elapsedPs();
      },
    };
  }

  #newPlatform(): DriverPlatform {
    const { bench, node, memory } = this;
    const cost = 0;
    return {
      pci: {
        bars: [
          { address: bar0Address, sizeBytes: 0x10_0000 },
          { address: 0, sizeBytes: 0 },
          { address: bar2Address, sizeBytes: 0x80_0000 },
        ],
        readConfig32: async (_cpu, offset) => this.#outside(() => bench.read(CONFIG, offset, 4, node)),
        writeConfig32: async (_cpu, offset, value) =>
          this.#outside(() => bench.write(CONFIG, offset, value, 4, node)),
      },
      memory: {
        sizeBytes: memory.bytes.length,
        bytes: memory.bytes,
        view: new DataView(memory.bytes.buffer),
        allocateFrames: (count) => this.#allocate(count),
        leaveToDevice: () => undefined,
        freeFrames: () => {},
      },
      interrupts: {
        vectorCount: 3,
        messageFor: (vector) => ({ address: 0xfee0_0000, data: vector }),
        attach: (vector, handler) => {
          this.#handlers.set(vector, handler);
          bench.slot(node).setInterrupt(INTERRUPT_MSIX, vector, firstDescriptor + vector);
        },
        detach: (vector) => {
          this.#handlers.delete(vector);
          bench.slot(node).setInterrupt(INTERRUPT_MSIX, vector, -1);
        },
      },
      costs: {
        commandPost: cost,
        commandComplete: cost,
        registerRegionFixed: cost,
        registerRegionPerPage: cost,
        deregisterRegionFixed: cost,
        deregisterRegionPerPage: cost,
        createObject: cost,
        interruptHandler: cost,
        eventDispatch: cost,
      },
      randomBits: () => 0,
      newSignal: () => new SlotSignal(this),
      stopwatch: () => this.#stopwatch(),
      spawn: (_name, body) => void body(this.cpu),
    };
  }

  #allocate(count: number): number {
    const first = roundUp(this.#nextPage, count);
    if ((first + count) * pageBytes > this.memory.bytes.length) return -1;
    this.#nextPage = first + count;
    return first * pageBytes;
  }
}

class SlotSignal implements Signal {
  readonly #slot: DrivenSlot;
  #isRaised = false;

  constructor(slot: DrivenSlot) {
    this.#slot = slot;
  }

  raise(): void {
    this.#isRaised = true;
  }

  async wait(_cpu: Cpu, timeoutPs = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { bench } = this.#slot;
    const endMs = bench.wallMs + timeoutPs / PS_PER_MS;
    while (!this.#isRaised && bench.wallMs < endMs) {
      await this.#slot.turnOutside(endMs);
      // Handlers are async: they continue between two turns.
      await null;
    }
    const wasRaised = this.#isRaised;
    this.#isRaised = false;
    return wasRaised;
  }
}

function placeOf(address: number): readonly [region: number, offset: number] {
  return address >= bar0Address ? [BAR0, address - bar0Address] : [BAR2, address - bar2Address];
}
