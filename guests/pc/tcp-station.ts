/**
 * A station on the PCs' Ethernet that is no PC: it answers ARP, and has TCP over IPv4. A program of this process is reached by it as by
 * a host of its own.
 *
 *     PC ── frames ─► PcNetwork ─► receive ─┬─ ARP ──► its answer
 *                                           └─ TCP ─► a connection ─► the user; a SYN for the open port ─► a connection; else RST
 */
import { EtherType, IpProtocol, ipv4Header } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { bytesEqual, psPerUs } from '../../base/index.ts';
import { arpRequest, internetChecksumOf, internetSum, receiveArp } from '../../driver/network/index.ts';
import {
  deadlinesDue,
  Flag,
  newSegmentFields,
  readSegmentHeader,
  type SegmentFields,
  segmentArrived,
  segmentHeaderBytes,
  sendReset,
  sendSyn,
  sequenceAdd,
  transportHeader,
  writeSegmentHeader,
} from '../../protocol/tcp/index.ts';
import type { PcStation } from './pc-network.ts';
import {
  type ConnectionOwner,
  StationConnection,
  type StationEnds,
  type StationLimits,
} from './station-connection.ts';

/** The user of a station's connections. */
export interface StationUser {
  /** A connection to the open port, or one that was opened by {@link TcpStation.connect}, is established. */
  established(connection: StationConnection): void;
  arrived(connection: StationConnection, bytes: Uint8Array): void;
  /** The other end sends nothing more; `connection.error` says whether the connection failed. */
  ended(connection: StationConnection): void;
  /** The connection no longer exists. */
  forgotten(connection: StationConnection): void;
}

export interface StationSetup {
  readonly mac: Uint8Array;
  /** IPv4 address. */
  readonly address: number;
  /** The port that accepts connections. */
  readonly port: number;
  readonly limits: StationLimits;
}

const versionAndLength = 0x45;
const timeToLive = 64;
const doNotFragment = 0x4000;
/** More fragments, and the offset of a fragment. */
const fragmentMask = 0x3fff;
const addressesAt = 12;
const checksumOffset = 16;
/** A frame without its FCS is at least this long (IEEE 802.3, 4.4.2). */
const frameBytesMin = 60;
const connectionCountMax = 64;
const firstEphemeralPort = 32_768;
/** Initial sequence numbers advance by one every 4 us (RFC 9293, 3.4.1), and by this between connections. */
const sequenceUnitPs = 4 * psPerUs;
const sequenceStep = 64_000;

export class TcpStation implements PcStation, ConnectionOwner {
  onFrame: (frame: Uint8Array) => void = () => {};
  nowPs = 0;
  /** Whether its port accepts further connections. */
  isOpen = true;
  readonly limits: StationLimits;
  readonly #setup: StationSetup;
  readonly #user: StationUser;
  readonly #macs = new Map<number, Uint8Array>();
  readonly #connections = new Set<StationConnection>();
  readonly #segment = newSegmentFields();
  #openedCount = 0;

  constructor(setup: StationSetup, user: StationUser) {
    this.#setup = setup;
    this.#user = user;
    this.limits = setup.limits;
  }

  /** Instant of the next deadline of a connection; Infinity if none is set. */
  get nextPs(): number {
    let earliestPs = Number.POSITIVE_INFINITY;
    for (const { deadlinePs } of this.#connections) earliestPs = Math.min(earliestPs, deadlinePs);
    return earliestPs;
  }

  receive(frame: Uint8Array, nowPs: number): void {
    this.#come(nowPs);
    if (frame.length < ethernetHeaderBytes) return;
    const { destination, source, type } = ethernetHeader.decode(frame);
    if (type === EtherType.ARP) this.#arpArrived(frame);
    else if (type === EtherType.IPV4 && bytesEqual(destination, this.#setup.mac))
      this.#packetArrived(frame, source);
  }

  run(nowPs: number): void {
    this.#come(nowPs);
    for (const connection of [...this.#connections])
      if (connection.deadlinePs <= nowPs) deadlinesDue(undefined, connection);
  }

  /** Opens a connection; calls the user when it is established or has failed. @returns undefined if too many exist */
  connect(remoteAddress: number, remotePort: number, nowPs: number): StationConnection | undefined {
    this.#come(nowPs);
    if (this.#connections.size >= connectionCountMax) return undefined;
    const localPort = firstEphemeralPort + (this.#openedCount % (0x1_0000 - firstEphemeralPort));
    const connection = this.#open({ localPort, remoteAddress, remotePort }, false);
    connection.state = 'SYN_SENT';
    this.#synSent(connection);
    return connection;
  }

  /** Ends a connection at once. */
  abort(connection: StationConnection): void {
    if (connection.isOver) return;
    sendReset(undefined, connection);
    connection.end(undefined);
  }

  transmit(ends: StationEnds, fields: SegmentFields, payload: Uint8Array): boolean {
    const { mac, address } = this.#setup;
    const to = this.#macs.get(ends.remoteAddress);
    if (to === undefined) {
      this.onFrame(padded(arpRequest({ mac, address }, ends.remoteAddress)));
      return false;
    }
    const segmentBytes = segmentHeaderBytes(fields) + payload.length;
    const frame = new Uint8Array(ethernetHeaderBytes + ipv4Header.sizeBytes + segmentBytes);
    ethernetHeader.encodeInto({ destination: to, source: mac, type: EtherType.IPV4 }, frame);
    this.#writePacket(frame, ends, segmentBytes);
    const view = new DataView(frame.buffer);
    const at = ethernetHeaderBytes + ipv4Header.sizeBytes;
    writeSegmentHeader(view, at, ends, fields);
    frame.set(payload, frame.length - payload.length);
    view.setUint16(at + checksumOffset, segmentChecksum(frame.subarray(ethernetHeaderBytes), segmentBytes));
    this.onFrame(padded(frame));
    return true;
  }

  established(connection: StationConnection): void {
    this.#user.established(connection);
  }

  arrived(connection: StationConnection, bytes: Uint8Array): void {
    this.#user.arrived(connection, bytes);
  }

  ended(connection: StationConnection): void {
    this.#user.ended(connection);
  }

  forget(connection: StationConnection): void {
    this.#connections.delete(connection);
    this.#user.forgotten(connection);
  }

  #come(nowPs: number): void {
    this.nowPs = Math.max(this.nowPs, nowPs);
  }

  #arpArrived(frame: Uint8Array): void {
    const { mac, address } = this.#setup;
    const learn = (neighbour: number, macOfNeighbour: Uint8Array): void =>
      this.#learn(neighbour, macOfNeighbour);
    const answer = receiveArp(frame, {
      mac,
      isOwn: (each) => each === address,
      isOnLink: () => true,
      asked: learn,
      announced: (neighbour, macOfNeighbour) => {
        learn(neighbour, macOfNeighbour);
        return true;
      },
    });
    if (answer instanceof Uint8Array) this.onFrame(padded(answer));
  }

  /** SYNs that waited for this MAC are sent. */
  #learn(address: number, mac: Uint8Array): void {
    const isNew = !this.#macs.has(address);
    this.#macs.set(address, mac.slice());
    if (!isNew) return;
    for (const connection of this.#connections)
      if (connection.ends.remoteAddress === address && connection.state === 'SYN_SENT')
        sendSyn(undefined, connection);
  }

  #writePacket(frame: Uint8Array, { remoteAddress }: StationEnds, segmentBytes: number): void {
    const header = {
      versionAndLength,
      ...{ differentiatedServices: 0, ecn: 0, identification: 0, checksum: 0 },
      totalLength: ipv4Header.sizeBytes + segmentBytes,
      fragment: doNotFragment,
      timeToLive,
      protocol: IpProtocol.TCP,
      source: this.#setup.address,
      destination: remoteAddress,
    };
    ipv4Header.encodeInto(header, frame, ethernetHeaderBytes);
    const bytes = frame.subarray(ethernetHeaderBytes, ethernetHeaderBytes + ipv4Header.sizeBytes);
    const checksum = internetChecksumOf(internetSum(bytes));
    ipv4Header.encodeInto({ ...header, checksum }, frame, ethernetHeaderBytes);
  }

  /** @param mac of the frame's sender */
  #packetArrived(frame: Uint8Array, mac: Uint8Array): void {
    const packet = segmentPacketOf(frame, this.#setup.address);
    if (packet === undefined) return;
    this.#learn(packet.source, mac);
    const view = new DataView(packet.segment.buffer, packet.segment.byteOffset, packet.segment.length);
    const segment = this.#segment;
    const headerBytes = readSegmentHeader(view, 0, packet.segment.length, segment);
    if (headerBytes === 0) return;
    const ends = {
      localPort: transportHeader.fields.destinationPort.get(view, 0),
      remotePort: transportHeader.fields.sourcePort.get(view, 0),
      remoteAddress: packet.source,
    };
    const bytes = packet.segment.slice(headerBytes);
    const connection = this.#find(ends);
    if (connection === undefined) this.#strangerArrived(ends, segment, bytes.length);
    else
      segmentArrived(undefined, connection, segment, {
        ...{ sequence: segment.sequence, length: bytes.length, isSent: false, bytes },
      });
  }

  /** A segment that belongs to no connection. */
  #strangerArrived(ends: StationEnds, segment: SegmentFields, payloadBytes: number): void {
    const { flags } = segment;
    if ((flags & Flag.RST) !== 0) return;
    const isOpening = (flags & (Flag.SYN | Flag.ACK)) === Flag.SYN;
    const isAccepted = isOpening && this.isOpen && ends.localPort === this.#setup.port;
    if (!isAccepted || this.#connections.size >= connectionCountMax) {
      this.#refuse(ends, segment, payloadBytes);
      return;
    }
    const connection = this.#open(ends, true);
    connection.state = 'SYN_RECEIVED';
    connection.received.next = sequenceAdd(segment.sequence, 1);
    connection.agree(segment);
    connection.sendWindow = segment.window;
    this.#synSent(connection);
  }

  /** Answers with RST (RFC 9293, 3.5.2). */
  #refuse(
    ends: StationEnds,
    { flags, sequence, acknowledgement }: SegmentFields,
    payloadBytes: number,
  ): void {
    const hasAck = (flags & Flag.ACK) !== 0;
    const length = payloadBytes + ((flags & Flag.SYN) !== 0 ? 1 : 0) + ((flags & Flag.FIN) !== 0 ? 1 : 0);
    const fields = {
      ...newSegmentFields(),
      sequence: hasAck ? acknowledgement : 0,
      acknowledgement: hasAck ? 0 : sequenceAdd(sequence, length),
      flags: hasAck ? Flag.RST : Flag.RST | Flag.ACK,
    };
    this.transmit(ends, fields, new Uint8Array(0));
  }

  #open(ends: StationEnds, isPassive: boolean): StationConnection {
    const clock = Math.floor(this.nowPs / sequenceUnitPs);
    const initialSequence = (clock + ++this.#openedCount * sequenceStep) >>> 0;
    const connection = new StationConnection(this, ends, initialSequence, isPassive);
    this.#connections.add(connection);
    return connection;
  }

  #synSent(connection: StationConnection): void {
    const next = sequenceAdd(connection.initialSequence, 1);
    connection.sendNext = next;
    connection.sendMax = next;
    connection.timedEnd = next;
    connection.timedPs = this.nowPs;
    sendSyn(undefined, connection);
    connection.armRetransmit();
  }

  #find({ localPort, remotePort, remoteAddress }: StationEnds): StationConnection | undefined {
    return [...this.#connections].find(
      ({ ends }) =>
        ends.localPort === localPort &&
        ends.remotePort === remotePort &&
        ends.remoteAddress === remoteAddress,
    );
  }
}

function padded(frame: Uint8Array): Uint8Array {
  if (frame.length >= frameBytesMin) return frame;
  const whole = new Uint8Array(frameBytesMin);
  whole.set(frame);
  return whole;
}

/** A TCP segment for this address in a frame, and its sender; undefined for anything else, and for a wrong checksum. */
function segmentPacketOf(
  frame: Uint8Array,
  address: number,
): { readonly source: number; readonly segment: Uint8Array } | undefined {
  const bytes = frame.subarray(ethernetHeaderBytes);
  if (bytes.length < ipv4Header.sizeBytes) return undefined;
  const header = ipv4Header.decode(bytes);
  const { totalLength, source } = header;
  const isOurs =
    header.versionAndLength === versionAndLength &&
    header.protocol === IpProtocol.TCP &&
    header.destination === address &&
    (header.fragment & fragmentMask) === 0 &&
    totalLength >= ipv4Header.sizeBytes &&
    totalLength <= bytes.length &&
    internetChecksumOf(internetSum(bytes.subarray(0, ipv4Header.sizeBytes))) === 0;
  if (!isOurs) return undefined;
  const packet = bytes.subarray(0, totalLength);
  const segment = packet.subarray(ipv4Header.sizeBytes);
  return segmentChecksum(packet, segment.length) === 0 ? { source, segment } : undefined;
}

/** Checksum of the segment of a packet with its pseudo header (RFC 9293, 3.1): 0 if the segment includes its correct checksum. */
function segmentChecksum(packet: Uint8Array, segmentBytes: number): number {
  const addresses = internetSum(packet.subarray(addressesAt, ipv4Header.sizeBytes));
  const pseudo = addresses + IpProtocol.TCP + segmentBytes;
  return internetChecksumOf(internetSum(packet.subarray(ipv4Header.sizeBytes), pseudo));
}
