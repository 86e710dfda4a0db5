/**
 * The system calls of rdma_cm on one event channel: its IDs, and the events that wait for the program. A request takes a place
 * of its listener's backlog until the program fetches it; if the backlog is full, the request is dropped without an answer, and
 * the peer asks again (Linux: ucma_event_handler, -ENOMEM).
 */
import { RejectReason } from '../../abi/index.ts';
import { BlockingQueue } from '../blocking-queue.ts';
import { HandleTable } from '../handle-table.ts';
import { KernelError, require, requireWithin } from '../kernel-error.ts';
import { Mutex } from '../mutex.ts';
import type { Cpu, DriverPlatform } from '../platform.ts';
import {
  type CmEventRecord,
  RdmaCmEventType as Event,
  type IdAddresses,
  type KernelEventChannel,
  type RdmaConnParam,
  RdmaPortSpace,
  type SocketAddress,
} from '../rdma-cm.ts';
import type { Handle, QpAttr, QpStateVerb } from '../uapi.ts';
import type { CmService } from './cm-service.ts';
import type { CmListener, IdConnection, IncomingRequest } from './connector.ts';
import { anyIpv4, anyIpv6, isIpv4Address, plainAddress, requireAddress } from './internet-address.ts';
import { RdmaId } from './rdma-id.ts';
import { serviceIdOf } from './service-id.ts';

/** Linux: net.rdma_ucm.max_backlog. */
const backlogMax = 1024;
const timeoutMsMax = 2 ** 31 - 1;

/** Whether an ID is bound to an address of a device. */
const isBound = ({ src }: RdmaId): boolean => src !== undefined && !isAny(src.sinAddr);

const isAny = (address: string): boolean => address === anyIpv4 || address === anyIpv6;

/** A listener at any address of IPv6 also accepts IPv4 requests (Linux: net.ipv6.bindv6only 0). The reverse does not hold. */
const isListeningAt = (own: string, asked: string): boolean =>
  own === anyIpv6 || own === asked || (own === anyIpv4 && isIpv4Address(asked));

export class EventChannel implements KernelEventChannel {
  readonly #platform: DriverPlatform;
  readonly #service: CmService;
  readonly #closed: () => void;
  readonly #lock: Mutex;
  readonly #ids = new HandleTable<RdmaId>('connection ID');
  readonly #events: BlockingQueue<CmEventRecord>;
  #isClosed = false;

  constructor(platform: DriverPlatform, service: CmService, closed: () => void) {
    this.#platform = platform;
    this.#service = service;
    this.#closed = closed;
    this.#lock = new Mutex(() => platform.newSignal());
    this.#events = new BlockingQueue(
      () => platform.newSignal(),
      () => platform.stopwatch(),
    );
  }

  async createId(cpu: Cpu, portSpace: number): Promise<Handle> {
    return this.#call(cpu, 'rdma_create_id', () => {
      if (portSpace !== RdmaPortSpace.RDMA_PS_TCP)
        throw new KernelError('EOPNOTSUPP', `port space 0x${portSpace.toString(16)}, expected RDMA_PS_TCP`);
      return this.#newId().handle;
    });
  }

  async bindAddr(cpu: Cpu, id: Handle, address: SocketAddress): Promise<void> {
    return this.#call(cpu, 'rdma_bind_addr', () => this.#bind(this.#ids.get(id), address));
  }

  async resolveAddr(
    cpu: Cpu,
    handle: Handle,
    src: SocketAddress | undefined,
    dst: SocketAddress,
    timeoutMs: number,
  ): Promise<void> {
    return this.#call(cpu, 'rdma_resolve_addr', () => {
      const id = this.#ids.get(handle);
      id.expect('Idle', 'Bound');
      requireAddress('dst', dst);
      requireWithin('timeoutMs', timeoutMs, 0, timeoutMsMax);
      const own = this.#service.ownAddressTo(dst.sinAddr);
      if (src !== undefined) requireAddress('src', src);
      const from = src ?? id.src;
      require(from === undefined ||
        isIpv4Address(from.sinAddr) === isIpv4Address(own), 'the addresses are not both of IPv4 or of IPv6');
      if (id.state === 'Idle') this.#bind(id, src ?? { sinAddr: own, sinPort: 0 });
      id.src = { ...id.src!, sinAddr: own };
      id.dst = plainAddress(dst);
      id.state = 'AddrResolving';
      try {
        this.#service.routes.findGid(cpu, id.dst.sinAddr, timeoutMs, (outcome) => id.addressFound(outcome));
      } catch (error) {
        id.state = 'Bound';
        throw error;
      }
    });
  }

  async resolveRoute(cpu: Cpu, handle: Handle, timeoutMs: number): Promise<void> {
    return this.#call(cpu, 'rdma_resolve_route', () => {
      const id = this.#ids.get(handle);
      id.expect('AddrResolved');
      requireWithin('timeoutMs', timeoutMs, 0, timeoutMsMax);
      id.state = 'RouteResolving';
      this.#service.routes.findPath(cpu, id.destinationGid!, timeoutMs, (outcome) => {
        if (id.state === 'RouteResolving') id.routeFound(outcome);
      });
    });
  }

  async listen(cpu: Cpu, handle: Handle, backlog: number): Promise<void> {
    return this.#call(cpu, 'rdma_listen', async () => {
      const id = this.#ids.get(handle);
      id.expect('Idle', 'Bound');
      require(Number.isInteger(backlog), `backlog is ${String(backlog)}, expected a whole number`);
      if (id.state === 'Idle') this.#bind(id, { sinAddr: anyIpv4, sinPort: 0 });
      const serviceId = serviceIdOf(id.src!.sinPort);
      const requested: CmListener['requested'] = (_cpu, request, connection) =>
        this.#requested(id, request, connection);
      id.backlog = backlog <= 0 || backlog > backlogMax ? backlogMax : backlog;
      id.serviceId = serviceId;
      id.state = 'Listening';
      try {
        await this.#service.listen(cpu, serviceId, { requested });
      } catch (error) {
        if (id.state === 'Listening') id.state = 'Bound';
        throw error;
      }
    });
  }

  async connect(cpu: Cpu, handle: Handle, param: RdmaConnParam): Promise<void> {
    return this.#call(cpu, 'rdma_connect', () => {
      const id = this.#ids.get(handle);
      id.expect('RouteResolved');
      const { connector } = this.#service;
      id.connect(cpu, serviceIdOf(id.dst!.sinPort), param, (path) => connector.newConnection(path));
    });
  }

  async accept(cpu: Cpu, handle: Handle, param: RdmaConnParam | undefined): Promise<void> {
    return this.#call(cpu, 'rdma_accept', () => this.#ids.get(handle).accept(cpu, param));
  }

  async reject(cpu: Cpu, handle: Handle, privateData: Uint8Array): Promise<void> {
    return this.#call(cpu, 'rdma_reject', () => this.#ids.get(handle).reject(cpu, privateData));
  }

  async disconnect(cpu: Cpu, handle: Handle): Promise<void> {
    return this.#call(cpu, 'rdma_disconnect', () => this.#ids.get(handle).disconnect(cpu));
  }

  async initQpAttr(cpu: Cpu, handle: Handle, state: QpStateVerb): Promise<{ attr: QpAttr; mask: number }> {
    return this.#call(cpu, 'rdma_init_qp_attr', () => this.#ids.get(handle).qpAttributes(state));
  }

  async queryAddresses(cpu: Cpu, handle: Handle): Promise<IdAddresses> {
    return this.#call(cpu, 'rdma_query_route', () => {
      const id = this.#ids.get(handle);
      const { src, dst } = id;
      return { src: src ?? { sinAddr: anyIpv4, sinPort: 0 }, dst, portNum: isBound(id) ? 1 : 0 };
    });
  }

  async getEvent(cpu: Cpu, timeoutPs?: number): Promise<CmEventRecord | undefined> {
    this.#enter(cpu, 'rdma_get_cm_event');
    const event = await this.#events.take(cpu, timeoutPs);
    if (event?.event === Event.RDMA_CM_EVENT_CONNECT_REQUEST) this.#ids.get(event.listenId).backlog++;
    return event;
  }

  async destroyId(cpu: Cpu, handle: Handle): Promise<void> {
    return this.#call(cpu, 'rdma_destroy_id', () => this.#end(cpu, this.#ids.get(handle)));
  }

  async destroy(cpu: Cpu): Promise<void> {
    return this.#call(cpu, 'rdma_destroy_event_channel', () => {
      if (this.#ids.size > 0) throw new KernelError('EBUSY', `the event channel has ${this.#ids.size} IDs`);
      this.#shut();
    });
  }

  async close(cpu: Cpu): Promise<void> {
    if (this.#isClosed) return;
    for (const id of this.#ids.values()) this.#end(cpu, id);
    this.#shut();
    await cpu.settle();
  }

  /**
   * The device is removed: each ID that is bound to it gets an event, and requests that no program has fetched are dropped. An
   * ID without an address, or at any address, belongs to no device: such a listener accepts requests again when a device is
   * added (Linux 6.1, cma.c: cma_process_remove, listen_any_list and cma_add_one; ucma.c: ucma_removal_event_handler).
   */
  deviceRemoved(cpu: Cpu): void {
    for (const id of this.#ids.values()) if (id.state === 'Listening') this.#dropRequests(cpu, id.handle);
    for (const id of this.#ids.values()) {
      if (!isBound(id)) continue;
      if (id.state === 'Listening') this.#service.stopListening(id.serviceId);
      id.deviceRemoved();
    }
  }

  #shut(): void {
    this.#isClosed = true;
    this.#events.close();
    this.#closed();
  }

  #newId(): RdmaId {
    const handle = this.#ids.reserve();
    const id = new RdmaId(handle, (event) => this.#events.push(event), this.#service.connector);
    this.#ids.set(handle, id);
    return id;
  }

  #bind(id: RdmaId, address: SocketAddress): void {
    id.expect('Idle');
    requireAddress('address', address);
    const { sinAddr } = plainAddress(address);
    if (!isAny(sinAddr) && !this.#service.routes.ownAddresses.includes(sinAddr))
      throw new KernelError('ENODEV', `${sinAddr} is no address of this host`);
    id.ownPort = this.#service.takePort(address.sinPort);
    id.src = { sinAddr, sinPort: id.ownPort };
    id.state = 'Bound';
  }

  #requested(
    listener: RdmaId,
    request: IncomingRequest,
    connection: IdConnection,
  ): 'taken' | 'full' | number {
    const { ownAddress, peer, conn } = request;
    if (!isListeningAt(listener.src!.sinAddr, ownAddress)) return RejectReason.INVALID_SERVICE_ID;
    if (listener.backlog === 0) return 'full';
    listener.backlog--;
    const id = this.#newId();
    id.state = 'Requested';
    id.connection = connection;
    connection.owner = id;
    id.src = { sinAddr: ownAddress, sinPort: listener.src!.sinPort };
    id.dst = peer;
    id.path = connection.path;
    id.event(Event.RDMA_CM_EVENT_CONNECT_REQUEST, 0, conn, listener.handle);
    return 'taken';
  }

  /** Ends an ID and everything it holds: its connection, its port, its waiting requests and its events. */
  #end(cpu: Cpu, id: RdmaId): void {
    if (id.state === 'Listening') {
      this.#service.stopListening(id.serviceId);
      this.#dropRequests(cpu, id.handle);
    }
    if (id.ownPort >= 0) this.#service.givePort(id.ownPort);
    id.state = 'Disconnected';
    id.connection?.abandon(cpu);
    this.#events.drop((event) => event.id === id.handle);
    this.#ids.delete(id.handle);
  }

  #dropRequests(cpu: Cpu, listener: Handle): void {
    const handles: Handle[] = [];
    this.#events.drop((event) => {
      const isRequest = event.listenId === listener;
      if (isRequest) handles.push(event.id);
      return isRequest;
    });
    this.#ids.get(listener).backlog += handles.length;
    for (const handle of handles) this.#end(cpu, this.#ids.get(handle));
  }

  /** Makes a system call: enters and charges it, then runs it while no other call of this channel runs. */
  async #call<T>(cpu: Cpu, name: string, body: () => T | Promise<T>): Promise<T> {
    this.#enter(cpu, name);
    const platform = this.#platform;
    platform.kernelEntered?.(cpu);
    try {
      return await this.#lock.run(cpu, async () => {
        cpu.charge('driver', platform.costs.eventDispatch);
        const result = await body();
        await cpu.settle();
        return result;
      });
    } finally {
      platform.kernelLeft?.(cpu);
    }
  }

  #enter(cpu: Cpu, name: string): void {
    if (this.#isClosed) throw new KernelError('EBADF', 'the event channel is closed');
    this.#platform.systemCallEntered?.(cpu, name, 'control');
  }
}
