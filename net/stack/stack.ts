/**
 * The protocol stack of one host: finds the connection of a frame, opens and listens, and completes the closing of connections.
 *
 *     driver ── receive ─► interface, by its tag ─┬─ ARP ──► interface
 *                                                 └─ IPv4, IPv6 ─┬─ ICMP ──► echo; neighbours of IPv6 ──► interface
 *                                                                └─ TCP ──► checks ─┬─ a connection ──► segment-input
 *                                                                                   ├─ SYN for a listener ──► half open, SYN + ACK
 *                                                                                   └─ neither ──► RST
 *
 * A neighbour's hardware address is configured, or resolved by ARP or Neighbor Discovery. Its only routes are to its own links;
 * it has no loopback.
 */
import { EtherType, IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { psPerUs } from '../../base/index.ts';
import {
  Flag,
  isAfter,
  newSegmentFields,
  output,
  segmentArrived,
  sendReset,
  sendSyn,
  sequenceAdd,
} from '../../protocol/tcp/index.ts';
import type { NetStatistics } from '../net-statistics.ts';
import type { NetCostConfig, NetStackConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import { type IpAddress, isSameAddress } from './address.ts';
import { sumFrom, sumWithout } from './checksum.ts';
import { Connection, type Ends } from './connection.ts';
import { ConnectionTimers } from './connection-timers.ts';
import {
  type DeviceFilters,
  type NetDevice,
  type NetworkLayer,
  noTag,
  type StackEnvironment,
} from './environment.ts';
import { icmpArrived, icmpv6Arrived } from './icmp.ts';
import {
  type InterfaceSetup,
  isSameRoute,
  NetInterface,
  type Route,
  type VlanSetup,
  vlanMask,
} from './interface.ts';
import { newPacket } from './ip-packet.ts';
import { ipVersionOf, ipv4 } from './ip-version.ts';
import { readIpv4 } from './ipv4.ts';
import { readIpv6 } from './ipv6.ts';
import { Listener, type LocalEnd } from './listener.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import { newSegment, type ReadSegment, readSegment } from './segment-reader.ts';
import { sendSegment } from './segment-writer.ts';

/** Counters of packets that are not for this host. */
const readingCounts = {
  bad: 'badFrames',
  foreign: 'foreignDestinations',
  fragment: 'fragments',
  option: 'foreignProtocols',
} as const;

/** The network as configured for the stack: the interface without a tag, and those of VLANs. */
export interface NetAddresses extends InterfaceSetup {
  readonly vlans?: readonly VlanSetup[] | undefined;
}

/** Offset at which a device begins to sum a received frame: after the IPv4 header. */
export const receiveSumStart = ipv4.transportStart;

const firstEphemeralPort = 32_768;
const lastEphemeralPort = 60_999;
/** Initial sequence numbers advance by one every 4 µs (RFC 9293, 3.4.1), and by this between connections. */
const sequenceUnitUs = 4;
const sequenceStep = 64_000;

export class NetworkStack implements StackEnvironment, NetworkLayer {
  readonly platform: NetPlatform;
  readonly config: NetStackConfig;
  readonly costs: NetCostConfig;
  readonly counts: NetStatistics;
  readonly device: NetDevice;
  /** The interface without a tag comes first. */
  readonly interfaces: readonly NetInterface[];
  readonly #byVlan: ReadonlyMap<number, NetInterface>;
  readonly #connections = new Set<Connection>();
  /** Connections by their two ports; few share both. */
  readonly #byPorts = new Map<number, Connection[]>();
  readonly #listeners = new Map<number, Listener>();
  /** Ports that bind() has reserved. */
  readonly #bound = new Set<number>();
  readonly #throttled: Connection[] = [];
  readonly #waitingOut: Connection[] = [];
  readonly #timers: ConnectionTimers;
  readonly #packet = newPacket();
  readonly #segment: ReadSegment = newSegment();
  #nextPort = firstEphemeralPort;
  #opened = 0;

  constructor(
    platform: NetPlatform,
    config: NetStackConfig,
    costs: NetCostConfig,
    counts: NetStatistics,
    device: NetDevice,
    addresses: NetAddresses,
  ) {
    this.platform = platform;
    this.config = config;
    this.costs = costs;
    this.counts = counts;
    this.device = device;
    const failed = (cpu: Cpu, via: NetInterface, address: IpAddress): void =>
      this.#isUnreachable(cpu, via, address);
    this.interfaces = [addresses, ...(addresses.vlans ?? [])].map(
      (setup) => new NetInterface(this, setup, failed),
    );
    this.#byVlan = new Map(this.interfaces.map((own) => [own.vlan ?? 0, own]));
    this.#timers = new ConnectionTimers(this, this.#connections);
    this.platform.addTimeKeeper(this.#timers);
  }

  /** Connections in any state, including those without a socket. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  // Methods for the socket layer.

  /** Reserves a port. @returns it (0 reserves any), or -1 if it is in use */
  bind(port: number): number {
    const chosen = port === 0 ? this.#freePort() : port;
    if (chosen < 0 || this.#bound.has(chosen)) return -1;
    this.#bound.add(chosen);
    return chosen;
  }

  unbind(port: number): void {
    this.#bound.delete(port);
  }

  listen(port: number, local: LocalEnd, backlog: number): Listener {
    const listener = new Listener(this, port, local, Math.min(Math.max(backlog, 1), this.config.backlogMax));
    this.#listeners.set(port, listener);
    this.device.used();
    return listener;
  }

  unlisten(cpu: Cpu, listener: Listener): void {
    if (this.#listeners.get(listener.port) === listener) this.#listeners.delete(listener.port);
    listener.close(cpu);
  }

  /** The route to a host: the first one of an interface, or of one of its own addresses. */
  routeTo(destination: IpAddress, via?: NetInterface, source?: IpAddress): Route | undefined {
    const interfaces = via === undefined ? this.interfaces : [via];
    for (const own of interfaces) {
      const route = own.routeTo(destination, source);
      if (route !== undefined) return route;
    }
    return undefined;
  }

  /** Begins to open a connection. @returns undefined if one with these ends exists */
  connect(
    cpu: Cpu,
    ends: Ends,
    limits: { readonly receive: number; readonly send: number },
  ): Connection | undefined {
    if (this.#find(ends.localPort, ends.route, ends.remotePort) !== undefined) return undefined;
    const connection = this.#open(ends, false);
    connection.setReceiveLimit(limits.receive);
    connection.sendLimitBytes = limits.send;
    connection.state = 'SYN_SENT';
    this.#synSent(cpu, connection);
    return connection;
  }

  /** Removes the device: all connections end with ENETDOWN. */
  shutDown(cpu: Cpu): void {
    this.#timers.stop();
    for (const listener of [...this.#listeners.values()]) this.unlisten(cpu, listener);
    for (const connection of [...this.#connections]) connection.fail(cpu, 'ENETDOWN');
    for (const own of this.interfaces) own.close();
  }

  // Methods for the device.

  begins(mac: Uint8Array): DeviceFilters {
    const groups = new Map<string, Uint8Array>();
    for (const own of this.interfaces) for (const group of own.begins(mac)) groups.set(group.join(), group);
    return { groups: [...groups.values()], vlans: [...this.#byVlan.keys()] };
  }

  receive(cpu: Cpu, buffer: PacketBuffer, sum: number, tag: number): void {
    const { platform, counts, costs, device } = this;
    cpu.charge('protocol', costs.protocolReceive);
    const vlan = tag === noTag ? 0 : tag & vlanMask;
    if (vlan > 0) cpu.charge('protocol', costs.vlan);
    const via = this.#byVlan.get(vlan);
    const type =
      buffer.length < ethernetHeaderBytes
        ? undefined
        : ethernetHeader.fields.type.get(platform.memory.view, buffer.physical);
    const isPacket = type === EtherType.IPV4 || (type === EtherType.IPV6 && via?.hasIpv6 === true);
    if (via !== undefined && isPacket) {
      this.#packetArrived(cpu, via, type, buffer, sum);
      return;
    }
    if (via === undefined) counts.foreignVlans++;
    else if (type === EtherType.ARP) via.receiveArp(cpu, buffer);
    else if (type === undefined) counts.badFrames++;
    else counts.foreignTypes++;
    device.buffers.give(buffer);
  }

  roomAgain(cpu: Cpu): void {
    for (const connection of this.#throttled.splice(0)) {
      connection.isThrottled = false;
      if (connection.state !== 'CLOSED' && connection.state !== 'SYN_SENT') output(cpu, connection);
    }
  }

  // Methods for connections.

  throttle(connection: Connection): void {
    if (connection.isThrottled) return;
    connection.isThrottled = true;
    this.#throttled.push(connection);
  }

  timersChanged(connection: Connection): void {
    this.device.used();
    this.#timers.changed(connection);
  }

  established(cpu: Cpu, connection: Connection): boolean {
    const listener = this.#listeners.get(connection.localPort);
    if (listener === undefined) return false;
    listener.established(cpu, connection);
    return true;
  }

  timeWaits(connection: Connection): void {
    this.#waitingOut.push(connection);
    if (this.#waitingOut.length <= this.config.timeWaitMax) return;
    const oldest = this.#waitingOut.shift()!;
    oldest.closePs = this.platform.nowPs();
    this.#timers.changed(oldest);
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
    const key = keyOf(connection.localPort, connection.remotePort);
    const left = (this.#byPorts.get(key) ?? []).filter((other) => other !== connection);
    if (left.length > 0) this.#byPorts.set(key, left);
    else this.#byPorts.delete(key);
    this.#listeners.get(connection.localPort)?.forget(connection);
    const waiting = this.#waitingOut.indexOf(connection);
    if (waiting >= 0) this.#waitingOut.splice(waiting, 1);
  }

  // Internals.

  #packetArrived(cpu: Cpu, via: NetInterface, type: number, buffer: PacketBuffer, sum: number): void {
    const { platform, counts, costs } = this;
    if (sum < 0) {
      cpu.charge('checksum', Math.ceil(buffer.length / costs.checksumBytesPerCycle));
      counts.checksummedBytes += buffer.length;
    }
    const packet = this.#packet;
    const { memory } = platform;
    const found =
      type === EtherType.IPV4
        ? readIpv4(memory, buffer, via.address, packet)
        : readIpv6(memory, buffer, via, packet);
    if (found !== 'ours') counts[readingCounts[found]]++;
    else {
      const { protocol } = packet;
      const own = sum < 0 ? sum : this.#sumOfPacket(buffer, sum);
      if (protocol === IpProtocol.TCP) {
        this.#segmentArrived(cpu, via, buffer, own);
        return;
      }
      const isIpv4 = type === EtherType.IPV4;
      if (isIpv4 && protocol === IpProtocol.ICMP) icmpArrived(cpu, this, via, packet, own);
      else if (!isIpv4 && protocol === IpProtocol.ICMPV6) icmpv6Arrived(cpu, this, via, packet, own, buffer);
      else counts.foreignProtocols++;
    }
    this.device.buffers.give(buffer);
  }

  /** The sum of a frame without the bytes before the packet's payload and after it: padding is zeros, if the sender keeps the standard. */
  #sumOfPacket({ physical, length }: PacketBuffer, sum: number): number {
    const { bytes } = this.platform.memory;
    const { at, payloadBytes } = this.#packet;
    const start = physical + receiveSumStart;
    const behind = start === at ? sum : sumFrom(bytes, start, at, sum);
    return sumWithout(bytes, at + payloadBytes, physical + length, payloadBytes, behind);
  }

  #segmentArrived(cpu: Cpu, via: NetInterface, buffer: PacketBuffer, sum: number): void {
    const { counts } = this;
    const segment = this.#segment;
    const { bytes, view } = this.platform.memory;
    const { source, destination } = this.#packet;
    const found = this.#isFromHost(via)
      ? readSegment(bytes, view, buffer, this.#packet, sum, segment)
      : 'bad';
    if (found !== 'segment') {
      if (found === 'bad') counts.badFrames++;
      else counts.badChecksums++;
      this.device.buffers.give(buffer);
      return;
    }
    const ends = { via, source: destination, destination: source };
    const connection = this.#find(segment.destinationPort, ends, segment.sourcePort);
    if (connection !== undefined && !this.#isReplaced(cpu, connection, segment)) {
      segmentArrived(cpu, connection, segment, buffer);
      return;
    }
    this.device.buffers.give(buffer);
    const route = via.routeTo(source, destination);
    if (route === undefined) counts.unroutable++;
    else this.#strangerArrived(cpu, segment, route);
  }

  /** A segment goes from one host to another: neither may be a group, the unspecified address, or this host itself. */
  #isFromHost(via: NetInterface): boolean {
    const { source, destination } = this.#packet;
    if (typeof source === 'number' || typeof destination === 'number') return true;
    return !source.isUnspecified && !destination.isGroup && !via.isOwn(source);
  }

  /** No host has answered for an address: connections being opened to it end (Linux: tcp_v4_err); established ones keep trying. */
  #isUnreachable(cpu: Cpu, via: NetInterface, address: IpAddress): void {
    for (const connection of [...this.#connections]) {
      const { route } = connection;
      if (route.via !== via || !isSameAddress(route.destination, address)) continue;
      if (connection.state === 'SYN_SENT') connection.fail(cpu, 'EHOSTUNREACH');
      else if (connection.state === 'SYN_RECEIVED') connection.end(cpu);
    }
  }

  #open(ends: Ends, isPassive: boolean): Connection {
    const { platform } = this;
    const clock = Math.floor((platform.epochUs() + Math.floor(platform.nowPs() / psPerUs)) / sequenceUnitUs);
    const initial = (clock + ++this.#opened * sequenceStep) >>> 0;
    const connection = new Connection(this, ends, initial, isPassive);
    this.#connections.add(connection);
    const key = keyOf(ends.localPort, ends.remotePort);
    this.#byPorts.set(key, [...(this.#byPorts.get(key) ?? []), connection]);
    return connection;
  }

  #synSent(cpu: Cpu, connection: Connection): void {
    const next = sequenceAdd(connection.initialSequence, 1);
    connection.sendNext = next;
    connection.sendMax = next;
    connection.timedEnd = next;
    connection.timedPs = this.platform.nowPs();
    sendSyn(cpu, connection);
    connection.armRetransmit();
  }

  #find(
    localPort: number,
    route: Pick<Route, 'via' | 'source' | 'destination'>,
    remotePort: number,
  ): Connection | undefined {
    const candidates = this.#byPorts.get(keyOf(localPort, remotePort));
    return candidates?.find((connection) => isSameRoute(connection.route, route));
  }

  /** A SYN with a later number reopens a connection in TIME_WAIT (RFC 9293, 3.10.7.4). */
  #isReplaced(cpu: Cpu, connection: Connection, segment: ReadSegment): boolean {
    const isNewSyn =
      connection.state === 'TIME_WAIT' &&
      (segment.flags & (Flag.SYN | Flag.RST | Flag.ACK)) === Flag.SYN &&
      isAfter(segment.sequence, connection.received.next);
    if (isNewSyn) connection.end(cpu);
    return isNewSyn;
  }

  /** A segment that belongs to no connection. */
  #strangerArrived(cpu: Cpu, segment: ReadSegment, route: Route): void {
    if ((segment.flags & Flag.RST) !== 0) return;
    const bound = this.#listeners.get(segment.destinationPort);
    const listener = bound?.isFor(route) === true ? bound : undefined;
    const isOpening = (segment.flags & (Flag.SYN | Flag.ACK)) === Flag.SYN;
    if (listener === undefined || !isOpening) {
      this.#refuse(cpu, segment, route);
      return;
    }
    // No room: drops the SYN, which the peer retransmits.
    if (!listener.hasRoom) {
      this.counts.droppedForRoom++;
      return;
    }
    const ends = {
      localPort: segment.destinationPort,
      remotePort: segment.sourcePort,
      route,
    };
    const connection = this.#open(ends, true);
    connection.state = 'SYN_RECEIVED';
    if (listener.receiveLimitBytes !== undefined) connection.setReceiveLimit(listener.receiveLimitBytes);
    if (listener.sendLimitBytes !== undefined) connection.sendLimitBytes = listener.sendLimitBytes;
    connection.received.next = sequenceAdd(segment.sequence, 1);
    connection.agree(segment);
    connection.sendWindow = segment.window;
    listener.opens(connection);
    this.#synSent(cpu, connection);
  }

  /** Answers with RST (RFC 9293, 3.5.2). */
  #refuse(cpu: Cpu, segment: ReadSegment, route: Route): void {
    const { device, counts } = this;
    const buffer = device.room > 0 ? device.buffers.take() : undefined;
    if (buffer === undefined) return;
    const hasAck = (segment.flags & Flag.ACK) !== 0;
    const length =
      segment.payloadBytes +
      ((segment.flags & Flag.SYN) !== 0 ? 1 : 0) +
      ((segment.flags & Flag.FIN) !== 0 ? 1 : 0);
    const ends = {
      localPort: segment.destinationPort,
      remotePort: segment.sourcePort,
      route,
    };
    const { headroomBytes } = ipVersionOf(route.destination);
    const fields = {
      ...newSegmentFields(),
      sequence: hasAck ? segment.acknowledgement : 0,
      acknowledgement: hasAck ? 0 : sequenceAdd(segment.sequence, length),
      flags: hasAck ? Flag.RST : Flag.RST | Flag.ACK,
    };
    if (sendSegment(cpu, this, ends, fields, buffer, headroomBytes, 0)) {
      counts.resetsSent++;
    }
    device.buffers.giveWhenSent(buffer);
  }

  #freePort(): number {
    const count = lastEphemeralPort - firstEphemeralPort + 1;
    for (let tried = 0; tried < count; tried++) {
      const port = this.#nextPort;
      this.#nextPort = port === lastEphemeralPort ? firstEphemeralPort : port + 1;
      if (!this.#bound.has(port)) return port;
    }
    return -1;
  }
}

/** Closes a connection that its socket releases: FIN after the queued bytes, or RST if bytes were not read. */
export function closeConnection(
  cpu: Cpu,
  connection: Connection,
  limitFinWait: (c: Connection) => void,
): void {
  connection.isOrphan = true;
  const hasUnread = connection.received.readableBytes > 0;
  if (connection.isOver) {
    connection.received.clear();
    return;
  }
  if (connection.state === 'SYN_SENT' || connection.state === 'SYN_RECEIVED' || hasUnread) {
    if (connection.state !== 'SYN_SENT') sendReset(cpu, connection);
    connection.end(cpu);
    return;
  }
  connection.received.clear();
  finish(cpu, connection);
  if (connection.state === 'FIN_WAIT_2') limitFinWait(connection);
}

/** Queues a FIN: it is the last thing sent, after the queued bytes. */
export function finish(cpu: Cpu, connection: Connection): void {
  if (connection.isFinQueued) return;
  if (connection.state === 'ESTABLISHED') connection.state = 'FIN_WAIT_1';
  else if (connection.state === 'CLOSE_WAIT') connection.state = 'LAST_ACK';
  else return;
  connection.isFinQueued = true;
  output(cpu, connection);
}

const keyOf = (localPort: number, remotePort: number): number => localPort * 0x1_0000 + remotePort;
