/**
 * Turns send WQEs of datagram QPs into records: UD, whose WQE carries an address vector, and the special QPs 0 and 1,
 * whose WQE carries headers written by software.
 *
 *     UD:   control | datagram segment 48 | data
 *     MLX:  control | inline: LRH [GRH] BTH DETH [immediate] | data | inline: 4 bytes that the ICRC replaces
 *
 * On a port of Ethernet the headers are Ethernet, perhaps a tag, and GRH or IP and UDP in place of LRH and GRH
 * (interface sheet 7.5).
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
  rateCodeOf,
  WqeOpcode,
  wqeUnitBytes,
} from '../../../abi/index.ts';
import { GRH_BYTES, ICRC_BYTES, roceRoute, SERVICE_LEVEL_SHIFT } from '../../../wire/index.ts';
import {
  buildGrh,
  buildNetworkHeader,
  buildRoute,
  isGroupLid,
  isLoopbackPath,
  NO_TAG,
  noteGroup,
  type PortAddress,
  type RoceTables,
  readSoftwareHeaders,
  sourceMacOf,
  udpSourcePortOf,
} from '../ibta/packets/index.ts';
import {
  type DatagramAddresses,
  INLINE_BYTES_MAX,
  NOT_NUMBERED,
  type QpTable,
  type QueuePair,
  type SendRecord,
  type SendRecords,
} from '../objects/index.ts';
import { decodeControl, INLINE_HEADER_BYTES, loadData, loadPointer, nextAfterInline } from './wqe-decoder.ts';

const vector = addressVector.fields;
const datagram = datagramSegment.fields;
const pointer = dataPointer.fields;
const inline = inlineHeader.fields;
const control = mlxControlSegment.fields;

const isSend = (opcode: number): boolean => opcode === WqeOpcode.SEND || opcode === WqeOpcode.SEND_IMM;

const pkeyOf = (address: PortAddress, index: number): number => address.pkeys[index % address.pkeys.length]!;

/** Headers and data of one management packet in the WQE, before they are separated. */
interface Parts {
  readonly inlineBytes: number;
  /** Inline bytes in front of the first data pointer. */
  readonly leadingBytes: number;
}

/** Parts of the device that {@link DatagramDecoder} uses. */
export interface DatagramDecoderSetup {
  /** The addresses of each port. */
  readonly addresses: readonly PortAddress[];
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly records: SendRecords;
}

export class DatagramDecoder {
  readonly #addresses: readonly PortAddress[];
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #datagrams: DatagramAddresses;

  constructor(setup: DatagramDecoderSetup) {
    this.#addresses = setup.addresses;
    this.#qps = setup.qps;
    this.#sram = setup.sram;
    this.#sramView = setup.sramView;
    this.#datagrams = setup.records.datagrams;
  }

  /** Fills `request` from the WQE at `at` of a UD queue pair. @returns 0, or a CQE syndrome */
  decode(at: number, request: SendRecord, pair: QueuePair): number {
    const view = this.#sramView;
    const address = this.#addresses[pair.portIndex]!;
    const datagrams = this.#datagrams;
    const sizeBytes = decodeControl(view, at, request);
    if (request.opcode === WqeOpcode.NOP) return 0;
    const data = wqeUnitBytes + datagramSegment.sizeBytes;
    if (!isSend(request.opcode) || data > sizeBytes) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const to = at + wqeUnitBytes;
    // The QP must not use an address handle of another protection domain.
    if (vector.pd.get(view, to) !== pair.pd) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const record = request.number;
    const key = datagram.qkey.get(view, to);
    datagrams.number[record] = NOT_NUMBERED;
    datagrams.destinationQpn[record] = datagram.destinationQpn.get(view, to);
    datagrams.sourceQpn[record] = this.#qps.numberOf[pair.slot]!;
    datagrams.queueKey[record] = key >= qkeyOfQp ? pair.queueKey : key;
    datagrams.pkeyAndLevel[record] =
      pkeyOf(address, pair.pkeyIndex) | (vector.serviceLevel.get(view, to) << SERVICE_LEVEL_SHIFT);
    datagrams.destinationLid[record] = vector.destinationLid.get(view, to);
    datagrams.sourceLid[record] = address.lid | vector.sourcePathBits.get(view, to);
    datagrams.virtualLane[record] = 0;
    datagrams.staticRateCode[record] = rateCodeOf(vector.staticRate.get(view, to));
    datagrams.isForcedBack[record] = vector.forceLoopback.get(view, to);
    datagrams.hasGrh[record] = vector.grhPresent.get(view, to);
    datagrams.isToGroup[record] = isGroupLid(datagrams.destinationLid[record]!) ? 1 : 0;
    if (address.roce !== undefined) this.#takeRoute(to, record, pair, address, address.roce);
    else if (datagrams.hasGrh[record] === 1)
      buildGrh(this.#sram, to, address, datagrams.grh, record * GRH_BYTES);
    return loadData(view, this.#sram, at, data, sizeBytes, request);
  }

  /** Reads the same addresses on a port of Ethernet. The source GID determines the RoCE version of the datagram. */
  #takeRoute(
    to: number,
    record: number,
    { slot }: QueuePair,
    address: PortAddress,
    tables: RoceTables,
  ): void {
    const view = this.#sramView;
    const datagrams = this.#datagrams;
    const gid = vector.sourceGidIndex.get(view, to) % tables.isRoutable.length;
    const parts = {
      from: this.#sram,
      path: to,
      mac: to + datagram.destinationMac.field.offset,
      sourceMac: sourceMacOf(this.#qps, slot, tables),
      // Without a tag libmlx4 leaves stale bytes there, and Linux 0xffff: the bit of the vector decides.
      tag: vector.insertTag.get(view, to) === 0 ? NO_TAG : datagram.vlan.get(view, to),
      isRoutable: tables.isRoutable[gid] === 1,
      udpSourcePort: udpSourcePortOf(this.#qps, slot),
    };
    datagrams.hasGrh[record] = 1;
    datagrams.sourceLid[record] = 0;
    if (isLoopbackPath(address, this.#sram, to)) datagrams.isForcedBack[record] = 1;
    buildNetworkHeader(parts, address, datagrams.grh, record * GRH_BYTES);
    noteGroup(datagrams, record);
    buildRoute(parts, datagrams.routes, record * roceRoute.sizeBytes);
  }

  /** Fills `request` from the WQE at `at` of QP0 or QP1. Its PSN is software's, too. @returns 0, or a CQE syndrome */
  decodeManagement(at: number, request: SendRecord, { portIndex }: QueuePair): number {
    const sizeBytes = decodeControl(this.#sramView, at, request);
    if (request.opcode === WqeOpcode.NOP) return 0;
    if (!isSend(request.opcode)) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const parts = loadParts(this.#sramView, this.#sram, at, sizeBytes, request);
    if (parts === undefined) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const options = {
      keepsSourceLid: control.slr.get(this.#sramView, at),
      isOnManagementLane: control.vl15.get(this.#sramView, at),
      isForcedBack: control.forceLoopback.get(this.#sramView, at),
    };
    const { leadingBytes } = parts;
    const address = this.#addresses[portIndex]!;
    const headerBytes = readSoftwareHeaders(request, this.#datagrams, address, options, leadingBytes);
    if (headerBytes === 0) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const hasPointers = request.segmentCount > 0;
    const rest = parts.inlineBytes - headerBytes - ICRC_BYTES;
    // Data is either inline after the headers or in memory, given by pointers; the bytes that the ICRC replaces come
    // last.
    if (hasPointers ? rest !== 0 : rest < 0) return CqeSyndrome.LOCAL_QP_OP_ERR;
    if (hasPointers) return 0;
    request.inlineData.copyWithin(0, headerBytes, headerBytes + rest);
    request.isInline = rest > 0 ? 1 : 0;
    request.messageBytes = rest;
    return 0;
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
