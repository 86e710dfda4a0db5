/**
 * PCIe without load: stores of a core, reads and writes of the device, loads of a core.
 *
 *     store   core ─ root complex ─ link ─ function
 *     read    HCA ─ MRd ─ link ─ memory ─ CplD, CplD, … ─ link ─ on-chip memory
 *     write   HCA ─ MWr, MWr, … ─ link ─ memory
 *
 * Payload is assumed to begin at a multiple of the completion size. Sources: the stages named with each term.
 */
import { roundUp } from '../../base/index.ts';
import {
  COMPLETION_DATA,
  framingOf,
  linkRateOf,
  MEMORY_READ,
  MEMORY_WRITE,
  tlpBytesOf,
} from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Clocks } from './clocks.ts';
import { delay, lastLeavesPs, type Stage } from './pipeline.ts';

/** All of a host's memory lies below 4 GiB, so that headers of DMA are short. */
const memoryAddress = 0;
const dwordBytes = 4;

/** Bytes of `total` in pieces of at most `most`: the number of whole ones, and the rest if there is one. */
export function piecesOf(total: number, most: number): { readonly whole: number; readonly rest: number[] } {
  const rest = total % most;
  return { whole: Math.floor(total / most), rest: rest === 0 ? [] : [rest] };
}

export class Bus {
  readonly #config: MachineConfig;
  readonly #clocks: Clocks;
  readonly #bytePs: number;
  readonly #framingBytes: number;
  /** BARs of 64 bits lie above 4 GiB. */
  readonly #barAddress: number;
  readonly #writeBytesMax: number;
  readonly #completionBytesMax: number;
  readonly #readBytesMax: number;

  constructor(config: MachineConfig, clocks: Clocks) {
    const { link, enumeration, rootComplex } = config.pcie;
    const rate = linkRateOf(link);
    this.#config = config;
    this.#clocks = clocks;
    this.#bytePs = rate.numeratorPs / rate.denominatorBytes;
    this.#framingBytes = framingOf(link.generation).tlpBytes;
    this.#barAddress = enumeration.highWindowBaseMib * 2 ** 20;
    this.#writeBytesMax = Math.min(
      enumeration.maxPayloadBytes,
      config.pcie.function.maxPayloadSupportedBytes,
      link.maxPayloadBytes,
    );
    this.#readBytesMax = enumeration.maxReadRequestBytes;
    this.#completionBytesMax = Math.min(
      rootComplex.completionCombineBytes,
      link.maxPayloadBytes,
      this.#readBytesMax,
    );
  }

  /** Time of a TLP until its last byte is on the lanes. */
  #lanesPs(kind: number, address: number, lengthBytes: number): number {
    return (tlpBytesOf(kind, address, lengthBytes) + this.#framingBytes) * this.#bytePs;
  }

  /** Time of a TLP in a stream until the next one may begin (packetAlignmentBytes). */
  #spacingPs(kind: number, address: number, lengthBytes: number): number {
    const bytes = tlpBytesOf(kind, address, lengthBytes) + this.#framingBytes;
    return roundUp(bytes, this.#config.pcie.link.packetAlignmentBytes) * this.#bytePs;
  }

  /** Time from a core's store buffer to the HCA's decoder: `count` stores of `lengthBytes` issued at once. */
  storePs(lengthBytes: number, count = 1): number {
    const { rootComplex, link } = this.#config.pcie;
    const { rootComplexPs, hcaPs, toHcaPs, toRootComplexPs } = this.#clocks;
    const decodePs = this.#config.hca.doorbellCycles * hcaPs;
    const stages: Stage<number>[] = [
      { term: 'egress', holdPs: () => rootComplexPs, passPs: () => 0 },
      {
        term: 'lanes',
        holdPs: (bytes) => this.#spacingPs(MEMORY_WRITE, this.#barAddress, bytes),
        passPs: (bytes) => this.#lanesPs(MEMORY_WRITE, this.#barAddress, bytes),
      },
      delay('flight', () => link.latencyPs + toHcaPs),
      { term: 'decode', holdPs: () => decodePs, passPs: () => 0 },
    ];
    const entryPs = toRootComplexPs + this.#clocks.rootComplexLatencyPs(rootComplex.cpuStoreLatencyPs);
    return entryPs + lastLeavesPs(stages, lengthBytes, count);
  }

  /** A core's load of a register, from the moment that it leaves the core until the core continues. */
  loadPs(): number {
    const { rootComplex, link } = this.#config.pcie;
    const entryPs =
      this.#clocks.toRootComplexPs + this.#clocks.rootComplexLatencyPs(rootComplex.cpuStoreLatencyPs);
    const therePs = this.#lanesPs(MEMORY_READ, this.#barAddress, dwordBytes) + link.latencyPs;
    const answerPs = this.#clocks.toHcaPs + this.#config.pcie.function.mmioReadCycles * this.#clocks.hcaPs;
    const backPs = this.#lanesPs(COMPLETION_DATA, this.#barAddress, dwordBytes) + link.latencyPs;
    return entryPs + therePs + answerPs + backPs + rootComplex.cpuLoadReturnLatencyPs;
  }

  /** Time from the read engine's request until its first completion is ready at the root complex. */
  readRequestPs(): number {
    const { rootComplex, link } = this.#config.pcie;
    return (
      this.#lanesPs(MEMORY_READ, memoryAddress, 0) +
      link.latencyPs +
      this.#clocks.toRootComplexPs +
      this.#clocks.rootComplexLatencyPs(rootComplex.readLatencyPs)
    );
  }

  /** Time from the first completion at the root complex until the last byte is on chip. */
  readDataPs(lengthBytes: number): number {
    const { whole, rest } = piecesOf(lengthBytes, this.#completionBytesMax);
    return lastLeavesPs(this.#returnStages(), this.#completionBytesMax, whole, rest);
  }

  /** Time for which reads of this many bytes occupy shared resources. */
  readHoldPs(lengthBytes: number): number {
    return this.#holdPs(this.#returnStages(), lengthBytes, this.#completionBytesMax);
  }

  /** Number of read TLPs for this many bytes. */
  readCountOf(lengthBytes: number): number {
    return Math.ceil(lengthBytes / this.#readBytesMax);
  }

  /** Bytes of the first `count` reads of `lengthBytes`. */
  bytesOfReads(lengthBytes: number, count: number): number {
    return Math.min(lengthBytes, count * this.#readBytesMax);
  }

  /** Time from sending a read until its last byte is on chip. */
  readPs(lengthBytes: number): number {
    return this.readRequestPs() + this.readDataPs(lengthBytes);
  }

  /** Least time of this many bytes as limited by tags: one tag returns each round trip. */
  tagHoldPs(lengthBytes: number): number {
    const underWayBytes = this.#config.dma.tagCount * this.#readBytesMax;
    return (lengthBytes * this.readPs(this.#readBytesMax)) / underWayBytes;
  }

  /** Time from the write engine's start until the last of these writes has left the lanes. */
  writeLanesPs(lengthBytes: number, further: readonly number[] = []): number {
    const { whole, rest } = piecesOf(lengthBytes, this.#writeBytesMax);
    return lastLeavesPs(this.#writeStages(), this.#writeBytesMax, whole, [...rest, ...further]);
  }

  /** Time for which writes of this many bytes occupy the write engine. */
  writeEnginePs(lengthBytes: number): number {
    const { whole, rest } = piecesOf(lengthBytes, this.#writeBytesMax);
    const [engine] = this.#writeStages();
    return (
      whole * engine!.holdPs(this.#writeBytesMax) +
      rest.reduce((sum, bytes) => sum + engine!.holdPs(bytes), 0)
    );
  }

  writeHoldPs(lengthBytes: number): number {
    return this.#holdPs(this.#writeStages(), lengthBytes, this.#writeBytesMax);
  }

  /**
   * Time from the moment that a write has left the lanes until its effect in memory, or until an interrupt message is
   * accepted.
   */
  writeFlightPs(): number {
    const { rootComplex, link } = this.#config.pcie;
    const latencyPs = this.#clocks.rootComplexLatencyPs(rootComplex.writeLatencyPs);
    return link.latencyPs + this.#clocks.toRootComplexPs + latencyPs;
  }

  #holdPs(stages: readonly Stage<number>[], lengthBytes: number, most: number): number {
    const { whole, rest } = piecesOf(lengthBytes, most);
    const holds = stages.map(
      ({ holdPs }) => whole * holdPs(most) + rest.reduce((sum, bytes) => sum + holdPs(bytes), 0),
    );
    return Math.max(...holds);
  }

  /** Time of completions: one edge of the root complex each, the lanes, and the return half of the read engine. */
  #returnStages(): Stage<number>[] {
    const { rootComplexPs, hcaPs, toHcaPs } = this.#clocks;
    const placementCycles = (bytes: number): number => Math.ceil(bytes / this.#config.dma.dataPathBytes);
    return [
      { term: 'egress', holdPs: () => rootComplexPs, passPs: () => 0 },
      {
        term: 'lanes',
        holdPs: (bytes) => this.#spacingPs(COMPLETION_DATA, memoryAddress, bytes),
        passPs: (bytes) => this.#lanesPs(COMPLETION_DATA, memoryAddress, bytes),
      },
      delay('flight', () => this.#config.pcie.link.latencyPs + toHcaPs),
      {
        term: 'land',
        holdPs: (bytes) => placementCycles(bytes) * hcaPs,
        // A read is reported in the cycle in which the last byte is placed (hw/dma/dma-read-engine.ts,
        // #takeCompletion).
        passPs: (bytes) => (placementCycles(bytes) - 1) * hcaPs,
      },
    ];
  }

  #writeStages(): Stage<number>[] {
    const { dataPathBytes, writeIssueCycles } = this.#config.dma;
    const cyclesOf = (bytes: number): number => Math.max(Math.ceil(bytes / dataPathBytes), writeIssueCycles);
    return [
      { term: 'engine', holdPs: (bytes) => cyclesOf(bytes) * this.#clocks.hcaPs, passPs: () => 0 },
      {
        term: 'lanes',
        holdPs: (bytes) => this.#spacingPs(MEMORY_WRITE, memoryAddress, bytes),
        passPs: (bytes) => this.#lanesPs(MEMORY_WRITE, memoryAddress, bytes),
      },
    ];
  }
}
