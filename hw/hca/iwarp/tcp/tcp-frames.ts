/**
 * Frames of TCP: Ethernet, IPv4 or IPv6, TCP.
 *
 *     MACs 12 | [ 8100, tag 4 ] | type 2 | IPv4 20 or IPv6 40 | TCP 20 and options | payload
 *
 * A frame that is formed has right checksums; one that is read is examined where it lies. Sources: RFC 791, 8200, 9293; IEEE 802.1Q.
 */
import { EtherType, IpProtocol, ipv4Header, ipv6Header, vlanTag } from '../../../../abi/index.ts';
import { MAC_BYTES, viewOf } from '../../../../base/index.ts';
import {
  readSegmentHeader,
  type SegmentFields,
  segmentHeaderBytes,
  writeSegmentHeader,
} from '../../../../protocol/tcp/index.ts';
import {
  fillIpChecksum,
  fillTransportChecksum,
  isFragment,
  isIpChecksumRight,
  isTransportChecksumRight,
  type PacketPlaces,
} from '../../frames/index.ts';

const TYPE_BYTES = 2;
const VLAN_BYTES = 4;
const PORT_BYTES = 2;
const ADDRESS_BYTES = 16;
const VERSION_4_HEADER_IN_DWORDS = 0x45;
const DONT_FRAGMENT = 0x4000;
/** `::ffff` before an IPv4 address in a field of 16 bytes. */
const IPV4_PLACE = 12;

/**
 * Addresses to which, and from which, the segments of a connection go. An IPv4 address is in the last 4 bytes, after
 * `::ffff`.
 */
export interface SegmentAddresses {
  readonly localMac: Uint8Array;
  readonly remoteMac: Uint8Array;
  /** Control information of the tag; -1: untagged. */
  readonly vlanTag: number;
  readonly isIpv6: boolean;
  readonly localAddress: Uint8Array;
  readonly remoteAddress: Uint8Array;
  readonly localPort: number;
  readonly remotePort: number;
  readonly hopLimit: number;
  readonly trafficClass: number;
}

/** Headers of IP and TCP without options: a frame's payload less these is the largest segment. */
export const segmentHeadersBytes = (isIpv6: boolean): number =>
  (isIpv6 ? ipv6Header.sizeBytes : ipv4Header.sizeBytes) + 20;

/** Forms frames in a memory of its own. */
export class FrameWriter {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Places of the frame that was formed last, for its checksums. */
  readonly #places = { isIpv4: true, network: 0, transport: 0, protocol: IpProtocol.TCP as number, end: 0 };

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
  }

  /**
   * Forms the frame of a segment at `at`, with payload from `payload[from]`.
   * @returns bytes of the frame, without FCS
   */
  write(
    at: number,
    addresses: SegmentAddresses,
    segment: SegmentFields,
    payload: Uint8Array,
    from: number,
    payloadBytes: number,
  ): number {
    const bytes = this.#bytes;
    const places = this.#places;
    const network = this.#writeEthernet(at, addresses);
    const headerBytes = segmentHeaderBytes(segment);
    const transport = network + (addresses.isIpv6 ? ipv6Header.sizeBytes : ipv4Header.sizeBytes);
    const segmentBytes = headerBytes + payloadBytes;
    if (addresses.isIpv6) this.#writeIpv6(network, addresses, segmentBytes);
    else this.#writeIpv4(network, addresses, segmentBytes);
    writeSegmentHeader(this.#view, transport, addresses, segment);
    bytes.set(payload.subarray(from, from + payloadBytes), transport + headerBytes);
    places.isIpv4 = !addresses.isIpv6;
    places.network = network;
    places.transport = transport;
    places.end = transport + segmentBytes;
    fillIpChecksum(bytes, places);
    fillTransportChecksum(bytes, places);
    return places.end - at;
  }

  /** @returns the place of the IP header */
  #writeEthernet(at: number, { localMac, remoteMac, vlanTag: tag, isIpv6 }: SegmentAddresses): number {
    const view = this.#view;
    this.#bytes.set(remoteMac, at);
    this.#bytes.set(localMac, at + MAC_BYTES);
    let place = at + 2 * MAC_BYTES;
    if (tag >= 0) {
      view.setUint16(place, EtherType.VLAN);
      view.setUint16(place + TYPE_BYTES, tag);
      place += VLAN_BYTES;
    }
    view.setUint16(place, isIpv6 ? EtherType.IPV6 : EtherType.IPV4);
    return place + TYPE_BYTES;
  }

  #writeIpv4(at: number, addresses: SegmentAddresses, segmentBytes: number): void {
    const view = this.#view;
    const { fields } = ipv4Header;
    this.#bytes.fill(0, at, at + ipv4Header.sizeBytes);
    fields.versionAndLength.set(view, at, VERSION_4_HEADER_IN_DWORDS);
    this.#bytes[at + 1] = addresses.trafficClass;
    fields.totalLength.set(view, at, ipv4Header.sizeBytes + segmentBytes);
    fields.fragment.set(view, at, DONT_FRAGMENT);
    fields.timeToLive.set(view, at, addresses.hopLimit);
    fields.protocol.set(view, at, IpProtocol.TCP);
    this.#bytes.set(addresses.localAddress.subarray(IPV4_PLACE), at + IPV4_PLACE);
    this.#bytes.set(addresses.remoteAddress.subarray(IPV4_PLACE), at + IPV4_PLACE + 4);
  }

  #writeIpv6(at: number, addresses: SegmentAddresses, segmentBytes: number): void {
    const view = this.#view;
    const { fields } = ipv6Header;
    const { trafficClass } = addresses;
    this.#bytes.fill(0, at, at + ipv6Header.sizeBytes);
    fields.version.set(view, at, 6);
    fields.differentiatedServices.set(view, at, trafficClass >>> 2);
    fields.ecn.set(view, at, trafficClass & 3);
    fields.payloadLength.set(view, at, segmentBytes);
    fields.nextHeader.set(view, at, IpProtocol.TCP);
    fields.hopLimit.set(view, at, addresses.hopLimit);
    this.#bytes.set(addresses.localAddress, at + 8);
    this.#bytes.set(addresses.remoteAddress, at + 8 + ADDRESS_BYTES);
  }
}

/** The frame that was read last, and the header of its segment. */
export class FrameReader implements PacketPlaces {
  isIpv4 = true;
  network = 0;
  transport = 0;
  readonly protocol = IpProtocol.TCP as number;
  end = 0;
  /** Control information of its tag; -1: untagged. */
  vlanTag = -1;
  localPort = 0;
  remotePort = 0;
  payloadAt = 0;
  payloadBytes = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  /** @param bytes memory in which received frames lie */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
  }

  /** Finds the segment in the frame at `at`. @returns false for a frame without one: not of TCP, a fragment, not whole */
  find(at: number, frameBytes: number): boolean {
    const view = this.#view;
    const frameEnd = at + frameBytes;
    let place = at + 2 * MAC_BYTES;
    let type = view.getUint16(place);
    this.#at = at;
    this.vlanTag = -1;
    if (type === EtherType.VLAN) {
      if (frameBytes < 2 * MAC_BYTES + VLAN_BYTES + TYPE_BYTES) return false;
      this.vlanTag = view.getUint16(place + TYPE_BYTES);
      place += vlanTag.sizeBytes;
      type = view.getUint16(place);
    }
    this.network = place + TYPE_BYTES;
    if (type === EtherType.IPV4) return this.#findIpv4(frameEnd);
    return type === EtherType.IPV6 && this.#findIpv6(frameEnd);
  }

  /** Reads the header of the segment that {@link find} has found. @returns false for a wrong checksum or a header that is not whole */
  read(into: SegmentFields): boolean {
    const bytes = this.#bytes;
    const { transport, end } = this;
    if (this.isIpv4 && !isIpChecksumRight(bytes, this)) return false;
    const headerBytes = readSegmentHeader(this.#view, transport, end - transport, into);
    if (headerBytes === 0 || !isTransportChecksumRight(bytes, this)) return false;
    this.payloadAt = transport + headerBytes;
    this.payloadBytes = end - this.payloadAt;
    return true;
  }

  /** Whether the segment goes between these addresses. */
  isBetween({ isIpv6, localAddress, remoteAddress }: SegmentAddresses): boolean {
    if (isIpv6 === this.isIpv4) return false;
    const at = this.network;
    return isIpv6
      ? this.#isAt(at + 8, remoteAddress, 0) && this.#isAt(at + 8 + ADDRESS_BYTES, localAddress, 0)
      : this.#isAt(at + IPV4_PLACE, remoteAddress, IPV4_PLACE) &&
          this.#isAt(at + IPV4_PLACE + 4, localAddress, IPV4_PLACE);
  }

  /** The addresses of an answer. */
  answerAddresses(localMac: Uint8Array, hopLimit: number): SegmentAddresses {
    const { isIpv4, network, localPort, remotePort } = this;
    const bytes = this.#bytes;
    const addressAt = (place: number): Uint8Array =>
      isIpv4
        ? Uint8Array.of(...ipv4Prefix, ...bytes.subarray(network + place, network + place + 4))
        : bytes.slice(network + place, network + place + ADDRESS_BYTES);
    return {
      localMac,
      remoteMac: bytes.slice(this.#at + MAC_BYTES, this.#at + 2 * MAC_BYTES),
      vlanTag: this.vlanTag,
      isIpv6: !isIpv4,
      localAddress: addressAt(isIpv4 ? IPV4_PLACE + 4 : 8 + ADDRESS_BYTES),
      remoteAddress: addressAt(isIpv4 ? IPV4_PLACE : 8),
      localPort,
      remotePort,
      hopLimit,
      trafficClass: 0,
    };
  }

  #isAt(at: number, address: Uint8Array, from: number): boolean {
    const bytes = this.#bytes;
    for (let index = from; index < ADDRESS_BYTES; index++)
      if (bytes[at + index - from] !== address[index]) return false;
    return true;
  }

  #findIpv4(frameEnd: number): boolean {
    const view = this.#view;
    const { network } = this;
    const { fields } = ipv4Header;
    if (network + ipv4Header.sizeBytes > frameEnd) return false;
    if (fields.protocol.get(view, network) !== IpProtocol.TCP || isFragment(this.#bytes, network))
      return false;
    const headerBytes = (fields.versionAndLength.get(view, network) & 0xf) * 4;
    this.isIpv4 = true;
    this.transport = network + headerBytes;
    this.end = network + fields.totalLength.get(view, network);
    return headerBytes >= ipv4Header.sizeBytes && this.#findPorts(frameEnd);
  }

  /** A segment after extension headers is not found. */
  #findIpv6(frameEnd: number): boolean {
    const view = this.#view;
    const { network } = this;
    const { fields } = ipv6Header;
    if (network + ipv6Header.sizeBytes > frameEnd) return false;
    if (fields.nextHeader.get(view, network) !== IpProtocol.TCP) return false;
    this.isIpv4 = false;
    this.transport = network + ipv6Header.sizeBytes;
    this.end = this.transport + fields.payloadLength.get(view, network);
    return this.#findPorts(frameEnd);
  }

  #findPorts(frameEnd: number): boolean {
    const { transport, end } = this;
    if (end > frameEnd || transport + 2 * PORT_BYTES > end) return false;
    this.remotePort = this.#view.getUint16(transport);
    this.localPort = this.#view.getUint16(transport + PORT_BYTES);
    return true;
  }
}

const ipv4Prefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] as const;
