/**
 * Connection management of one HCA: the agent on QP1 and the CM above it, brought up when the first program opens an event
 * channel (as modprobe rdma_ucm would), taken down with the device; and what IDs need of it: addresses, ports, paths.
 *
 * Addresses are those of the host's table of neighbours, which stands for IPoIB's interface, its neighbour table and the
 * subnet administration's path records. Own address: the entry with the GUID of this port.
 */
import type { Device } from '../device.ts';
import { KernelError } from '../kernel-error.ts';
import { Mutex } from '../mutex.ts';
import type { Cpu, DriverPlatform, Neighbour } from '../platform.ts';
import type { PortAttr } from '../uapi.ts';
import { pathPacketLifeTime } from './cm-constants.ts';
import type { CmDrop } from './connection.ts';
import { ConnectionManager } from './connection-manager.ts';
import { EventChannel } from './event-channel.ts';
import { MadAgent } from './mad-agent.ts';
import type { Path, PortAddress } from './path.ts';

/** First port that is given to an ID without a port of its own: net.ipv4.ip_local_port_range of Linux. */
const firstFreePort = 32_768;
const lastPort = 65_535;
/** Rates of a link by lanes and speed of a lane, in units of 2.5 Gbit/s, as path records code them. */
const rateCodes: { readonly [laneUnits: number]: number } = {
  1: 2,
  2: 5,
  4: 3,
  8: 6,
  12: 4,
  16: 7,
  24: 8,
  32: 9,
  48: 10,
};
const rateOfFdr4x = 12;
const lanesOf: { readonly [width: number]: number } = { 1: 1, 2: 4, 4: 8, 8: 12 };
/** Speeds of PortAttr in units of 2.5 Gbit/s; FDR has a code of its own. */
const unitsOf: { readonly [speed: number]: number } = { 1: 1, 2: 2, 4: 4, 8: 4 };

/** MADs of QP1, connections in any state, and messages of the CM that did nothing, by reason. */
export interface ConnectionCounts {
  readonly sent: number;
  readonly received: number;
  /** Of a class without a consumer. */
  readonly unclaimed: number;
  readonly failed: number;
  /** Too many to wait for room in the send queue. */
  readonly overflowed: number;
  readonly connections: number;
  readonly dropped: Readonly<Record<CmDrop, number>>;
}

/** What runs while the device is up. */
interface Running {
  readonly agent: MadAgent;
  readonly manager: ConnectionManager;
  readonly own: Neighbour;
  readonly port: PortAttr;
}

export class CmService {
  readonly #platform: DriverPlatform;
  readonly #lock: Mutex;
  readonly #channels = new Set<EventChannel>();
  readonly #ports = new Set<number>();
  #running: Running | undefined;
  #nextPort = firstFreePort;

  constructor(platform: DriverPlatform) {
    this.#platform = platform;
    this.#lock = new Mutex(() => platform.newSignal());
  }

  /** The CM. @throws KernelError ENODEV when the device is gone */
  get manager(): ConnectionManager {
    return this.#up.manager;
  }

  /** Address of this host. */
  get ownAddress(): string {
    return this.#up.own.address;
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
   * @param started takes what is to be done before the device goes
   * @throws KernelError EOPNOTSUPP on a host without a table of neighbours, ENODEV when this port is not in it
   */
  async open(
    cpu: Cpu,
    device: Device,
    started: (stop: (cpu: Cpu) => Promise<void>) => void,
  ): Promise<EventChannel> {
    await this.#lock.run(cpu, async () => {
      if (this.#running !== undefined) return;
      this.#running = await this.#start(cpu, device);
      started((thread) => this.#stop(thread));
    });
    const channel = new EventChannel(this.#platform, this, () => this.#channels.delete(channel));
    this.#channels.add(channel);
    return channel;
  }

  /** Takes a port; 0 takes one that is free. @throws KernelError EADDRINUSE */
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

  /** The path to an address of the table, or undefined. */
  pathTo(address: string): Path | undefined {
    const { own, port } = this.#up;
    const peer = this.#platform.neighbours?.find((entry) => entry.address === address);
    if (peer === undefined) return undefined;
    return {
      local: portAddressOf(own),
      remote: portAddressOf(peer),
      serviceLevel: port.smSl,
      mtu: port.activeMtu,
      rate: rateOf(port),
      packetLifeTime: pathPacketLifeTime,
    };
  }

  get #up(): Running {
    if (this.#running === undefined) throw new KernelError('ENODEV', 'the device is gone');
    return this.#running;
  }

  async #start(cpu: Cpu, device: Device): Promise<Running> {
    const { neighbours } = this.#platform;
    if (neighbours === undefined)
      throw new KernelError('EOPNOTSUPP', 'the host has no table of addresses for connections');
    const [port] = device.ports;
    const gid = await port!.gid(cpu, 0);
    const portGuid = new DataView(gid.buffer).getBigUint64(8);
    const own = neighbours.find((entry) => entry.portGuid === portGuid);
    if (own === undefined) throw new KernelError('ENODEV', 'this port is not in the table of addresses');
    const manager: ConnectionManager = new ConnectionManager({
      platform: this.#platform,
      caGuid: device.nodeGuid,
      send: (thread, bytes, to) => agent.send(thread, bytes, to),
    });
    const agent = await MadAgent.open(cpu, device, (thread, received) => manager.receive(thread, received));
    return { agent, manager, own, port: await port!.query(cpu) };
  }

  async #stop(cpu: Cpu): Promise<void> {
    const { agent, manager } = this.#up;
    this.#running = undefined;
    manager.close();
    for (const channel of this.#channels) channel.deviceRemoved();
    await agent.close(cpu);
  }
}

function portAddressOf({ lid, portGuid }: Neighbour): PortAddress {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  view.setBigUint64(0, 0xfe80_0000_0000_0000n);
  view.setBigUint64(8, portGuid);
  return { lid, gid };
}

function rateOf({ activeWidth, activeSpeed }: PortAttr): number {
  const units = (lanesOf[activeWidth] ?? 0) * (unitsOf[activeSpeed] ?? 0);
  return rateCodes[units] ?? rateOfFdr4x;
}
