/**
 * Manages the iWARP connections of a device, as iw_cm does: the host's listeners on the card's TCP, and connections with their MPA exchange.
 *
 *     IDs of rdma_cm ─► IwConnection ─► SerialWork ─► TcpConnections ─► commands        card ─► event ─► IwConnection
 */
import { CloseTcp, TcpCongestion } from '../../abi/index.ts';
import { msToPs } from '../../base/index.ts';
import { type MpaParameters, ReadyMessage } from '../../protocol/iwarp/index.ts';
import { textOfGid } from '../address-text.ts';
import type { Device } from '../device.ts';
import type { EthernetPort } from '../ethernet-port.ts';
import { responderResourcesOf } from '../icm-profile.ts';
import type { IwarpQps } from '../iwarp/iwarp-qps.ts';
import { SerialWork } from '../iwarp/serial-work.ts';
import { TcpConnections, type TcpListener, type TcpOpening } from '../iwarp/tcp-connections.ts';
import type { Cpu } from '../platform.ts';
import { ProtocolTimers } from '../protocol-timers.ts';
import { privateDataMax } from '../rdma-cm.ts';
import { TransportVerb } from '../uapi.ts';
import type {
  CmDrop,
  CmListener,
  ConnectionAddresses,
  Connector,
  ConnectorCounts,
  IdConnection,
  ParameterLimits,
} from './connector.ts';
import { gidOfAddress, isIpv4Address } from './internet-address.ts';
import { IwConnection, type IwCore, type IwRequest, iwInitAttributes } from './iw-connection.ts';
import type { Path } from './path.ts';
import { portOfService } from './service-id.ts';

/** Headers of IPv4 or IPv6 and TCP in a frame's payload. */
const headerBytes = { ipv4: 20 + 20, ipv6: 40 + 20 } as const;
/** ip_default_ttl. */
const hopLimit = 64;
/** Scale of the largest window: RFC 7323, 2.2. */
const receiveScale = 3;
/** net.ipv4.tcp_syn_retries and tcp_retries2. */
const retries = { synRetries: 6, dataRetries: 15 } as const;
const backlogMax = 1024;
const anyAddress = new Uint8Array(16);

export interface IwarpConnectorSetup {
  readonly device: Device;
  readonly port: EthernetPort;
  readonly qps: IwarpQps;
  /** Listeners by service ID: they belong to the host, and outlive this device. */
  readonly listeners: ReadonlyMap<bigint, CmListener>;
}

interface Listening extends TcpListener {
  readonly number: number;
}

export class IwarpConnector implements Connector {
  readonly transport = TransportVerb.IBV_TRANSPORT_IWARP;
  /** Limits of the card, which cxgb4 checks, too (Linux 6.1, cm.c: c4iw_connect, c4iw_accept_cr). */
  readonly limits: ParameterLimits;
  readonly initAttributes = iwInitAttributes;
  readonly #setup: IwarpConnectorSetup;
  readonly #tcp: TcpConnections;
  readonly #work: SerialWork;
  readonly #timers: ProtocolTimers;
  readonly #core: IwCore;
  readonly #connections = new Set<IwConnection>();
  readonly #listening = new Map<bigint, Listening>();
  readonly #dropped: Record<CmDrop, number> = {
    malformed: 0,
    unmatched: 0,
    unexpected: 0,
    duplicate: 0,
    stale: 0,
    backlogFull: 0,
    noListener: 0,
  };

  constructor(setup: IwarpConnectorSetup) {
    const { device, qps } = setup;
    this.#setup = setup;
    this.limits = {
      privateDataBytes: privateDataMax[this.transport],
      responderResources: responderResourcesOf(device.profile),
      initiatorDepth: 2 ** device.limits.logMaxRequesterReads,
    };
    this.#work = new SerialWork(device.platform, 'iw_cm');
    this.#timers = new ProtocolTimers(device.platform, 'iw_cm');
    this.#tcp = new TcpConnections(device, (connection) => this.#abort(connection));
    this.#core = {
      tcp: this.#tcp,
      work: this.#work,
      timers: this.#timers,
      policy: policyOf(device),
      timeLimitPs: msToPs(device.config.mpaLimitMs),
      count: (reason) => void this.#dropped[reason]++,
      openingOf: (path, addresses) => this.#openingOf(path, addresses),
      attach: (thread, qpn, stream) => qps.attach(thread, qpn, stream),
      requested: (thread, request) => this.#requested(thread, request),
      forget: (connection) => void this.#connections.delete(connection),
    };
    for (const serviceId of setup.listeners.keys()) this.#work.run((cpu) => this.#listen(cpu, serviceId));
  }

  /** Requests and replies are no datagrams: nothing of a message is counted but what had no effect. */
  get counts(): ConnectorCounts {
    return {
      ...{ sent: 0, received: 0, unclaimed: 0, failed: 0, overflowed: 0 },
      connections: this.#connections.size,
      dropped: { ...this.#dropped, unmatched: this.#tcp.droppedEvents },
    };
  }

  newConnection(path: Path): IdConnection {
    const connection = new IwConnection(this.#core, 'active', path);
    this.#connections.add(connection);
    return connection;
  }

  /** Linux 6.1, iwcm.c (iw_cm_listen): the driver's iw_create_listen returns when the card listens, and with the card's error. */
  listen(cpu: Cpu, serviceId: bigint): Promise<void> {
    return this.#work.runToEnd(cpu, (thread) => this.#listen(thread, serviceId));
  }

  stopListening(serviceId: bigint): void {
    this.#work.run(async (cpu) => {
      const listening = this.#listening.get(serviceId);
      if (listening === undefined || this.#setup.listeners.has(serviceId)) return;
      this.#listening.delete(serviceId);
      await this.#tcp.stopListening(cpu, listening.number, listening);
    });
  }

  async close(_cpu: Cpu, notify: () => void): Promise<void> {
    this.#work.close();
    this.#timers.close();
    this.#connections.clear();
    this.#listening.clear();
    notify();
  }

  async #listen(cpu: Cpu, serviceId: bigint): Promise<void> {
    if (this.#listening.has(serviceId)) return;
    const localPort = portOfService(serviceId);
    const listener: TcpListener = {
      accepted: (number) => {
        const connection = new IwConnection(this.#core, 'passive', unknownPath, number, serviceId);
        this.#connections.add(connection);
        return connection;
      },
    };
    const opening = {
      ...this.#standing(headerBytes.ipv4),
      localAddress: anyAddress,
      localPort,
      backlog: backlogMax,
    };
    const number = await this.#tcp.listen(cpu, opening, listener);
    this.#listening.set(serviceId, { ...listener, number });
  }

  /** A peer has asked: its addresses are those of its connection. */
  async #requested(cpu: Cpu, { connection, conn }: IwRequest): Promise<'taken' | 'full' | number> {
    const listener = this.#setup.listeners.get(connection.serviceId);
    if (listener === undefined) {
      this.#dropped.noListener++;
      return 0;
    }
    const context = await this.#tcp.query(cpu, connection.connection);
    const peer = { sinAddr: textOfGid(context.remoteAddress), sinPort: context.remotePort };
    const request = { ownAddress: textOfGid(context.localAddress), peer, conn };
    return listener.requested(cpu, request, connection);
  }

  #openingOf({ roce }: Path, { src, dst }: ConnectionAddresses): TcpOpening {
    const isIpv6 = !isIpv4Address(dst.sinAddr);
    return {
      ...this.#standing(isIpv6 ? headerBytes.ipv6 : headerBytes.ipv4),
      isIpv6: isIpv6 ? 1 : 0,
      remoteMac: roce!.mac,
      localAddress: gidOfAddress(src.sinAddr),
      remoteAddress: gidOfAddress(dst.sinAddr),
      localPort: src.sinPort,
      remotePort: dst.sinPort,
    };
  }

  /** Values that every connection of this host has. */
  #standing(headers: number): TcpOpening {
    const { port, device } = this.#setup;
    const { tcpSack, tcpTimestamps, tcpCongestion, tcpKeepAliveSeconds, tcpWindowBytes } = device.config;
    return {
      port: port.number,
      hopLimit,
      maxSegmentBytes: port.limits.maxEthernetMtu - headers,
      receiveWindowBytes: Math.max(tcpWindowBytes, 2 * port.limits.maxEthernetMtu),
      receiveScale,
      offersSack: tcpSack ? 1 : 0,
      offersTimestamps: tcpTimestamps ? 1 : 0,
      congestion: tcpCongestion === 'cubic' ? TcpCongestion.CUBIC : TcpCongestion.NEWRENO,
      keepAliveSeconds: tcpKeepAliveSeconds,
      ...retries,
    };
  }

  /** A connection whose listener is gone. */
  #abort(connection: number): void {
    const ended = {
      tcpEvent: () => this.#work.run((cpu) => this.#tcp.close(cpu, connection, CloseTcp.RELEASE)),
    };
    this.#tcp.adopt(connection, ended);
    this.#work.run((cpu) => this.#tcp.close(cpu, connection, CloseTcp.ABORT));
  }
}

/** Path of a passive connection: the card itself addresses its frames. */
const unknownPath: Path = {
  local: { lid: 0, gid: new Uint8Array(16) },
  remote: { lid: 0, gid: new Uint8Array(16) },
  serviceLevel: 0,
  mtu: 0,
  rate: 0,
  packetLifeTime: 0,
};

/** Sets of {@link ReadyMessage} by driver.mpaReadyMessage. */
const readyKinds = {
  any: ReadyMessage.WRITE | ReadyMessage.SEND | ReadyMessage.READ,
  write: ReadyMessage.WRITE,
  read: ReadyMessage.READ,
  send: ReadyMessage.SEND,
} as const;

/** MPA as this host wants it. The IRD and ORD are those of each connection. */
function policyOf({ config, profile }: Device): MpaParameters {
  const { mpaRevision, mpaMarkers, mpaCrc, mpaPeerToPeer, mpaReadyMessage } = config;
  return {
    revision: mpaRevision,
    wantsMarkers: mpaMarkers,
    canSendMarkers: true,
    wantsCrc: mpaCrc,
    isPeerToPeer: mpaPeerToPeer,
    readyKinds: readyKinds[mpaReadyMessage],
    inboundReads: 0,
    outboundReads: 0,
    inboundReadsMax: responderResourcesOf(profile),
  };
}
