/**
 * The host's slot with a measuring device in it: a bare link port that reads and writes memory, as pcie-bench's does, and takes
 * no time of its own. Link and root complex are those of the machine's configuration.
 *
 *     window 1      one access after the other: the latency of each
 *     many          accesses of a window in flight: the payload that the link carries
 */
import { psPerUs } from '../../base/units.ts';
import {
  type HostMemory,
  NON_POSTED,
  PcieLinkPort,
  POSTED,
  REQUEST_BOUNDARY_BYTES,
  RootComplex,
  tagOf,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_LENGTH,
} from '../../hw/pcie/index.ts';
import {
  ChannelReader,
  ChannelWriter,
  type ClockDomain,
  channelBufferBytes,
  LogicalProcess,
} from '../../sim/index.ts';
import type { MachineConfig } from '../machine/profile/index.ts';
import type { Figures, SlotPoint } from './points.ts';

const channelBytes = 1 << 20;
/** Of memory that is read and written: a window of the last-level cache. */
const windowBytes = 8192;
const lineBytes = 64;
/** Reads in flight: 5-bit tags. */
const readsMax = 32;
const requesterId = 0x100;
/** Accounting classes of its reads and writes. */
const readClass = 4;
const writeClass = 5;
/** Enough for a steady state; the first quarter is not counted. */
const accessesMax = 4000;
const limitPs = 2000 * psPerUs;

class SlotMemory implements HostMemory {
  readonly #bytes = new Uint8Array(2 * windowBytes);

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    target.set(this.#bytes.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    this.#bytes.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    return true;
  }
}

/** Runs the accesses of a point. @returns their latency and the payload carried, of one direction */
export function slotFigures(config: MachineConfig, point: SlotPoint): Figures {
  const { link, rootPort, endpointPort, rootComplex } = config.pcie;
  const [up, down] = [0, 1].map(() => new SharedArrayBuffer(channelBufferBytes(channelBytes)));
  const [deviceLp, hostLp] = [new LogicalProcess('device'), new LogicalProcess('host')];
  const common = { link, trafficClassCount: 16 };
  const device = new PcieLinkPort({
    ...common,
    lp: deviceLp,
    end: endpointPort,
    peer: rootPort,
    writer: new ChannelWriter(up!),
    reader: new ChannelReader(down!),
  });
  const port = new PcieLinkPort({
    ...common,
    lp: hostLp,
    end: rootPort,
    peer: endpointPort,
    writer: new ChannelWriter(down!),
    reader: new ChannelReader(up!),
  });
  new RootComplex({
    lp: hostLp,
    config: rootComplex,
    end: rootPort,
    port,
    memory: new SlotMemory(),
    interrupts: { message: () => {}, intx: () => {} },
    coreCount: 1,
    trafficClasses: { register: 12, config: 13 },
  });
  const meter = new MeasuringDevice(device, deviceLp, config, point);
  run([deviceLp, hostLp], link.latencyPs, () => meter.isDone);
  return meter.figures();
}

/** Both processes in turn, in windows of the link's latency, until the device has what it wants. */
function run(sides: readonly LogicalProcess[], windowPs: number, isDone: () => boolean): void {
  while (!isDone()) {
    for (const lp of sides) lp.publish(lp.nowPs);
    for (const lp of sides) lp.refreshHorizon();
    const nextPs = Math.min(...sides.map((lp) => lp.nextPs()));
    if (nextPs >= limitPs) return;
    for (const lp of sides) lp.advance(Math.min(nextPs + windowPs, limitPs));
  }
}

/** No request crosses a page. */
const withinPage = (address: number, lengthBytes: number): number =>
  Math.min(lengthBytes, REQUEST_BOUNDARY_BYTES - (address % REQUEST_BOUNDARY_BYTES));

/** One access: what is left of it to issue, reads that have not come back, and its instants. */
interface Access {
  readonly beganPs: number;
  writeLeft: number;
  readLeft: number;
  pending: number;
}

/** Splits accesses into TLPs, issues them as fast as the port takes them and notes when each is over. A write is over once it is issued. */
class MeasuringDevice {
  readonly #port: PcieLinkPort;
  readonly #lp: LogicalProcess;
  readonly #point: SlotPoint;
  readonly #readBytesMax: number;
  readonly #writeBytesMax: number;
  readonly #domain: ClockDomain;
  readonly #stage: number;
  readonly #source = new Uint8Array(windowBytes);
  readonly #count: number;
  readonly #accessOfTag: (Access | undefined)[] = Array.from({ length: readsMax }, () => undefined);
  /** Latencies and ends, in the order of the ends. */
  readonly #latenciesPs: number[] = [];
  readonly #endsPs: number[] = [];
  #current: Access | undefined;
  #begun = 0;

  constructor(port: PcieLinkPort, lp: LogicalProcess, { pcie, hca }: MachineConfig, point: SlotPoint) {
    this.#port = port;
    this.#lp = lp;
    this.#point = point;
    this.#readBytesMax = pcie.enumeration.maxReadRequestBytes;
    this.#writeBytesMax = pcie.link.maxPayloadBytes;
    this.#count = point.window === 1 ? 20 : accessesMax;
    this.#domain = lp.addClockDomain(hca.coreClockMHz);
    this.#stage = this.#domain.addStage(() => this.#issue());
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
    const sorted = this.#latenciesPs.toSorted((left, right) => left - right);
    // Of reads and writes in turn half go either way; the link carries both at once.
    const counted = access === 'both' ? (last - from) / 2 : last - from;
    return {
      latencyNs: sorted[sorted.length >> 1]! / 1e3,
      gbps: (counted * sizeBytes * 8e3) / spanPs,
    };
  }

  #issue(): void {
    for (;;) {
      this.#current ??= this.#begin();
      const access = this.#current;
      if (access === undefined) return;
      if (access.writeLeft > 0 ? !this.#write(access) : !this.#read(access)) return;
      if (access.writeLeft > 0 || access.readLeft > 0) continue;
      this.#current = undefined;
      if (access.pending === 0) this.#end(access);
    }
  }

  #begin(): Access | undefined {
    const { access, sizeBytes, window } = this.#point;
    if (this.#begun === this.#count || this.#begun - this.#endsPs.length >= window) return undefined;
    const isWrite =
      access === 'write' || access === 'writeThenRead' || (access === 'both' && this.#begun % 2 === 1);
    const isRead = access !== 'write' && !(access === 'both' && isWrite);
    this.#begun++;
    return {
      beganPs: this.#lp.nowPs,
      writeLeft: isWrite ? sizeBytes : 0,
      readLeft: isRead ? sizeBytes : 0,
      pending: 0,
    };
  }

  /** Where the part of an access lies of which so many bytes are left: accesses begin at cache lines. */
  #addressOf(left: number): number {
    const strideBytes = Math.ceil(this.#point.sizeBytes / lineBytes) * lineBytes;
    const places = Math.floor(windowBytes / strideBytes);
    return (this.#begun % places) * strideBytes + this.#point.sizeBytes - left;
  }

  #write(access: Access): boolean {
    if (!this.#port.canSend(POSTED)) return false;
    const address = this.#addressOf(access.writeLeft);
    const lengthBytes = withinPage(address, Math.min(access.writeLeft, this.#writeBytesMax));
    this.#port.write.begin(address, this.#source, 0, lengthBytes).trafficClass = writeClass;
    this.#port.sendMemoryWrite();
    access.writeLeft -= lengthBytes;
    return true;
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
    this.#accessOfTag[tag] = access;
    access.readLeft -= lengthBytes;
    access.pending++;
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
    if (--access.pending === 0 && access.readLeft === 0) this.#end(access);
    wake();
  }

  #end({ beganPs }: Access): void {
    this.#latenciesPs.push(this.#lp.nowPs - beganPs);
    this.#endsPs.push(this.#lp.nowPs);
  }
}
