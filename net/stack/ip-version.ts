/**
 * What is different in the packets of IPv4 and IPv6 that we send: their headers, of which neither has options or extensions.
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

/** Of the checksum in TCP's header. */
const segmentChecksumAt = 16;

/** The two ends of a packet. */
export interface PacketEnds {
  readonly source: IpAddress;
  readonly destination: IpAddress;
}

export interface IpVersion {
  readonly etherType: number;
  readonly headerBytes: number;
  /** Headers in front of the payload of a segment without options, without Ethernet's. */
  readonly segmentHeaderBytes: number;
  /** Where in a frame the transport's header lies. */
  readonly transportStart: number;
  /** Bytes of a buffer kept free in front of a payload: the headers, rounded up to a cache line. */
  readonly headroomBytes: number;
  /** The longest header of all: bytes of a SYN. */
  readonly synBytes: number;
  /** Where a device that sums a segment begins, and where it puts the checksum. */
  readonly segmentChecksum: ChecksumPlace;
  /** Segments of who does not say how long they may be (RFC 9293, 3.7.1). */
  readonly unsaidSegmentBytes: number;
  /** Writes the header of a packet of ours at `at`. @returns the sum of its addresses, as pseudo headers have it */
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

/** A payload of the longest packet begins so far into its buffer, and ends so far behind an MTU's. */
export const bufferBytesFor = (mtu: number): number =>
  Math.max(...[ipv4, ipv6].map((version) => version.headroomBytes + mtu - version.segmentHeaderBytes));
