/**
 * A test bench that is a miniature machine: a root complex with recording memory and interrupt controller, a link, and a device
 * that is only a link port, driven by the test.
 */

import { defaultsOf, type Picoseconds } from '../../../base/index.ts';
import type { LogicalProcess } from '../../../sim/index.ts';
import { type LinkBenchOptions, linkPair, onReceive, runPair } from '../link/link-bench.ts';
import { COMPLETION_DATA, MEMORY_WRITE, PAYLOAD_OFFSET, tlpRecord, WORD_FLAGS } from '../tlp/index.ts';
import { RootComplex } from './root-complex.ts';
import type { HostMemory, MemoryWatcher, SharedDevice } from './root-complex-interfaces.ts';
import { type RootComplexConfig, rootComplexParameters } from './root-complex-parameters.ts';

export class BenchMemory implements HostMemory {
  readonly bytes: Uint8Array;
  /** Active watches. */
  #watches: { readonly page: number; readonly watcher: MemoryWatcher }[] = [];

  /** Shared, like a machine's own memory: an unshared array of this size would trigger the garbage collector for each bench. */
  constructor(sizeBytes: number) {
    this.bytes = new Uint8Array(new SharedArrayBuffer(sizeBytes));
  }

  get sizeBytes(): number {
    return this.bytes.length;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (address + lengthBytes > this.bytes.length) return false;
    target.set(this.bytes.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (address + lengthBytes > this.bytes.length) return false;
    this.bytes.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    this.written(address);
    return true;
  }

  /** The processor has written to {@link bytes}, within one page. */
  written(address: number): void {
    const page = Math.floor(address / 4096);
    for (const watch of this.#watches) if (watch.page === page) watch.watcher.pageWritten();
  }

  watch(address: number, watcher: MemoryWatcher): void {
    this.#watches.push({ page: Math.floor(address / 4096), watcher });
  }

  unwatch(watcher: MemoryWatcher): void {
    this.#watches = this.#watches.filter((watch) => watch.watcher !== watcher);
  }

  /** Watched pages, one for each watch. */
  get watchedPages(): number[] {
    return this.#watches.map(({ page }) => page);
  }
}

/** A TLP that reached the device. */
export interface AtDevice {
  readonly kind: number;
  readonly timePs: Picoseconds;
  readonly tag: number;
  readonly address: number;
  readonly status: number;
  readonly flags: number;
  readonly lengthBytes: number;
  readonly byteCount: number;
  readonly trafficClass: number;
  readonly bytes: number[];
}

export interface RootComplexBenchOptions extends LinkBenchOptions {
  readonly rootComplex?: Partial<RootComplexConfig>;
  readonly memoryBytes?: number;
  /** Replacement of memory in the root complex, such as an IOMMU. */
  readonly memoryOf?: (memory: BenchMemory, hostLp: LogicalProcess) => HostMemory;
  readonly coreCount?: number;
  readonly shared?: Partial<SharedDevice>;
}

export function rootComplexBench(options: RootComplexBenchOptions = {}) {
  const pair = linkPair(options);
  const memory = new BenchMemory(options.memoryBytes ?? 1 << 20);
  const config = { ...defaultsOf(rootComplexParameters), ...options.rootComplex };
  const interrupts: string[] = [];
  const rootComplex = new RootComplex({
    lp: pair.hostLp,
    config,
    end: pair.rootPort,
    port: pair.host,
    memory: options.memoryOf?.(memory, pair.hostLp) ?? memory,
    interrupts: {
      message: (address, data, nowPs) => interrupts.push(`${nowPs} ${address.toString(16)} ${data}`),
      intx: (pin, isAsserted, nowPs) => interrupts.push(`${nowPs} INT${'ABCD'[pin]} ${isAsserted}`),
    },
    coreCount: options.coreCount ?? 2,
    trafficClasses: { register: 12, config: 13 },
    device: { earlyPlaces: undefined, references: undefined, ...options.shared },
  });
  const atDevice: AtDevice[] = [];
  const { reader } = pair.device;
  onReceive(pair.device, (offset, kind) => {
    const tlp = tlpRecord.decode(reader.bytes, offset);
    const { lengthBytes } = tlp;
    const hasPayload = kind === COMPLETION_DATA || kind === MEMORY_WRITE;
    const carriedBytes = hasPayload ? Math.min(lengthBytes, tlp.recordBytes - PAYLOAD_OFFSET) : 0;
    atDevice.push({
      kind,
      timePs: tlp.arrivalPs,
      tag: tlp.tag,
      address: tlp.address,
      status: tlp.status,
      flags: reader.words[(offset >> 2) + WORD_FLAGS]!,
      lengthBytes,
      byteCount: tlp.byteCount,
      trafficClass: tlp.trafficClass,
      bytes: [...reader.bytes.subarray(offset + PAYLOAD_OFFSET, offset + PAYLOAD_OFFSET + carriedBytes)],
    });
    pair.device.consume(offset);
  });
  const run = (untilPs: Picoseconds): void =>
    runPair(pair.deviceLp, pair.hostLp, pair.link.latencyPs, untilPs);
  return { ...pair, memory, config, interrupts, rootComplex, atDevice, run };
}
