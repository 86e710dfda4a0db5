/**
 * The packets kept at the ends of a cable as a capture file: an interface for each end, packets by time, in the link type that
 * Wireshark reads.
 */
import { erfRecord, LinkType, type WrittenPacket, writeCapture } from '../../../analyser/capture/index.ts';
import { byteTimeOf, type WireConfig } from '../../../wire/index.ts';
import type { WireCapture } from '../node/wire-log.ts';

const PS_PER_SECOND = 1_000_000_000_000n;
const BITS_PER_BYTE = 8n;

/** @param captures of each end */
export function captureFile(captures: readonly WireCapture[], wire: WireConfig): Uint8Array<ArrayBuffer> {
  const { numeratorPs, denominator } = byteTimeOf(wire);
  const bitsPerSecond = (BITS_PER_BYTE * PS_PER_SECOND * BigInt(denominator)) / BigInt(numeratorPs);
  const interfaces = captures.map(({ name, droppedPackets }) => ({
    linkType: LinkType.ERF,
    name,
    description: `${name}, port 1: its end of the InfiniBand cable`,
    bitsPerSecond,
    droppedPackets,
  }));
  const packets = captures.flatMap(({ packets }, number) =>
    packets.map(
      ({ atPs, direction, bytes, note }): WrittenPacket => ({
        interface: number,
        timePs: BigInt(atPs),
        direction,
        bytes: erfRecord(bytes, BigInt(atPs)),
        comment: note,
      }),
    ),
  );
  packets.sort((left, right) => (left.timePs < right.timePs ? -1 : left.timePs > right.timePs ? 1 : 0));
  return writeCapture('HCA emulator: times are simulated', interfaces, packets);
}
