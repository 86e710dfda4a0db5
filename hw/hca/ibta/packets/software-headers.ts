/**
 * Reads the headers that software writes into a work request of QP0 or QP1 and fills the addresses of its datagram from them.
 *
 *     InfiniBand: LRH [GRH] BTH DETH [immediate]     Ethernet: Ethernet [tag] GRH or IP and UDP, BTH DETH [immediate]
 *
 * Sources: IBTA vol 1, 9.2, 9.3.2, 7.7 (BTH, DETH, LRH); interface sheet 7.5.
 */
import { WqeOpcode } from '../../../../abi/index.ts';
import {
  bth,
  deth,
  GRH_BYTES,
  immDt,
  lrh,
  MANAGEMENT_LANE,
  Opcode,
  roceRoute,
  SERVICE_LEVEL_SHIFT,
  takeRoute,
} from '../../../../wire/index.ts';
import { type DatagramAddresses, INLINE_BYTES_MAX, type SendRecord } from '../../objects/index.ts';
import { isGrhForGroup } from './grh.ts';
import { isGroupLid, type PortAddress } from './port-address.ts';

/** LNH of a packet with a GRH. */
const NEXT_IS_GRH = 3;
const PATH_BITS_MASK = 0x7f;

/** The work request's own word on how its packet is sent. */
export interface HeaderOptions {
  /** 1: the source LID is sent as written. */
  readonly keepsSourceLid: number;
  /** 1: on the lane of management. */
  readonly isOnManagementLane: number;
  /** 1 if the packet goes to this very port, regardless of its destination. */
  readonly isForcedBack: number;
}

/**
 * Fills `request` and its addresses from the headers at the beginning of its inline data.
 * @param leadingBytes inline bytes before the first data pointer, in which the headers must end
 * @returns their length, or 0 for headers of no UD packet
 */
export function readSoftwareHeaders(
  request: SendRecord,
  datagrams: DatagramAddresses,
  port: PortAddress,
  options: HeaderOptions,
  leadingBytes: number,
): number {
  const { inlineData, number: record } = request;
  const view = new DataView(inlineData.buffer, inlineData.byteOffset, INLINE_BYTES_MAX);
  datagrams.isForcedBack[record] = options.isForcedBack;
  const base =
    port.roce === undefined
      ? readLinkHeaders(record, view, inlineData, datagrams, port, options)
      : readFrameHeaders(record, inlineData, datagrams);
  if (base === -1) return 0;
  const opcode = bth.fields.opcode.get(view, base);
  const withImmediate = opcode === Opcode.UD_SEND_ONLY_WITH_IMMEDIATE;
  const dethPlace = base + bth.sizeBytes;
  const length = dethPlace + deth.sizeBytes + (withImmediate ? immDt.sizeBytes : 0);
  if (length > leadingBytes || (opcode !== Opcode.UD_SEND_ONLY && !withImmediate)) return 0;
  request.opcode = withImmediate ? WqeOpcode.SEND_IMM : WqeOpcode.SEND;
  request.isSolicited = bth.fields.solicitedEvent.get(view, base);
  if (withImmediate) request.immediate = view.getInt32(dethPlace + deth.sizeBytes);
  datagrams.number[record] = bth.fields.psn.get(view, base);
  datagrams.destinationQpn[record] = bth.fields.destinationQp.get(view, base);
  datagrams.sourceQpn[record] = deth.fields.sourceQp.get(view, dethPlace);
  datagrams.queueKey[record] = deth.fields.queueKey.get(view, dethPlace);
  datagrams.pkeyAndLevel[record]! |= bth.fields.partitionKey.get(view, base);
  return length;
}

/**
 * On Ethernet the GID tells whether the destination is a group: some versions of libmlx4 write a multicast LID, others
 * none.
 */
export function noteGroup(datagrams: DatagramAddresses, record: number): void {
  const { grh, isToGroup } = datagrams;
  isToGroup[record] = isGrhForGroup(grh, record * GRH_BYTES) ? 1 : 0;
}

/** LRH and perhaps GRH. Returns the place of the BTH. */
function readLinkHeaders(
  record: number,
  view: DataView,
  inlineData: Uint8Array,
  datagrams: DatagramAddresses,
  port: PortAddress,
  { keepsSourceLid, isOnManagementLane }: HeaderOptions,
): number {
  const hasGrh = lrh.fields.linkNextHeader.get(view, 0) === NEXT_IS_GRH;
  datagrams.pkeyAndLevel[record] = lrh.fields.serviceLevel.get(view, 0) << SERVICE_LEVEL_SHIFT;
  const lid = lrh.fields.destinationLid.get(view, 0);
  datagrams.destinationLid[record] = lid;
  datagrams.isToGroup[record] = isGroupLid(lid) ? 1 : 0;
  const sourceLid = lrh.fields.sourceLid.get(view, 0);
  // Software writes path bits only, and the port adds its LID, unless the work request keeps the source unchanged.
  datagrams.sourceLid[record] = keepsSourceLid === 1 ? sourceLid : port.lid | (sourceLid & PATH_BITS_MASK);
  datagrams.virtualLane[record] = isOnManagementLane === 1 ? MANAGEMENT_LANE : 0;
  datagrams.staticRateCode[record] = 0;
  datagrams.hasGrh[record] = hasGrh ? 1 : 0;
  if (!hasGrh) return lrh.sizeBytes;
  const from = lrh.sizeBytes;
  datagrams.grh.set(inlineData.subarray(from, from + GRH_BYTES), record * GRH_BYTES);
  return from + GRH_BYTES;
}

/** Ethernet, perhaps a tag, GRH or IP and UDP. Returns the place of the BTH, or -1 for a frame that is not RoCE. */
function readFrameHeaders(record: number, inlineData: Uint8Array, datagrams: DatagramAddresses): number {
  const { grh, routes } = datagrams;
  // The bits of a lane and of a kept LID are bits of a MAC here.
  datagrams.pkeyAndLevel[record] = 0;
  datagrams.destinationLid[record] = 0;
  datagrams.sourceLid[record] = 0;
  datagrams.virtualLane[record] = 0;
  datagrams.staticRateCode[record] = 0;
  datagrams.hasGrh[record] = 1;
  const base = takeRoute(inlineData, 0, grh, record * GRH_BYTES, routes, record * roceRoute.sizeBytes);
  noteGroup(datagrams, record);
  return base;
}
