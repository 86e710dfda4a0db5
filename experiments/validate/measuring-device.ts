/**
 * The measuring device of pcie-bench, a Netronome NFP-6000 at 1.2 GHz, with its own times as far as the measurements
 * contain them:
 *
 *     command ──(DMA engine: data staged)──> issue: TLPs one by one ──> root complex ──(DMA engine: data moved on)──> end
 *
 * Its commands access memory without the DMA engine, one access at a time. In tests of bandwidth each of 88 contexts
 * waits for its own access before the next (pciebench-nfp, me/pcie_dma.c, dma_bw_worker), so commands are under way or
 * wait for the DMA engine while it works. {@link measuringDeviceNs} explains each time and names the rows that it was
 * derived from.
 */
import { psPerNs } from '../../base/index.ts';
import {
  framingOf,
  headerBytesOf,
  linkRateOf,
  MEMORY_READ,
  MEMORY_WRITE,
  NON_POSTED,
  type PcieLinkPort,
  POSTED,
  REQUEST_BOUNDARY_BYTES,
  tagOf,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_LENGTH,
} from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type ClockDomain, type LogicalProcess, Random } from '../../sim/index.ts';
import type { Figures, SlotPoint } from './points.ts';

/** Accessed memory, if the point names none. */
export const windowBytes = 8192;
const lineBytes = 64;
const clockMHz = 1200;
/** Reads in flight: 5-bit tags. */
const readsMax = 32;
/** Accesses in the DMA engine, from its start to the end of the moved data. Estimate: as many as tags. */
const engineAccessesMax = readsMax;
const requesterId = 0x100;
/** Accounting classes of its reads and writes. */
const readClass = 4;
const writeClass = 5;
/** Enough for a steady state; the first quarter is not counted. */
const accessesMax = 4000;
/** Single accesses: all are alike if their places are in turn. */
const singleAccesses = 20;
const singleAccessesAtRandom = 1000;
const placesSeed = 1;

/** Times of the device in nanoseconds, each fitted to a few rows of measurements.csv group I. */
export const measuringDeviceNs = {
  /** Cycles from a command of its thread to the PCIe island and back: I-001a, minus link and root complex. */
  command: 90,
  /** The DMA engine's start of an access: I-005a minus I-001a. */
  engine: 112,
  /**
   * The engine moves a line of 64 bytes between the link and its memory, and spends the same on a concurrent read
   * (I-019 to I-022); a write TLP takes at least two (I-030 to I-034).
   */
  line: 8.2,
  /** Before the first TLP of a write: I-031, I-033. */
  writeAccess: 4,
} as const;
const commandPs = measuringDeviceNs.command * psPerNs;
/** Time of a write TLP and of a read, in lines. */
const writeTlpLinesMin = 2;
const readLines = 1;

/** No request crosses a page. */
const withinPage = (address: number, lengthBytes: number): number =>
  Math.min(lengthBytes, REQUEST_BOUNDARY_BYTES - (address % REQUEST_BOUNDARY_BYTES));

/** One access: its remaining bytes and the time from which they may be issued, outstanding reads, and its instants. */
interface Access {
  readonly beganPs: number;
  readyPs: number;
  isWriteBegun: boolean;
  writeLeft: number;
  readLeft: number;
  /** Time of the engine to move read data on. */
  movePs: number;
  pending: number;
}

/** Splits accesses into TLPs, issues them one by one and records the end of each. A write ends when it is issued. */
export class MeasuringDevice {
  readonly #port: PcieLinkPort;
  readonly #lp: LogicalProcess;
  readonly #point: SlotPoint;
  readonly #readBytesMax: number;
  readonly #writeBytesMax: number;
  readonly #alignmentBytes: number;
  readonly #framingBytes: number;
  readonly #psPerByte: number;
  readonly #domain: ClockDomain;
  readonly #stage: number;
  readonly #endHandler: number;
  readonly #source = new Uint8Array(windowBytes);
  readonly #count: number;
  readonly #windowBytes: number;
  readonly #isRandom: boolean;
  readonly #places = new Random(placesSeed, 'slot.places');
  readonly #accessOfTag: (Access | undefined)[] = Array.from({ length: readsMax }, () => undefined);
  /**
   * Accesses on the way to the DMA engine or waiting for it, those to be issued, and those whose data are being moved
   * on.
   */
  readonly #commanded: Access[] = [];
  readonly #waiting: Access[] = [];
  readonly #moving: Access[] = [];
  /** Latencies and ends, in the order of the ends. */
  readonly #latenciesPs: number[] = [];
  readonly #endsPs: number[] = [];
  #issueFreePs = 0;
  #moveFreePs = 0;
  #begun = 0;
  #inEngine = 0;

  constructor(port: PcieLinkPort, lp: LogicalProcess, { pcie }: MachineConfig, point: SlotPoint) {
    this.#port = port;
    this.#lp = lp;
    this.#point = point;
    this.#readBytesMax = pcie.enumeration.maxReadRequestBytes;
    this.#writeBytesMax = pcie.link.maxPayloadBytes;
    this.#alignmentBytes = pcie.link.packetAlignmentBytes;
    this.#framingBytes = framingOf(pcie.link.generation).tlpBytes;
    this.#psPerByte = 8e3 / linkRateOf(pcie.link).gigabitsPerSecond;
    this.#windowBytes = point.memory?.bytes ?? windowBytes;
    this.#isRandom = point.memory !== undefined;
    const singles = this.#isRandom ? singleAccessesAtRandom : singleAccesses;
    this.#count = point.window === 1 ? singles : accessesMax;
    this.#domain = lp.addClockDomain(clockMHz);
    this.#stage = this.#domain.addStage(() => this.#run());
    this.#endHandler = lp.queue.addHandler(() => this.#end(this.#moving.shift()!));
    const wake = (): void => this.#domain.wakeAfter(this.#stage, lp.nowPs);
    const sender = { linkSpace: wake };
    const receiver = { receiveTlp: (offset: number) => this.#take(offset, wake) };
    port.connect({ receiver, posted: [sender], nonPosted: [sender], completion: [] });
    this.#domain.wake(this.#stage, 1);
  }

  get isDone(): boolean {
    return this.#endsPs.length >= this.#count;
  }

  figures(): Figures {
    const { sizeBytes, access } = this.#point;
    const [from, last] = [this.#count >> 2, this.#count - 1];
    const spanPs = this.#endsPs[last]! - this.#endsPs[from]!;
    const sorted = this.#latenciesPs.slice(from).toSorted((left, right) => left - right);
    // If reads and writes alternate, half go in either direction; the link carries both at once.
    const counted = access === 'both' ? (last - from) / 2 : last - from;
    return {
      latencyNs: sorted[sorted.length >> 1]! / 1e3,
      gbps: (counted * sizeBytes * 8e3) / spanPs,
    };
  }

  /** Starts accesses while the window has room, and issues everything due. */
  #run(): void {
    for (let access = this.#begin(); access !== undefined; access = this.#begin())
      this.#commanded.push(access);
    this.#admit();
    for (let access = this.#waiting[0]; access !== undefined; access = this.#waiting[0]) {
      const fromPs = Math.max(access.readyPs, this.#issueFreePs);
      if (fromPs > this.#lp.nowPs) return this.#domain.wakeAfter(this.#stage, fromPs);
      if (access.writeLeft > 0 ? !this.#write(access) : !this.#read(access)) return;
      if (access.writeLeft > 0 || access.readLeft > 0) continue;
      this.#waiting.shift();
      if (access.pending === 0) this.#end(access);
    }
  }

  /** Commands that have arrived start while the engine has room. */
  #admit(): void {
    for (let access = this.#commanded[0]; access !== undefined; access = this.#commanded[0]) {
      if (this.#inEngine === engineAccessesMax) return;
      if (access.readyPs > this.#lp.nowPs) return this.#domain.wakeAfter(this.#stage, access.readyPs);
      this.#inEngine++;
      access.readyPs = this.#lp.nowPs + this.#enginePs(access.writeLeft);
      this.#waiting.push(access);
      this.#commanded.shift();
    }
  }

  #begin(): Access | undefined {
    const { access, sizeBytes, window } = this.#point;
    if (this.#begun === this.#count || this.#begun - this.#endsPs.length >= window) return undefined;
    const isWrite =
      access === 'write' || access === 'writeThenRead' || (access === 'both' && this.#begun % 2 === 1);
    const isRead = access !== 'write' && !(access === 'both' && isWrite);
    this.#begun++;
    const beganPs = this.#lp.nowPs;
    return {
      beganPs,
      readyPs: beganPs + commandPs,
      isWriteBegun: false,
      writeLeft: isWrite ? sizeBytes : 0,
      readLeft: isRead ? sizeBytes : 0,
      movePs: 0,
      pending: 0,
    };
  }

  /** Time of the engine before the first TLP: it stages the data that it writes. */
  #enginePs(stagedBytes: number): number {
    const { engine, line } = measuringDeviceNs;
    return this.#point.via === 'engine' ? Math.round((engine + linesOf(stagedBytes) * line) * psPerNs) : 0;
  }

  /** Address of an access's remaining bytes: accesses begin at cache lines. */
  #addressOf(left: number): number {
    const strideBytes = linesOf(this.#point.sizeBytes) * lineBytes;
    const places = Math.floor(this.#windowBytes / strideBytes);
    const place = this.#isRandom ? this.#places.below(places) : this.#begun % places;
    return place * strideBytes + this.#point.sizeBytes - left;
  }

  #write(access: Access): boolean {
    if (!this.#port.canSend(POSTED)) return false;
    const address = this.#addressOf(access.writeLeft);
    const lengthBytes = withinPage(address, Math.min(access.writeLeft, this.#writeBytesMax));
    this.#port.write.begin(address, this.#source, 0, lengthBytes).trafficClass = writeClass;
    this.#port.sendMemoryWrite();
    const { writeAccess, line } = measuringDeviceNs;
    const firstNs = access.isWriteBegun ? 0 : writeAccess;
    access.isWriteBegun = true;
    this.#occupyIssue(firstNs, writeTlpLinesMin * line, headerBytesOf(MEMORY_WRITE, address) + lengthBytes);
    access.writeLeft -= lengthBytes;
    // The read that follows is a command of its own.
    if (access.writeLeft === 0 && access.readLeft > 0)
      access.readyPs = this.#issueFreePs + commandPs + this.#enginePs(0);
    return true;
  }

  /** A TLP is sent as fast as the link accepts it and the device makes TLPs. */
  #occupyIssue(beforeNs: number, leastNs: number, tlpBytes: number): void {
    const bytes = tlpBytes + this.#framingBytes;
    const linkBytes = Math.ceil(bytes / this.#alignmentBytes) * this.#alignmentBytes;
    const tlpPs = Math.max(leastNs * psPerNs, linkBytes * this.#psPerByte);
    this.#issueFreePs = Math.round(this.#lp.nowPs + beforeNs * psPerNs + tlpPs);
  }

  #read(access: Access): boolean {
    const tag = this.#accessOfTag.indexOf(undefined);
    if (tag < 0 || !this.#port.canSend(NON_POSTED)) return false;
    const address = this.#addressOf(access.readLeft);
    const lengthBytes = withinPage(address, Math.min(access.readLeft, this.#readBytesMax));
    const read = this.#port.read.begin(address, lengthBytes);
    read.trafficClass = readClass;
    read.tag = tag;
    read.requesterId = requesterId;
    this.#port.sendMemoryRead();
    this.#occupyIssue(0, 0, headerBytesOf(MEMORY_READ, address));
    this.#accessOfTag[tag] = access;
    access.readLeft -= lengthBytes;
    access.pending++;
    if (this.#point.via === 'engine')
      access.movePs += Math.round((readLines + linesOf(lengthBytes)) * measuringDeviceNs.line * psPerNs);
    return true;
  }

  #take(offset: number, wake: () => void): void {
    const { words } = this.#port.reader;
    const word = offset >> 2;
    const isLast = words[word + WORD_LENGTH] === words[word + WORD_BYTE_COUNT];
    const tag = tagOf(words[word + WORD_DESCRIPTOR]!);
    this.#port.consume(offset);
    if (!isLast) return;
    const access = this.#accessOfTag[tag]!;
    this.#accessOfTag[tag] = undefined;
    wake();
    if (--access.pending > 0 || access.readLeft > 0) return;
    this.#moveFreePs = Math.max(this.#moveFreePs, this.#lp.nowPs) + access.movePs;
    this.#moving.push(access);
    this.#lp.queue.schedule(this.#moveFreePs, this.#endHandler, 0, 0);
  }

  #end({ beganPs }: Access): void {
    this.#inEngine--;
    this.#latenciesPs.push(this.#lp.nowPs - beganPs);
    this.#endsPs.push(this.#lp.nowPs);
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }
}

const linesOf = (bytes: number): number => Math.ceil(bytes / lineBytes);
