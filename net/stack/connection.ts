/** A connection in the kernel: packet buffers, a route, waiting threads, and the cost of each step in cycles. */
import { ConfigurationError, kib } from '../../base/index.ts';
import { plainTcp, type SegmentFields, TcpConnection, type TcpSetup } from '../../protocol/tcp/index.ts';
import type { Cpu } from '../platform.ts';
import type { StackEnvironment } from './environment.ts';
import type { Route } from './interface.ts';
import { type IpVersion, ipVersionOf } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import { ReceiveQueue } from './receive-queue.ts';
import { sendSegment } from './segment-writer.ts';
import { WaitQueue } from './wait-queue.ts';

export interface Ends {
  readonly localPort: number;
  readonly remotePort: number;
  /** Both addresses, and the interface between them. */
  readonly route: Route;
}

export class Connection extends TcpConnection<Cpu, PacketBuffer> implements Ends {
  readonly environment: StackEnvironment;
  readonly localPort: number;
  readonly remotePort: number;
  readonly route: Route;
  readonly version: IpVersion;
  readonly received: ReceiveQueue;
  sendLimitBytes: number;
  isThrottled = false;
  /** The socket has shut down reading. */
  isReadShut = false;
  /** Threads that wait for bytes, for room, or for establishment. */
  readonly readers: WaitQueue;
  readonly writers: WaitQueue;

  constructor(environment: StackEnvironment, ends: Ends, initialSequence: number, isPassive: boolean) {
    super(setupOf(environment, ends, initialSequence, isPassive));
    const { config, device, platform, counts, costs } = environment;
    this.environment = environment;
    this.localPort = ends.localPort;
    this.remotePort = ends.remotePort;
    this.route = ends.route;
    this.version = ipVersionOf(ends.route.destination);
    this.sendLimitBytes = kib(config.sendBufferKib);
    this.setReceiveLimit(kib(config.receiveBufferKib));
    this.received = new ReceiveQueue(device.buffers, platform.memory, config.outOfOrderMax);
    this.readers = new WaitQueue(platform, counts, costs.wakeUp);
    this.writers = new WaitQueue(platform, counts, costs.wakeUp);
  }

  /** Bytes to keep for the program: at least two packets, and two units of the window; otherwise a segment would never fit. */
  setReceiveLimit(bytes: number): void {
    if (!(bytes > 0)) throw new ConfigurationError('receive buffer', bytes, 'above zero');
    this.receiveLimitBytes = Math.max(bytes, 2 * this.environment.device.mtu, 2 * 2 ** this.receiveScale);
  }

  nowPs(): number {
    return this.environment.platform.nowPs();
  }

  get room(): number {
    return this.environment.device.room;
  }

  /** Send queue memory counted against its limit: buffers count whole, and twice the limit is allowed, as in Linux. */
  get hasSendRoom(): boolean {
    return this.sendQueue.length * this.environment.device.buffers.bufferBytes < 2 * this.sendLimitBytes;
  }

  isHeld(buffer: PacketBuffer): boolean {
    return buffer.inRing > 0;
  }

  sendData(cpu: Cpu, fields: SegmentFields, buffer: PacketBuffer): boolean {
    return sendSegment(cpu, this.environment, this, fields, buffer, buffer.start, buffer.length);
  }

  sendControl(cpu: Cpu, fields: SegmentFields, buffer: PacketBuffer): boolean {
    const { headroomBytes, synBytes } = this.version;
    const payloadAt = fields.maximumSegment > 0 ? synBytes : headroomBytes;
    const isSent = sendSegment(cpu, this.environment, this, fields, buffer, payloadAt, 0);
    this.release(buffer);
    return isSent;
  }

  takeBuffer(): PacketBuffer | undefined {
    return this.environment.device.buffers.take();
  }

  allocated(cpu: Cpu): void {
    cpu.charge('protocol', this.environment.costs.bufferAllocate);
  }

  freed(cpu: Cpu, buffers: number): void {
    cpu.charge('protocol', buffers * this.environment.costs.bufferFree);
  }

  copied(cpu: Cpu, bytes: number): void {
    const { counts, platform } = this.environment;
    cpu.charge('copy', platform.costs.copyFixed + Math.ceil(bytes / platform.costs.copyBytesPerCycle));
    counts.copiesInside++;
    counts.copiedInsideBytes += bytes;
  }

  release(buffer: PacketBuffer): void {
    this.environment.device.buffers.giveWhenSent(buffer);
  }

  discard(buffer: PacketBuffer): void {
    this.environment.device.buffers.give(buffer);
  }

  pathConfirmed(): void {
    this.route.via.confirmed(this.route);
  }

  readable(cpu: Cpu): void {
    this.readers.wake(cpu);
  }

  writable(cpu: Cpu): void {
    this.writers.wake(cpu);
  }

  throttle(): void {
    this.environment.throttle(this);
  }

  deadlineChanged(): void {
    this.environment.timersChanged(this);
  }

  established(cpu: Cpu): boolean {
    return this.environment.established(cpu, this);
  }

  timeWaits(): void {
    this.environment.timeWaits(this);
  }

  forget(): void {
    this.environment.forget(this);
  }
}

function setupOf(
  { config, counts, device }: StackEnvironment,
  { route }: Ends,
  initialSequence: number,
  isPassive: boolean,
): TcpSetup {
  const { segmentHeaderBytes, unsaidSegmentBytes } = ipVersionOf(route.destination);
  return {
    limits: config,
    extensions: plainTcp,
    counts,
    initialSequence,
    isPassive,
    segmentBytes: device.mtu - segmentHeaderBytes,
    defaultSegmentBytes: unsaidSegmentBytes,
  };
}
