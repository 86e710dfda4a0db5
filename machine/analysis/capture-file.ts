/**
 * Writes the packets kept at the ends of cables as a capture file: an interface for each end, packets in time order,
 * in the link type that Wireshark reads.
 */
import { erfRecord, LinkType, type WrittenPacket, writeCapture } from '../../analyser/capture/index.ts';
import type { WireCapture } from '../node/wire-log.ts';
import type { DroppedRecords } from '../timeline/index.ts';

/** @param captures one for each end */
export function captureFile(captures: readonly WireCapture[]): Uint8Array<ArrayBuffer> {
  const interfaces = captures.map(({ name, port, droppedPackets, isEthernet, bitsPerSecond }) => ({
    linkType: isEthernet ? LinkType.ETHERNET : LinkType.ERF,
    name: endNameOf(name, port),
    description: `${name}, port ${port}: its end of the ${isEthernet ? 'Ethernet' : 'InfiniBand'} cable`,
    bitsPerSecond,
    droppedPackets,
  }));
  const packets = captures.flatMap(({ packets, isEthernet }, number) =>
    packets.map(
      ({ atPs, direction, bytes, note }): WrittenPacket => ({
        interface: number,
        timePs: BigInt(atPs),
        direction,
        bytes: isEthernet ? bytes : erfRecord(bytes, BigInt(atPs)),
        comment: note,
      }),
    ),
  );
  packets.sort((left, right) => (left.timePs < right.timePs ? -1 : left.timePs > right.timePs ? 1 : 0));
  return writeCapture('HCA emulator: times are simulated', interfaces, packets);
}

/** A switch's ports have numbers; the first port of an adapter has its name alone. */
const endNameOf = (name: string, port: number): string =>
  port === 1 && !name.startsWith('switch') ? name : `${name}.${port}`;

/** Number of captured packets of an end, and of packets dropped because the capture was full. */
export const droppedOf = ({ name, port, packets, droppedPackets }: WireCapture): DroppedRecords => ({
  process: endNameOf(name, port),
  kept: packets.length,
  dropped: droppedPackets,
});
