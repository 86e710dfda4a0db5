/**
 * Connection management of one HCA: the agent on QP1 and the CM above it, brought up when the first program opens an event
 * channel (as modprobe rdma_ucm would), taken down with the device and brought up again with it. Also the services that IDs
 * use: addresses, ports, paths. Event channels, ports, listeners and communication IDs belong to the host and outlive the
 * device, as those of Linux' rdma_cm and ib_cm modules do.
 *
 * On InfiniBand, addresses come from the host's table, which represents the IPoIB interface and its neighbours, and subnet
 * administration returns the path to a port. On Ethernet, the port's own interface finds neighbours (../network), and a path is
 * a MAC. The own address is the table entry with this port's GUID or MAC.
 */
import { MadClass } from '../../abi/index.ts';
import { msToPs } from '../../base/index.ts';
import { textOfGid } from '../address-text.ts';
import type { Device } from '../device.ts';
import { type EthernetPort, ethernetPortOf } from '../ethernet-port.ts';
import { gidOfMac } from '../gid.ts';
import { KernelError } from '../kernel-error.ts';
import { Mutex } from '../mutex.ts';
import type { Cpu, DriverPlatform, Neighbour } from '../platform.ts';
import type { Port } from '../port.ts';
import type { Teardown } from '../teardown.ts';
import { errnoNumbers } from '../uapi.ts';
import { CommunicationIds } from './communication-ids.ts';
import type { CmDrop } from './connection.ts';
import { type CmListener, ConnectionManager } from './connection-manager.ts';
import { EventChannel } from './event-channel.ts';
import { gidOfAddress, isIpv4Address } from './internet-address.ts';
import { MadAgent, type MadConsumers } from './mad-agent.ts';
import { PathQueries, type RouteTaken } from './path-queries.ts';

/** First port that is given to an ID without a port of its own: net.ipv4.ip_local_port_range of Linux. */
const firstFreePort = 32_768;
const lastPort = 65_535;
/** MADs of QP1, connections in any state, and messages of the CM that did nothing, by reason. */
export interface ConnectionCounts {
  readonly sent: number;
  readonly received: number;
  /** MADs of a class without a consumer. */
  readonly unclaimed: number;
  readonly failed: number;
  /** MADs dropped because too many waited for room in the send queue. */
  readonly overflowed: number;
  readonly connections: number;
  readonly dropped: Readonly<Record<CmDrop, number>>;
}

/** The parts that exist while the device is up. */
interface Running {
  readonly agent: MadAgent;
  readonly manager: ConnectionManager;
  readonly own: Neighbour;
  readonly paths: PathQueries;
  /** Undefined on InfiniBand, where paths are queried. */
  readonly roce: RocePaths | undefined;
}

/** Attributes that all paths on Ethernet share. */
interface RocePaths {
  readonly port: EthernetPort;
  /** MTU code of the verbs. */
  readonly mtu: number;
  readonly rate: number;
}

/** Packet life time of every path on Ethernet, as in Linux: CMA_IBOE_PACKET_LIFETIME, found in its captured REQs (reference/wire). */
const packetLifeTime = 18;
/** ip_default_ttl. */
const routedHopLimit = 64;
const serviceLevel = 0;

/** Receives a GID, or an errno. It must not wait. */
type GidTaken = (outcome: Uint8Array | number) => void;

export class CmService {
  readonly #platform: DriverPlatform;
  readonly #lock: Mutex;
  readonly #channels = new Set<EventChannel>();
  readonly #ports = new Set<number>();
  readonly #ids: CommunicationIds;
  readonly #listeners = new Map<bigint, CmListener>();
  #running: Running | undefined;
  #nextPort = firstFreePort;

  constructor(platform: DriverPlatform) {
    this.#platform = platform;
    this.#lock = new Mutex(() => platform.newSignal());
    this.#ids = new CommunicationIds(platform.randomBits());
  }

  /** The CM. @throws KernelError ENODEV if the device was removed */
  get manager(): ConnectionManager {
    return this.#up.manager;
  }

  /** Addresses of this host: its IPv4 address, and on Ethernet also the link-local IPv6 address. */
  get ownAddresses(): readonly string[] {
    const { own, roce } = this.#up;
    return [own.address, ...(roce === undefined ? [] : [textOfGid(gidOfMac(roce.port.mac))])];
  }

  /** The address of this host from which it reaches another. @throws KernelError ENETUNREACH if this host has no address of that kind */
  ownAddressTo(address: string): string {
    const own = this.ownAddresses.find((candidate) => isIpv4Address(candidate) === isIpv4Address(address));
    if (own === undefined) throw new KernelError('ENETUNREACH', `no route to ${address}`);
    return own;
  }

  /** Messages sent and received on QP1, and those of the CM that did nothing, since it was brought up. */
  counts(): ConnectionCounts | undefined {
    const running = this.#running;
    if (running === undefined) return undefined;
    const { agent, manager } = running;
    return { ...agent.counts, connections: manager.connectionCount, dropped: { ...manager.dropped } };
  }

  /**
   * Opens an event channel.
   * @param teardown receives the step that stops connection management before the device is removed
   * @throws KernelError EOPNOTSUPP on a host without a table of neighbours, ENODEV when this port is not in it
   */
  async open(cpu: Cpu, device: Device, teardown: Teardown): Promise<EventChannel> {
    await this.#bringUp(cpu, device, teardown);
    const channel = new EventChannel(this.#platform, this, () => this.#channels.delete(channel));
    this.#channels.add(channel);
    return channel;
  }

  /** Brings the CM up on a device that returned, if a program has an event channel: its listeners at any address take requests again. */
  async deviceAdded(cpu: Cpu, device: Device, teardown: Teardown): Promise<void> {
    if (this.#channels.size === 0) return;
    try {
      await this.#bringUp(cpu, device, teardown);
    } catch (error) {
      if (!(error instanceof KernelError)) throw error;
      this.#platform.log?.(`rdma_cm: ${error.message}`);
    }
  }

  /** Accepts requests for a service ID, on each device that is present now or later. @returns false if the service ID already has a listener */
  listen(serviceId: bigint, listener: CmListener): boolean {
    if (this.#listeners.has(serviceId)) return false;
    this.#listeners.set(serviceId, listener);
    return true;
  }

  stopListening(serviceId: bigint): void {
    this.#listeners.delete(serviceId);
  }

  /** Reserves a port; 0 reserves any free one. @throws KernelError EADDRINUSE */
  takePort(port: number): number {
    if (port !== 0) {
      if (this.#ports.has(port)) throw new KernelError('EADDRINUSE', `port ${port} is taken`);
      this.#ports.add(port);
      return port;
    }
    for (let tried = firstFreePort; tried <= lastPort; tried++) {
      const free = this.#nextPort;
      this.#nextPort = free === lastPort ? firstFreePort : free + 1;
      if (this.#ports.has(free)) continue;
      this.#ports.add(free);
      return free;
    }
    throw new KernelError('EADDRINUSE', 'no port is left');
  }

  givePort(port: number): void {
    this.#ports.delete(port);
  }

  /**
   * Finds the GID of an address: in the address table on InfiniBand; on Ethernet by resolving its MAC, which every path needs.
   * @throws KernelError ENETUNREACH
   */
  findGid(cpu: Cpu, address: string, timeoutMs: number, taken: GidTaken): void {
    const { roce, manager } = this.#up;
    if (roce !== undefined) {
      const gid = gidOfAddress(address);
      roce.port.interface.resolve(cpu, gid, timeoutMs, (outcome) =>
        taken(typeof outcome === 'number' ? outcome : gid),
      );
      return;
    }
    const peer = this.#platform.neighbours?.find((entry) => entry.address === address);
    if (peer !== undefined) taken(gidOfPort(peer));
    else manager.timers.after(msToPs(timeoutMs), () => taken(errnoNumbers.ETIMEDOUT));
  }

  /** Queries subnet administration for the path to a GID; on Ethernet only the MAC is needed. */
  findPath(cpu: Cpu, gid: Uint8Array, timeoutMs: number, taken: RouteTaken): void {
    const { paths, own, roce } = this.#up;
    if (roce === undefined) return paths.ask(cpu, gidOfPort(own), gid, timeoutMs, taken);
    const { port, mtu, rate } = roce;
    const sgidIndex = port.gidIndexTo(gid);
    port.interface.resolve(cpu, gid, timeoutMs, (mac) => {
      if (typeof mac === 'number') return taken(mac);
      taken({
        local: { lid: 0, gid: port.gidAt(sgidIndex) },
        remote: { lid: 0, gid },
        serviceLevel,
        mtu,
        rate,
        packetLifeTime,
        roce: { sgidIndex, hopLimit: routedHopLimit, mac },
      });
    });
  }

  get #up(): Running {
    if (this.#running === undefined) throw new KernelError('ENODEV', 'the device is gone');
    return this.#running;
  }

  async #bringUp(cpu: Cpu, device: Device, teardown: Teardown): Promise<void> {
    await this.#lock.run(cpu, async () => {
      if (this.#running !== undefined) return;
      this.#running = await this.#start(cpu, device);
      teardown.push('QP1', (thread) => this.#stop(thread));
    });
  }

  async #start(cpu: Cpu, device: Device): Promise<Running> {
    const { neighbours } = this.#platform;
    if (neighbours === undefined)
      throw new KernelError('EOPNOTSUPP', 'the host has no table of addresses for connections');
    const port = device.ports[0]!;
    const ethernet = ethernetPortOf(port);
    const own = await ownEntry(cpu, port, neighbours);
    if (own === undefined) throw new KernelError('ENODEV', 'this port is not in the table of addresses');
    const manager: ConnectionManager = new ConnectionManager({
      platform: this.#platform,
      caGuid: device.nodeGuid,
      ids: this.#ids,
      listeners: this.#listeners,
      gidIndexTo: ethernet && ((gid, isRoutable) => ethernet.gidIndexTo(gid, isRoutable)),
      send: (thread, bytes, to) => agent.send(thread, bytes, to),
    });
    const { smLid: lid, smSl, activeMtu: mtu } = await port.query(cpu);
    const roce = ethernet && { port: ethernet, mtu, rate: await ethernet.pathRate(cpu) };
    const paths: PathQueries = new PathQueries({
      timers: manager.timers,
      manager: { lid, serviceLevel: smSl },
      send: (thread, bytes, to) => agent.send(thread, bytes, to),
    });
    const consumers: MadConsumers = new Map([
      [MadClass.COMMUNICATION, (thread, received) => manager.receive(thread, received)],
      [MadClass.SUBN_ADM, (thread, received) => paths.receive(thread, received)],
    ]);
    const agent = await MadAgent.open(cpu, device, consumers);
    return { agent, manager, own, paths, roce };
  }

  async #stop(cpu: Cpu): Promise<void> {
    const { agent, manager, paths } = this.#up;
    this.#running = undefined;
    manager.close();
    paths.close();
    for (const channel of this.#channels) channel.deviceRemoved(cpu);
    await agent.close(cpu);
  }
}

/** The entry of this port: found by MAC on Ethernet, otherwise by GUID. */
async function ownEntry(
  cpu: Cpu,
  port: Port,
  neighbours: readonly Neighbour[],
): Promise<Neighbour | undefined> {
  const ethernet = ethernetPortOf(port);
  if (ethernet !== undefined) return neighbours.find(({ mac }) => mac === ethernet.mac);
  const gid = await port.gid(cpu, 0);
  const portGuid = new DataView(gid.buffer).getBigUint64(8);
  return neighbours.find((entry) => entry.portGuid === portGuid);
}

function gidOfPort({ portGuid }: Neighbour): Uint8Array {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  view.setBigUint64(0, 0xfe80_0000_0000_0000n);
  view.setBigUint64(8, portGuid);
  return gid;
}
