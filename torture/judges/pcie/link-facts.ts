/**
 * Facts of a PCIe link by the standard and the parameters, independent of the model: sizes of packets, their time on
 * the lanes, credits. Sections are those of the PCI Express Base Specification 3.1.
 */
import type { LinkPacket, LinkPackets } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';

export type Direction = LinkPackets['direction'];

/** A rule sees the packets of one link, both directions, in the order of their arrivals. */
export interface LinkRule {
  see(packet: LinkPacket, direction: Direction): void;
  /** Reports missing packets after the last one. */
  end?(): void;
}

/** Reports a violation of a rule. */
export type Accuse = (what: string) => void;

export const pageBytes = 4096;
export const dwordBytes = 4;
/** Sequence number, LCRC and framing symbols (3.5.2, 4.2.1), or STP token and LCRC (4.2.2.3): the same sum. */
const framingBytes = 8;

/** Dwords that a request or its data span: byte enables cover the first and last one (2.2.5). */
export const dwordsOf = ({ address, lengthBytes }: Pick<LinkPacket, 'address' | 'lengthBytes'>): number =>
  Math.max(1, Math.ceil(((address % dwordBytes) + lengthBytes) / dwordBytes));

const hasData = ({ kind }: LinkPacket): boolean => kind === 'MWr' || kind === 'CplD' || kind === 'CfgWr0';

export const dataDwordsOf = (packet: LinkPacket): number => (hasData(packet) ? dwordsOf(packet) : 0);

/** Header of 4 dwords for messages (2.2.8) and memory above 4 GiB (2.2.4.1), else 3. */
const headerBytesOf = ({ kind, address }: LinkPacket): number =>
  kind === 'Msg' || ((kind === 'MWr' || kind === 'MRd') && address >= 2 ** 32) ? 16 : 12;

/** Bytes of a TLP on the lanes. */
export const linkBytesOf = (packet: LinkPacket): number =>
  headerBytesOf(packet) + dataDwordsOf(packet) * dwordBytes + framingBytes;

/** 0 posted, 1 non-posted, 2 completions: table 2-37. */
export function flowOf({ kind }: LinkPacket): number {
  if (kind === 'MWr' || kind === 'Msg') return 0;
  return kind === 'CplD' || kind === 'Cpl' ? 2 : 1;
}

export const flowNames = ['posted', 'non-posted', 'completion'] as const;

const gigatransfers = [2.5, 5, 8, 16, 32];

/** Picoseconds of a byte on all lanes: 8b/10b or 128b/130b (4.2), less the SKP ordered sets (4.2.7). */
export function psPerByteOf({ pcie: { link } }: MachineConfig): number {
  const isBlockCoded = link.generation >= 3;
  const coding = isBlockCoded ? 128 / 130 : 8 / 10;
  const free = isBlockCoded
    ? (link.skpIntervalBlocks - 1) / link.skpIntervalBlocks
    : (link.skpIntervalSymbols - 4) / link.skpIntervalSymbols;
  const bitsPerPs = (gigatransfers[link.generation - 1]! * link.lanes * coding * free) / 1000;
  return 8 / bitsPerPs;
}

export const textOf = ({ kind, address, lengthBytes, tag, atPs }: LinkPacket): string =>
  `${kind} of ${lengthBytes} bytes at 0x${address.toString(16)}, tag ${tag}, arriving at ${atPs} ps`;

/** An instant is reported rounded up to a picosecond, at either end; beyond 2^53 ps a double cannot tell single ones apart. */
export const roundingPsAt = (atPs: number): number =>
  atPs < 2 ** 53 ? 2 : 2 + 2 ** (Math.floor(Math.log2(atPs)) - 52);
