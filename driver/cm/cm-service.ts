/**
 * Connection management of one HCA: the connector (the IBTA's CM on QP1, or iWARP's) and the routes to peers, brought up when the
 * first program opens an event channel (as modprobe rdma_ucm would), taken down with the device and brought up again with it.
 * Event channels, ports, listeners and communication IDs belong to the host and outlive the device, as those of Linux' rdma_cm
 * and ib_cm modules do. Own address: the entry of the host's table with the GUID, or MAC, of this port.
 */
import type { Device } from '../device.ts';
import { ethernetPortOf } from '../ethernet-port.ts';
import { KernelError } from '../kernel-error.ts';
import { Mutex } from '../mutex.ts';
import type { Cpu, DriverPlatform, Neighbour } from '../platform.ts';
import type { Port } from '../port.ts';
import type { Teardown } from '../teardown.ts';
import { CommunicationIds } from './communication-ids.ts';
import type { CmListener, Connector, ConnectorCounts } from './connector.ts';
import { EthernetRoutes } from './ethernet-routes.ts';
import { EventChannel } from './event-channel.ts';
import { IbtaConnector } from './ibta-connector.ts';
import { isIpv4Address } from './internet-address.ts';
import { IwarpConnector } from './iwarp-connector.ts';
import type { Routes } from './routes.ts';
import { portOfService } from './service-id.ts';
import { SubnetRoutes } from './subnet-routes.ts';

/** First port that is given to an ID without a port of its own: net.ipv4.ip_local_port_range of Linux. */
const firstFreePort = 32_768;
const lastPort = 65_535;

/** The parts that exist while the device is up. */
interface Running {
  readonly connector: Connector;
  readonly routes: Routes;
}

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

  /** The network's connections. @throws KernelError ENODEV when the device is gone */
  get connector(): Connector {
    return this.#up.connector;
  }

  /** The routes to peers. @throws KernelError ENODEV when the device is gone */
  get routes(): Routes {
    return this.#up.routes;
  }

  /** The address of this host from which it reaches another. @throws KernelError ENETUNREACH if this host has no address of that kind */
  ownAddressTo(address: string): string {
    const { ownAddresses } = this.routes;
    const own = ownAddresses.find((candidate) => isIpv4Address(candidate) === isIpv4Address(address));
    if (own === undefined) throw new KernelError('ENETUNREACH', `no route to ${address}`);
    return own;
  }

  /** Messages and connections since connection management was brought up. */
  counts(): ConnectorCounts | undefined {
    return this.#running?.connector.counts;
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

  /**
   * Takes requests for a service ID, on each device that is or will be there; returns when a device that is there does.
   * @throws KernelError EADDRINUSE when the service ID has a listener, and the device's when it cannot listen
   */
  async listen(cpu: Cpu, serviceId: bigint, listener: CmListener): Promise<void> {
    if (this.#listeners.has(serviceId))
      throw new KernelError('EADDRINUSE', `port ${portOfService(serviceId)} has a listener`);
    this.#listeners.set(serviceId, listener);
    try {
      await this.#running?.connector.listen(cpu, serviceId);
    } catch (error) {
      this.#listeners.delete(serviceId);
      throw error;
    }
  }

  stopListening(serviceId: bigint): void {
    this.#listeners.delete(serviceId);
    this.#running?.connector.stopListening(serviceId);
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
    const own = await ownEntry(cpu, port, neighbours);
    if (own === undefined) throw new KernelError('ENODEV', 'this port is not in the table of addresses');
    if (device.iwarpQps !== undefined) {
      const ethernet = ethernetPortOf(port)!;
      const setup = { device, port: ethernet, qps: device.iwarpQps, listeners: this.#listeners };
      return {
        connector: new IwarpConnector(setup),
        routes: await EthernetRoutes.open(cpu, ethernet, own),
      };
    }
    const ibta = await IbtaConnector.open(cpu, {
      device,
      port,
      ids: this.#ids,
      listeners: this.#listeners,
    });
    const ethernet = ethernetPortOf(port);
    const routes =
      ethernet === undefined
        ? new SubnetRoutes(ibta, own, neighbours)
        : await EthernetRoutes.open(cpu, ethernet, own);
    return { connector: ibta, routes };
  }

  async #stop(cpu: Cpu): Promise<void> {
    const { connector } = this.#up;
    this.#running = undefined;
    await connector.close(cpu, () => {
      for (const channel of this.#channels) channel.deviceRemoved(cpu);
    });
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
