/**
 * Differences between the IPv4 and IPv6 packets that we send: their headers, without options or extensions.
 *
 *     ┌ Ethernet 14 ┬ IPv4 20 or IPv6 40 ┬ transport 20 (28 in a SYN) ┬ payload … MTU − 40, or MTU − 60 ┐
 */
import { EtherType, type IpProtocol } from '../../abi/index.ts';
import { ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { synOptionBytes, transportHeaderBytes } from '../../protocol/tcp/index.ts';
import type { KernelMemory } from '../platform.ts';
import type { IpAddress } from './address.ts';
import type { ChecksumPlace } from './environment.ts';
import { ipv4HeaderBytes, writeIpv4 } from './ipv4.ts';
import { ipv6HeaderBytes, writeIpv6 } from './ipv6.ts';

/** Offset of the checksum in TCP's header. */
const segmentChecksumAt = 16;

/** The two ends of a packet. */
export interface PacketEnds {
  readonly source: IpAddress;
  readonly destination: IpAddress;
}

export interface IpVersion {
  readonly etherType: number;
  readonly headerBytes: number;
  /** Bytes of headers before the payload of a segment without options, without Ethernet's. */
  readonly segmentHeaderBytes: number;
  /** Offset of the transport's header in a frame. */
  readonly transportStart: number;
  /** Bytes of a buffer kept free before a payload: the headers, rounded up to a cache line. */
  readonly headroomBytes: number;
  /** Bytes of the longest header: that of a SYN. */
  readonly synBytes: number;
  /** Offsets at which a device that sums a segment begins, and at which it inserts the checksum. */
  readonly segmentChecksum: ChecksumPlace;
  /** Maximum segment size when the peer sends no MSS option (RFC 9293, 3.7.1). */
  readonly unsaidSegmentBytes: number;
  /** Writes the header of one of our packets at `at`. @returns the sum of its addresses, as in pseudo headers */
  readonly write: (
    memory: Pick<KernelMemory, 'bytes' | 'view'>,
    at: number,
    ends: PacketEnds,
    protocol: (typeof IpProtocol)[keyof typeof IpProtocol],
    payloadBytes: number,
  ) => number;
}

const versionOf = (
  headerBytes: number,
  headroomBytes: number,
  parts: Pick<IpVersion, 'etherType' | 'unsaidSegmentBytes' | 'write'>,
): IpVersion => {
  const transportStart = ethernetHeaderBytes + headerBytes;
  return {
    ...parts,
    headerBytes,
    segmentHeaderBytes: headerBytes + transportHeaderBytes,
    transportStart,
    headroomBytes,
    synBytes: transportStart + transportHeaderBytes + synOptionBytes,
    segmentChecksum: { start: transportStart, offset: transportStart + segmentChecksumAt },
  };
};

export const ipv4 = versionOf(ipv4HeaderBytes, 64, {
  etherType: EtherType.IPV4,
  unsaidSegmentBytes: 536,
  write: writeIpv4,
});

const ipv6 = versionOf(ipv6HeaderBytes, 128, {
  etherType: EtherType.IPV6,
  unsaidSegmentBytes: 1220,
  write: writeIpv6,
});

export const ipVersionOf = (address: IpAddress): IpVersion => (typeof address === 'number' ? ipv4 : ipv6);

/** Offset of the longest packet's payload in its buffer, and the bytes needed after an MTU. */
export const bufferBytesFor = (mtu: number): number =>
  Math.max(...[ipv4, ipv6].map((version) => version.headroomBytes + mtu - version.segmentHeaderBytes));
