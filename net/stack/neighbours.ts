/**
 * The hosts of a link and their MACs, for one IP version: configured and resolved ones.
 *
 *     transmit ─┬─ MAC known ──► device
 *               └─ not ──► the frame waits, all hosts are asked ─┬─ answer ──► all that waited leave
 *                          (at 0, 1 and 2 s)                     └─ 3 s without one ──► they are dropped, the stack is notified
 *
 * Confirms a neighbour as Linux does: by its acknowledgements, otherwise by probing it (driver/network). A sent or handled
 * packet costs as much as a segment. Sources: Linux 6.1, net/core/neighbour.c (__neigh_event_send: the oldest that waits goes).
 */
import { type Neighbour, NeighbourTable, ProtocolTimers } from '../../driver/network/index.ts';
import type { NetStatistics } from '../net-statistics.ts';
import type { Cpu } from '../platform.ts';
import { bytesOfIp, type IpAddress, keyOfAddress } from './address.ts';
import type { OutboundFrame, StackEnvironment } from './environment.ts';

/** Route to a host of a link. */
export interface NeighbourRoute {
  readonly destination: IpAddress;
  /** The neighbour entry found by the last send. */
  neighbour: Neighbour | undefined;
}

/** Resolution of the neighbours of one IP version. */
export interface Resolution {
  /** Whether an address can be resolved. */
  isOnLink(address: IpAddress): boolean;
  /** The frame that requests an address: sent to all stations, or to its last known owner. */
  request(address: Uint8Array, mac?: Uint8Array): Uint8Array;
  readonly requestCount: keyof Pick<NetStatistics, 'arpRequests' | 'neighborSolicitations'>;
  /** The tag of the link's frames. */
  readonly tag: number;
  /** No host has answered for an address; called on a kernel thread. */
  failed(cpu: Cpu, address: IpAddress): void;
}

/** Frames that wait for an address being resolved. */
interface Waiting {
  readonly address: IpAddress;
  readonly frames: OutboundFrame[];
}

/** mcast_solicit times retrans_time. */
const resolutionMs = 3000;
/** Limit of frames that wait for a neighbour: unresolved ones of Linux (unres_qlen). */
const waitingFramesMax = 101;
const macBytes = 6;

export class Neighbours {
  readonly table: NeighbourTable<Cpu>;
  readonly #environment: StackEnvironment;
  readonly #resolution: Resolution;
  readonly #timers: ProtocolTimers<Cpu>;
  readonly #waiting = new Map<number | string, Waiting>();
  #isClosed = false;

  /** @param configured MACs that are never resolved, and never change */
  constructor(
    environment: StackEnvironment,
    resolution: Resolution,
    configured: Iterable<readonly [IpAddress, Uint8Array]>,
  ) {
    const { platform } = environment;
    this.#environment = environment;
    this.#resolution = resolution;
    this.#timers = new ProtocolTimers<Cpu>(
      {
        stopwatch: () => platform.stopwatch(),
        startTimer: (delayPs, due) => platform.startTimer(delayPs, due),
        spawn: (name, body) => this.#spawn(name, body),
      },
      'neighbours',
    );
    this.table = new NeighbourTable<Cpu>({
      timers: this.#timers,
      newStopwatch: () => platform.stopwatch(),
      solicit: (cpu, address) => this.#ask(cpu, address),
      probe: (cpu, address, mac) => this.#ask(cpu, address, mac),
    });
    for (const [address, mac] of configured) this.table.addPermanent(bytesOfIp(address), mac);
  }

  /** Whether the configuration has a route to an address. */
  isReachable(address: IpAddress): boolean {
    return this.#resolution.isOnLink(address) || this.table.find(bytesOfIp(address))?.state === 'permanent';
  }

  /**
   * Posts a frame to the device, with both MAC addresses, at once or when the neighbour's is known.
   * @returns false, and keeps nothing, if the neighbour has no route
   */
  transmit(cpu: Cpu, route: NeighbourRoute, frame: OutboundFrame): boolean {
    const mac = this.#macOf(route);
    if (mac !== undefined) this.#leave(cpu, mac, frame);
    else if (this.#resolution.isOnLink(route.destination) && !this.#isClosed)
      this.#wait(cpu, route.destination, frame);
    else return false;
    return true;
  }

  /** A neighbour has acknowledged a packet. */
  confirmed({ neighbour }: NeighbourRoute): void {
    if (neighbour !== undefined) this.table.confirmed(neighbour);
  }

  /** The table may have resolved an address: frames that waited for it are sent. */
  found(cpu: Cpu, address: IpAddress): void {
    const neighbour = this.table.find(bytesOfIp(address));
    const waiting = this.#waiting.get(keyOfAddress(address));
    if (neighbour === undefined || waiting === undefined || neighbour.state === 'incomplete') return;
    this.#waiting.delete(keyOfAddress(address));
    const { device, counts } = this.#environment;
    for (const frame of waiting.frames) {
      const mac = device.room > 0 ? this.table.used(neighbour) : undefined;
      if (mac !== undefined) this.#leave(cpu, mac, frame);
      else counts.unresolvedFrames++;
      this.#letGo(frame);
    }
  }

  /** Sends a complete frame. @returns false if no buffer, or no room in the ring, is left: as if the cable had lost it */
  send(cpu: Cpu, frame: Uint8Array): boolean {
    const { device, platform, costs } = this.#environment;
    const buffer = device.room > 0 ? device.buffers.take() : undefined;
    if (buffer === undefined) return false;
    cpu.charge('protocol', costs.bufferAllocate + costs.protocolTransmit);
    platform.memory.bytes.set(frame, buffer.address);
    this.#give(cpu, { buffer, start: 0, lengthBytes: frame.length, checksum: undefined });
    device.buffers.giveWhenSent(buffer);
    return true;
  }

  /** The device is being removed: drops waiting frames and stops all requests. */
  close(): void {
    this.#isClosed = true;
    this.table.close();
    this.#timers.close();
    for (const { address } of [...this.#waiting.values()]) this.#drop(address);
  }

  /** Flushes all frames that one of our threads has posted. */
  #spawn(name: string, body: (cpu: Cpu) => Promise<void>): void {
    this.#environment.platform.spawn(name, async (cpu) => {
      await body(cpu);
      await this.#environment.device.flush(cpu);
    });
  }

  #macOf(route: NeighbourRoute): Uint8Array | undefined {
    const known = route.neighbour === undefined ? undefined : this.table.used(route.neighbour);
    if (known !== undefined) return known;
    route.neighbour = this.table.find(bytesOfIp(route.destination));
    return route.neighbour === undefined ? undefined : this.table.used(route.neighbour);
  }

  #leave(cpu: Cpu, mac: Uint8Array, frame: OutboundFrame): void {
    const { platform, device } = this.#environment;
    const at = frame.buffer.address + frame.start;
    platform.memory.bytes.set(mac, at);
    platform.memory.bytes.set(device.macAddress, at + macBytes);
    this.#give(cpu, frame);
  }

  #give(cpu: Cpu, frame: OutboundFrame): void {
    this.#environment.device.transmit(cpu, frame, this.#resolution.tag);
  }

  #wait(cpu: Cpu, address: IpAddress, frame: OutboundFrame): void {
    const { counts } = this.#environment;
    const key = keyOfAddress(address);
    const known: Waiting | undefined = this.#waiting.get(key);
    const frames: OutboundFrame[] = known?.frames ?? [];
    frame.buffer.inRing++;
    frames.push(frame);
    if (frames.length > waitingFramesMax) {
      this.#letGo(frames.shift()!);
      counts.unresolvedFrames++;
    }
    if (known !== undefined) return;
    this.#waiting.set(key, { address, frames });
    this.table.resolve(cpu, bytesOfIp(address), resolutionMs, (outcome) => {
      if (typeof outcome === 'number') this.#isUnanswered(address);
    });
    this.found(cpu, address);
  }

  #isUnanswered(address: IpAddress): void {
    if (this.#isClosed) return;
    this.#spawn('neighbours', async (cpu) => {
      this.#drop(address);
      this.#resolution.failed(cpu, address);
      await cpu.settle();
    });
  }

  #drop(address: IpAddress): void {
    const frames = this.#waiting.get(keyOfAddress(address))?.frames ?? [];
    this.#waiting.delete(keyOfAddress(address));
    this.#environment.counts.unresolvedFrames += frames.length;
    for (const frame of frames) this.#letGo(frame);
  }

  #letGo({ buffer }: OutboundFrame): void {
    this.#environment.device.buffers.leftRing(buffer);
  }

  #ask(cpu: Cpu, address: Uint8Array, mac?: Uint8Array): void {
    const { counts } = this.#environment;
    if (!this.send(cpu, this.#resolution.request(address, mac))) return;
    counts[this.#resolution.requestCount]++;
    if (mac !== undefined) counts.neighbourProbes++;
  }
}
