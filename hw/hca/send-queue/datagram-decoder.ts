/**
 * Turns send WQEs of datagram QPs into records: UD, whose WQE carries an address vector, and the special QPs 0 and 1, whose
 * WQE carries the headers themselves, written by software.
 *
 *     UD:   control | datagram segment 48 | data
 *     MLX:  control | inline: LRH [GRH] BTH DETH [immediate] | data | inline: 4 bytes that the ICRC replaces
 *
 * On a port of Ethernet the headers are Ethernet, perhaps a tag, and GRH or IP and UDP in place of LRH and GRH (interface sheet 7.5).
 *
 * Sources: interface sheet 6.3, 6.4; IBTA vol 1, 9.4.1, 10.2.2.2 (what an address handle must agree with).
 */
import {
  addressVector,
  CqeSyndrome,
  datagramSegment,
  dataPointer,
  inlineHeader,
  mlxControlSegment,
  qkeyOfQp,
  WqeOpcode,
  wqeUnitBytes,
} from '../../../abi/index.ts';
import {
  bth,
  deth,
  GRH_BYTES,
  ICRC_BYTES,
  immDt,
  lrh,
  MANAGEMENT_LANE,
  Opcode,
  roceRoute,
  SERVICE_LEVEL_SHIFT,
  takeRoute,
} from '../../../wire/index.ts';
import {
  type DatagramAddresses,
  INLINE_BYTES_MAX,
  type QpTable,
  type QueuePair,
  type SendRecord,
  type SendRecords,
} from '../objects/index.ts';
import {
  buildGrh,
  buildNetworkHeader,
  buildRoute,
  isGrhForGroup,
  isGroupLid,
  isLoopbackPath,
  NO_TAG,
  type PortAddress,
  type RoceTables,
  sourceMacOf,
  udpSourcePortOf,
} from '../packets/index.ts';
import { decodeControl, INLINE_HEADER_BYTES, loadData, loadPointer, nextAfterInline } from './wqe-decoder.ts';

const vector = addressVector.fields;
const datagram = datagramSegment.fields;
const pointer = dataPointer.fields;
const inline = inlineHeader.fields;
/** LNH of a packet with a GRH. */
const NEXT_IS_GRH = 3;
const PATH_BITS_MASK = 0x7f;

const isSend = (opcode: number): boolean => opcode === WqeOpcode.SEND || opcode === WqeOpcode.SEND_IMM;

const pkeyOf = (address: PortAddress, index: number): number => address.pkeys[index % address.pkeys.length]!;

/** Headers and data of one management packet as they lie in the WQE, before they are separated. */
interface Parts {
  readonly inlineBytes: number;
  /** Inline bytes in front of the first data pointer. */
  readonly leadingBytes: number;
}

/** Parts of the device that {@link DatagramDecoder} uses. */
export interface DatagramDecoderSetup {
  readonly address: PortAddress;
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly records: SendRecords;
}

export class DatagramDecoder {
  readonly #address: PortAddress;
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #datagrams: DatagramAddresses;

  constructor(setup: DatagramDecoderSetup) {
    this.#address = setup.address;
    this.#qps = setup.qps;
    this.#sram = setup.sram;
    this.#sramView = setup.sramView;
    this.#datagrams = setup.records.datagrams;
  }

  /** Fills `request` from the WQE at `at` of a UD queue pair. @returns 0, or a CQE syndrome */
  decode(at: number, request: SendRecord, pair: QueuePair): number {
    const view = this.#sramView;
    const address = this.#address;
    const datagrams = this.#datagrams;
    const sizeBytes = decodeControl(view, at, request);
    if (request.opcode === WqeOpcode.NOP) return 0;
    const data = wqeUnitBytes + datagramSegment.sizeBytes;
    if (!isSend(request.opcode) || data > sizeBytes) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const to = at + wqeUnitBytes;
    // An address handle of another protection domain is none of this QP's.
    if (vector.pd.get(view, to) !== pair.pd) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const record = request.number;
    const key = datagram.qkey.get(view, to);
    datagrams.destinationQpn[record] = datagram.destinationQpn.get(view, to);
    datagrams.sourceQpn[record] = this.#qps.numberOf[pair.slot]!;
    datagrams.queueKey[record] = key >= qkeyOfQp ? pair.queueKey : key;
    datagrams.pkeyAndLevel[record] =
      pkeyOf(address, pair.pkeyIndex) | (vector.serviceLevel.get(view, to) << SERVICE_LEVEL_SHIFT);
    datagrams.destinationLid[record] = vector.destinationLid.get(view, to);
    datagrams.sourceLid[record] = address.lid | vector.sourcePathBits.get(view, to);
    datagrams.virtualLane[record] = 0;
    datagrams.isForcedBack[record] = vector.forceLoopback.get(view, to);
    datagrams.hasGrh[record] = vector.grhPresent.get(view, to);
    datagrams.isToGroup[record] = isGroupLid(datagrams.destinationLid[record]!) ? 1 : 0;
    if (address.roce !== undefined) this.#takeRoute(to, record, pair, address.roce);
    else if (datagrams.hasGrh[record] === 1)
      buildGrh(this.#sram, to, address, datagrams.grh, record * GRH_BYTES);
    return loadData(view, this.#sram, at, data, sizeBytes, request);
  }

  /** The same addresses on a port of Ethernet. The GID that a datagram comes from says by which version it goes. */
  #takeRoute(to: number, record: number, { slot }: QueuePair, tables: RoceTables): void {
    const view = this.#sramView;
    const datagrams = this.#datagrams;
    const gid = vector.sourceGidIndex.get(view, to) % tables.isRoutable.length;
    const parts = {
      from: this.#sram,
      path: to,
      mac: to + datagram.destinationMac.field.offset,
      sourceMac: sourceMacOf(this.#qps, slot, tables),
      // libmlx4 leaves there what its memory held before where there is no tag, and Linux 0xffff: the bit of the vector decides.
      tag: vector.insertTag.get(view, to) === 0 ? NO_TAG : datagram.vlan.get(view, to),
      isRoutable: tables.isRoutable[gid] === 1,
      udpSourcePort: udpSourcePortOf(this.#qps, slot),
    };
    datagrams.hasGrh[record] = 1;
    datagrams.sourceLid[record] = 0;
    if (isLoopbackPath(this.#address, this.#sram, to)) datagrams.isForcedBack[record] = 1;
    buildNetworkHeader(parts, this.#address, datagrams.grh, record * GRH_BYTES);
    this.#noteGroup(record);
    buildRoute(parts, datagrams.routes, record * roceRoute.sizeBytes);
  }

  /** On Ethernet the GID tells whether the destination is a group: some versions of libmlx4 write a LID of groups, others none. */
  #noteGroup(record: number): void {
    const { grh, isToGroup } = this.#datagrams;
    isToGroup[record] = isGrhForGroup(grh, record * GRH_BYTES) ? 1 : 0;
  }

  /** Fills `request` from the WQE at `at` of QP0 or QP1. Its PSN is software's, too. @returns 0, or a CQE syndrome */
  decodeManagement(at: number, request: SendRecord): number {
    const sizeBytes = decodeControl(this.#sramView, at, request);
    if (request.opcode === WqeOpcode.NOP) return 0;
    if (!isSend(request.opcode)) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const parts = loadParts(this.#sramView, this.#sram, at, sizeBytes, request);
    if (parts === undefined) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const headerBytes = this.#takeHeaders(at, request, parts);
    if (headerBytes === 0) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const hasPointers = request.segmentCount > 0;
    const rest = parts.inlineBytes - headerBytes - ICRC_BYTES;
    // Data is either inline behind the headers or behind pointers; what the ICRC replaces comes last.
    if (hasPointers ? rest !== 0 : rest < 0) return CqeSyndrome.LOCAL_QP_OP_ERR;
    if (hasPointers) return 0;
    request.inlineData.copyWithin(0, headerBytes, headerBytes + rest);
    request.isInline = rest > 0 ? 1 : 0;
    request.messageBytes = rest;
    return 0;
  }

  /** Reads the headers that software wrote. Returns their length, or 0 for what is no UD packet. */
  #takeHeaders(at: number, request: SendRecord, { leadingBytes }: Parts): number {
    const datagrams = this.#datagrams;
    const record = request.number;
    const { inlineData } = request;
    const view = new DataView(inlineData.buffer, inlineData.byteOffset, INLINE_BYTES_MAX);
    const base =
      this.#address.roce === undefined
        ? this.#takeLinkHeaders(at, record, view, inlineData)
        : this.#takeFrameHeaders(at, record, inlineData);
    if (base === -1) return 0;
    const opcode = bth.fields.opcode.get(view, base);
    const withImmediate = opcode === Opcode.UD_SEND_ONLY_WITH_IMMEDIATE;
    const dethPlace = base + bth.sizeBytes;
    const length = dethPlace + deth.sizeBytes + (withImmediate ? immDt.sizeBytes : 0);
    if (length > leadingBytes || (opcode !== Opcode.UD_SEND_ONLY && !withImmediate)) return 0;
    request.opcode = withImmediate ? WqeOpcode.SEND_IMM : WqeOpcode.SEND;
    request.isSolicited = bth.fields.solicitedEvent.get(view, base);
    if (withImmediate) request.immediate = view.getInt32(dethPlace + deth.sizeBytes);
    request.firstPsn = bth.fields.psn.get(view, base);
    datagrams.destinationQpn[record] = bth.fields.destinationQp.get(view, base);
    datagrams.sourceQpn[record] = deth.fields.sourceQp.get(view, dethPlace);
    datagrams.queueKey[record] = deth.fields.queueKey.get(view, dethPlace);
    datagrams.pkeyAndLevel[record]! |= bth.fields.partitionKey.get(view, base);
    return length;
  }

  /** LRH and perhaps GRH. Returns the place of the BTH. */
  #takeLinkHeaders(at: number, record: number, view: DataView, inlineData: Uint8Array): number {
    const wqe = this.#sramView;
    const datagrams = this.#datagrams;
    const hasGrh = lrh.fields.linkNextHeader.get(view, 0) === NEXT_IS_GRH;
    datagrams.pkeyAndLevel[record] = lrh.fields.serviceLevel.get(view, 0) << SERVICE_LEVEL_SHIFT;
    const lid = lrh.fields.destinationLid.get(view, 0);
    datagrams.destinationLid[record] = lid;
    datagrams.isToGroup[record] = isGroupLid(lid) ? 1 : 0;
    const control = mlxControlSegment.fields;
    const sourceLid = lrh.fields.sourceLid.get(view, 0);
    // Software writes path bits only, and the port puts its LID to them, unless the WQE has it leave the source as it is.
    const isAsWritten = control.slr.get(wqe, at) === 1;
    datagrams.sourceLid[record] = isAsWritten ? sourceLid : this.#address.lid | (sourceLid & PATH_BITS_MASK);
    datagrams.virtualLane[record] = control.vl15.get(wqe, at) === 1 ? MANAGEMENT_LANE : 0;
    datagrams.isForcedBack[record] = control.forceLoopback.get(wqe, at);
    datagrams.hasGrh[record] = hasGrh ? 1 : 0;
    if (!hasGrh) return lrh.sizeBytes;
    const from = lrh.sizeBytes;
    datagrams.grh.set(inlineData.subarray(from, from + GRH_BYTES), record * GRH_BYTES);
    return from + GRH_BYTES;
  }

  /** Ethernet, perhaps a tag, GRH or IP and UDP. Returns the place of the BTH, or -1 for what is no RoCE. */
  #takeFrameHeaders(at: number, record: number, inlineData: Uint8Array): number {
    const datagrams = this.#datagrams;
    const { grh, routes } = datagrams;
    datagrams.pkeyAndLevel[record] = 0;
    datagrams.destinationLid[record] = 0;
    datagrams.sourceLid[record] = 0;
    datagrams.virtualLane[record] = 0;
    // The bits of a lane and of a LID left as it is are bits of a MAC here.
    datagrams.isForcedBack[record] = mlxControlSegment.fields.forceLoopback.get(this.#sramView, at);
    datagrams.hasGrh[record] = 1;
    const base = takeRoute(inlineData, 0, grh, record * GRH_BYTES, routes, record * roceRoute.sizeBytes);
    this.#noteGroup(record);
    return base;
  }
}

/** Joins the inline segments in the record's inline data and lists the data pointers. */
function loadParts(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  sizeBytes: number,
  request: SendRecord,
): Parts | undefined {
  let inlineBytes = 0;
  let leadingBytes = -1;
  let next = wqeUnitBytes;
  while (next < sizeBytes) {
    const length = inline.byteCount.get(view, at + next);
    if (inline.isInline.get(view, at + next) === 1) {
      const end = next + INLINE_HEADER_BYTES + length;
      if (end > sizeBytes || inlineBytes + length > INLINE_BYTES_MAX) return undefined;
      const from = at + next + INLINE_HEADER_BYTES;
      request.inlineData.set(bytes.subarray(from, from + length), inlineBytes);
      inlineBytes += length;
      next = nextAfterInline(next, length);
      continue;
    }
    if (leadingBytes === -1) leadingBytes = inlineBytes;
    const dataBytes = pointer.byteCount.get(view, at + next);
    if (dataBytes > 0) loadPointer(view, at + next, dataBytes, request);
    next += wqeUnitBytes;
  }
  return { inlineBytes, leadingBytes: leadingBytes === -1 ? inlineBytes : leadingBytes };
}
