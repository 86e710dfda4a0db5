/**
 * Writes the packets kept at the ends of a cable as a capture file: an interface for each end, packets in time order,
 * in the link type that Wireshark reads.
 */
import { erfRecord, LinkType, type WrittenPacket, writeCapture } from '../../analyser/capture/index.ts';
import { byteTimeOf, type EthernetConfig, type WireConfig } from '../../wire/index.ts';
import type { WireCapture } from '../node/wire-log.ts';
import type { DroppedRecords } from '../timeline/index.ts';

const PS_PER_SECOND = 1_000_000_000_000n;
const BITS_PER_BYTE = 8n;

const BITS_PER_GIGABIT = 1e9;

/** Parameters that determine the rates of the cables. */
interface CableConfig {
  readonly wire: WireConfig;
  readonly ethernet: Pick<EthernetConfig, 'gigabitsPerSecond'>;
}

/** @param captures one for each end */
export function captureFile(
  captures: readonly WireCapture[],
  { wire, ethernet }: CableConfig,
): Uint8Array<ArrayBuffer> {
  const { numeratorPs, denominator } = byteTimeOf(wire);
  const bitsPerSecond = (BITS_PER_BYTE * PS_PER_SECOND * BigInt(denominator)) / BigInt(numeratorPs);
  const interfaces = captures.map(({ name, port, droppedPackets, isEthernet }) => ({
    linkType: isEthernet ? LinkType.ETHERNET : LinkType.ERF,
    name: port === 1 ? name : `${name}.${port}`,
    description: `${name}, port ${port}: its end of the ${isEthernet ? 'Ethernet' : 'InfiniBand'} cable`,
    bitsPerSecond: isEthernet ? BigInt(ethernet.gigabitsPerSecond * BITS_PER_GIGABIT) : bitsPerSecond,
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

/** Number of captured packets of an end, and of packets dropped because the capture was full. */
export const droppedOf = ({ name, port, packets, droppedPackets }: WireCapture): DroppedRecords => ({
  process: port === 1 ? name : `${name}, port ${port}`,
  kept: packets.length,
  dropped: droppedPackets,
});
