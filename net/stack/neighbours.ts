/**
 * The hosts of the link and their MACs: those of the configuration, and those that ARP has found.
 *
 *     transmit ─┬─ MAC known ──► device
 *               └─ not ──► the frame waits, everybody is asked ─┬─ answer ──► all that waited leave
 *                          (RFC 826; at 0, 1 and 2 s)           └─ 3 s without one ──► they are dropped, the stack is notified
 *
 * A MAC that was found is used until another takes its place: nothing goes stale. What is sent and handled costs what a segment
 * does. Sources: Linux 6.1, net/core/neighbour.c (__neigh_event_send: the oldest that waits goes), net/ipv4/arp.c; driver/network.
 */
import { arpRequest, NeighbourTable, ProtocolTimers, receiveArp } from '../../driver/network/index.ts';
import type { Cpu } from '../platform.ts';
import type { StackEnvironment } from './environment.ts';
import type { PacketBuffer } from './packet-buffer.ts';

/** The network as the stack is configured for it. */
export interface NetAddresses {
  /** Our IPv4 address as a number. */
  readonly address: number;
  /** Hardware addresses of hosts that need not be looked for, and never change. */
  readonly neighbours: ReadonlyMap<number, Uint8Array>;
  /** Leading bits that all hosts of the link share with our address, 1 to 30: these are looked for. Left out: there are no others. */
  readonly linkPrefixBits?: number | undefined;
}

/** A frame whose MAC addresses are not yet in its buffer, or are. */
export interface OutboundFrame {
  readonly buffer: PacketBuffer;
  /** Where in the buffer the frame begins, and its bytes. */
  readonly start: number;
  readonly lengthBytes: number;
  /** Whether the device is to put a checksum of the transport into it. */
  readonly isChecksummed: boolean;
}

/** mcast_solicit times retrans_time of ARP. */
const resolutionMs = 3000;
/** Frames that wait for a neighbour: unresolved ones of Linux (unres_qlen). */
const waitingFramesMax = 101;
const macBytes = 6;
const allOnes = 0xffff_ffff;

export class Neighbours {
  readonly #environment: StackEnvironment;
  readonly #addresses: NetAddresses;
  readonly #failed: (cpu: Cpu, address: number) => void;
  /** MACs as they are used; those of the configuration for ever. */
  readonly #macs: Map<number, Uint8Array>;
  readonly #timers: ProtocolTimers<Cpu>;
  readonly #table: NeighbourTable<Cpu>;
  readonly #waiting = new Map<number, OutboundFrame[]>();
  #isClosed = false;

  /** @param failed called when nobody has answered for an address, on a thread of the kernel */
  constructor(
    environment: StackEnvironment,
    addresses: NetAddresses,
    failed: (cpu: Cpu, address: number) => void,
  ) {
    const { platform } = environment;
    this.#environment = environment;
    this.#addresses = addresses;
    this.#failed = failed;
    this.#macs = new Map(addresses.neighbours);
    this.#timers = new ProtocolTimers<Cpu>(
      {
        stopwatch: () => platform.stopwatch(),
        startTimer: (delayPs, due) => platform.startTimer(delayPs, due),
        spawn: (name, body) => this.#spawn(name, body),
      },
      'neighbours',
    );
    this.#table = new NeighbourTable<Cpu>({
      timers: this.#timers,
      newStopwatch: () => platform.stopwatch(),
      solicit: (cpu, address) => this.#solicit(cpu, numberOf(address)),
    });
  }

  /** Whether there is a way to an address, as far as the configuration says. */
  isReachable(address: number): boolean {
    return this.#macs.has(address) || this.#isOnLink(address);
  }

  /**
   * Gives a frame to the device, with both MAC addresses, now or when the neighbour's is known.
   * @returns false, and nothing is kept, where there is no way to the neighbour
   */
  transmit(cpu: Cpu, address: number, frame: OutboundFrame): boolean {
    const mac = this.#macs.get(address);
    if (mac !== undefined) this.#leave(cpu, mac, frame);
    else if (this.#isOnLink(address) && !this.#isClosed) this.#wait(cpu, address, frame);
    else return false;
    return true;
  }

  /** Takes a frame of ARP, whose bytes stay the caller's. */
  receive(cpu: Cpu, { physical, length }: PacketBuffer): void {
    const { platform, counts, device, address: own } = this.#environment;
    const frame = platform.memory.bytes.subarray(physical, physical + length);
    const outcome = receiveArp(frame, {
      mac: device.macAddress,
      isOwn: (address) => address === own,
      isOnLink: (address) => this.isReachable(address),
      asked: (address, mac) => {
        if (this.#isFoundByArp(address)) this.#table.asked(bytesOf(address), mac);
        this.#found(cpu, address);
      },
      announced: (address, mac, flags) => {
        const isTaken = this.#isFoundByArp(address) && this.#table.announced(bytesOf(address), mac, flags);
        if (isTaken) this.#found(cpu, address);
        return isTaken;
      },
    });
    if (typeof outcome !== 'string') {
      if (this.#sendArp(cpu, outcome)) counts.arpReplies++;
    } else if (outcome === 'malformed') counts.badFrames++;
    else if (outcome !== 'taken') counts.arpIgnored++;
  }

  /** The device goes: what waits is dropped, and nobody is asked any more. */
  close(): void {
    this.#isClosed = true;
    this.#table.close();
    this.#timers.close();
    for (const address of [...this.#waiting.keys()]) this.#drop(address);
  }

  /** Everything that a thread of ours has sent leaves. */
  #spawn(name: string, body: (cpu: Cpu) => Promise<void>): void {
    this.#environment.platform.spawn(name, async (cpu) => {
      await body(cpu);
      await this.#environment.device.flush(cpu);
    });
  }

  /** Neither our own, nor that of the network or of all its hosts. */
  #isOnLink(address: number): boolean {
    const { linkPrefixBits: bits, address: own } = this.#addresses;
    if (bits === undefined || address === own) return false;
    const hostBits = allOnes >>> bits;
    const host = (address & hostBits) >>> 0;
    const isSameLink = address >>> (32 - bits) === own >>> (32 - bits);
    return isSameLink && host !== 0 && host !== hostBits;
  }

  /** Not of the configuration. */
  #isFoundByArp(address: number): boolean {
    return this.#isOnLink(address) && !this.#addresses.neighbours.has(address);
  }

  #leave(cpu: Cpu, mac: Uint8Array, { buffer, start, lengthBytes, isChecksummed }: OutboundFrame): void {
    const { platform, device } = this.#environment;
    const at = buffer.address + start;
    platform.memory.bytes.set(mac, at);
    platform.memory.bytes.set(device.macAddress, at + macBytes);
    device.transmit(cpu, buffer, start, lengthBytes, isChecksummed);
  }

  #wait(cpu: Cpu, address: number, frame: OutboundFrame): void {
    const { counts } = this.#environment;
    const waiting = this.#waiting.get(address) ?? [];
    frame.buffer.inRing++;
    waiting.push(frame);
    if (waiting.length > waitingFramesMax) {
      this.#letGo(waiting.shift()!);
      counts.unresolvedFrames++;
    }
    if (this.#waiting.has(address)) return;
    this.#waiting.set(address, waiting);
    this.#table.resolve(cpu, bytesOf(address), resolutionMs, (outcome) => {
      if (typeof outcome === 'number') this.#isUnanswered(address);
    });
    this.#found(cpu, address);
  }

  /** The table may know an address better: what has waited for it leaves. */
  #found(cpu: Cpu, address: number): void {
    const mac = this.#table.macOf(bytesOf(address));
    if (mac === undefined) return;
    this.#macs.set(address, mac);
    const waiting = this.#waiting.get(address) ?? [];
    this.#waiting.delete(address);
    const { device, counts } = this.#environment;
    for (const frame of waiting) {
      if (device.room > 0) this.#leave(cpu, mac, frame);
      else counts.unresolvedFrames++;
      this.#letGo(frame);
    }
  }

  #isUnanswered(address: number): void {
    if (this.#isClosed) return;
    this.#spawn('neighbours', async (cpu) => {
      this.#drop(address);
      this.#failed(cpu, address);
      await cpu.settle();
    });
  }

  #drop(address: number): void {
    const waiting = this.#waiting.get(address) ?? [];
    this.#waiting.delete(address);
    this.#environment.counts.unresolvedFrames += waiting.length;
    for (const frame of waiting) this.#letGo(frame);
  }

  #letGo({ buffer }: OutboundFrame): void {
    this.#environment.device.buffers.leftRing(buffer);
  }

  #solicit(cpu: Cpu, address: number): void {
    const { device, counts, address: own } = this.#environment;
    if (this.#sendArp(cpu, arpRequest({ mac: device.macAddress, address: own }, address)))
      counts.arpRequests++;
  }

  /** @returns false where there is no buffer, or no room in the ring: it is as if the cable had lost it */
  #sendArp(cpu: Cpu, frame: Uint8Array): boolean {
    const { device, platform, costs } = this.#environment;
    const buffer = device.room > 0 ? device.buffers.take() : undefined;
    if (buffer === undefined) return false;
    cpu.charge('protocol', costs.bufferAllocate + costs.protocolTransmit);
    platform.memory.bytes.set(frame, buffer.address);
    device.transmit(cpu, buffer, 0, frame.length, false);
    device.buffers.giveWhenSent(buffer);
    return true;
  }
}

const bytesOf = (address: number): Uint8Array =>
  Uint8Array.of(address >>> 24, address >>> 16, address >>> 8, address);

const numberOf = (bytes: Uint8Array): number => bytes.reduce((number, byte) => number * 256 + byte, 0);
