/**
 * Turns the send WQE of an Ethernet ring into a record: its data is one frame without FCS, or, with LSO, the payload of
 * several frames. The WQE may take several blocks of the ring, and hence of its line of the WQE cache, which wraps from
 * its end to its beginning.
 *
 *     SEND: control | data pointers, or inline data
 *     LSO:  control | payload of a frame, bytes of the headers; headers, to a multiple of 16 | data pointers, or inline data
 *
 * LSO accepts TCP over IP, if the port offers it. Its headers precede the inline payload in the record's inline data.
 * Sources: interface sheet 6.1, 6.3, 6.4; IEEE 802.1Q-2018, 9.5 (ethertypes).
 */
import {
  CqeSyndrome,
  ethernetControlSegment,
  lsoHeader,
  WqeOpcode,
  wqeUnitBytes,
  wqeUnitsMax,
} from '../../../abi/index.ts';
import { ETHERNET_HEADER_BYTES } from '../../../wire/index.ts';
import { segmentPlacesOf } from '../frames/index.ts';
import {
  type FrameOffloads,
  type SendRecord,
  type SendRecords,
  WQE_LINE_BYTES,
  type WqeLine,
} from '../objects/index.ts';
import type { EthernetAttachment } from '../port/index.ts';
import { decodeControl, loadData } from './wqe-decoder.ts';

const { LOCAL_LENGTH_ERR, LOCAL_QP_OP_ERR } = CqeSyndrome;
const control = ethernetControlSegment.fields;
const lso = lsoHeader.fields;
/** Headers that reach beyond this part of a WQE must set a flag. */
const LINE_BYTES = 64;
const TYPE_C_VLAN = 0x8100;
const TYPE_S_VLAN = 0x88a8;
const NO_TAG = -1;

/** Parts of the device that {@link FrameDecoder} uses. */
export interface FrameDecoderSetup {
  readonly ethernet: EthernetAttachment | undefined;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly records: SendRecords;
}

export class FrameDecoder {
  readonly #ethernet: EthernetAttachment | undefined;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #offloads: FrameOffloads;
  /** A WQE that continues at the beginning of its line, in one piece. */
  readonly #whole = new Uint8Array((wqeUnitsMax + 1) * wqeUnitBytes);
  readonly #wholeView = new DataView(this.#whole.buffer);

  constructor(setup: FrameDecoderSetup) {
    this.#ethernet = setup.ethernet;
    this.#sram = setup.sram;
    this.#sramView = setup.sramView;
    this.#offloads = setup.records.frames;
  }

  /** Fills `request` from the WQE at `at`, in `line`. @returns 0, or a CQE syndrome */
  decode(at: number, line: WqeLine, request: SendRecord): number {
    const sram = this.#sram;
    const sizeBytes = control.ds.get(this.#sramView, at) * wqeUnitBytes;
    const lineEnd = line.sramOffset + WQE_LINE_BYTES;
    if (at + sizeBytes <= lineEnd) return this.#decode(sram, this.#sramView, at, request);
    const first = sram.subarray(at, lineEnd);
    this.#whole.set(first);
    this.#whole.set(sram.subarray(line.sramOffset, line.sramOffset + sizeBytes - first.length), first.length);
    return this.#decode(this.#whole, this.#wholeView, 0, request);
  }

  #decode(bytes: Uint8Array, view: DataView, at: number, request: SendRecord): number {
    const sizeBytes = decodeControl(view, at, request);
    const { opcode, number } = request;
    if (opcode === WqeOpcode.NOP) return 0;
    if (opcode !== WqeOpcode.SEND && opcode !== WqeOpcode.LSO) return LOCAL_QP_OP_ERR;
    const { tag, tagType, hasIpChecksum, hasL4Checksum, segmentBytes } = this.#offloads;
    const isCustomer = control.insertCVlan.get(view, at) === 1;
    const isTagged = isCustomer || control.insertSVlan.get(view, at) === 1;
    tag[number] = isTagged ? control.vlanTag.get(view, at) : NO_TAG;
    tagType[number] = isCustomer ? TYPE_C_VLAN : TYPE_S_VLAN;
    hasIpChecksum[number] = control.ipChecksum.get(view, at);
    hasL4Checksum[number] = control.tcpUdpChecksum.get(view, at);
    segmentBytes[number] = 0;
    if (opcode === WqeOpcode.LSO) return this.#decodeLso(bytes, view, at, sizeBytes, request);
    const syndrome = loadData(view, bytes, at, wqeUnitBytes, sizeBytes, request);
    if (syndrome !== 0) return syndrome;
    return request.messageBytes < ETHERNET_HEADER_BYTES ? LOCAL_LENGTH_ERR : 0;
  }

  /** The rest of an LSO. Without it, and of headers that are not those of TCP over IP, it is no operation of this QP. */
  #decodeLso(bytes: Uint8Array, view: DataView, at: number, sizeBytes: number, request: SendRecord): number {
    const ethernet = this.#ethernet;
    if (ethernet === undefined || ethernet.side.lsoBytesMax === 0) return LOCAL_QP_OP_ERR;
    const head = at + wqeUnitBytes;
    const headers = head + lsoHeader.sizeBytes;
    const segmentBytes = lso.mss.get(view, head);
    const headerBytes = lso.headerBytes.get(view, head);
    const headersEnd = headers - at + headerBytes;
    const isLong = control.longLsoHeader.get(view, at) === 1;
    if (segmentBytes === 0 || headersEnd > sizeBytes || (headersEnd > LINE_BYTES && !isLong))
      return LOCAL_QP_OP_ERR;
    if (segmentPlacesOf(bytes, headers, headerBytes) === undefined) return LOCAL_QP_OP_ERR;
    const first = Math.ceil(headersEnd / wqeUnitBytes) * wqeUnitBytes;
    const syndrome = loadData(view, bytes, at, first, sizeBytes, request);
    if (syndrome !== 0) return syndrome;
    const { inlineData, number } = request;
    if (request.isInline === 1) inlineData.copyWithin(headerBytes, 0, request.messageBytes);
    inlineData.set(bytes.subarray(headers, headers + headerBytes));
    this.#offloads.segmentBytes[number] = segmentBytes;
    this.#offloads.headerBytes[number] = headerBytes;
    return isTooLong(ethernet, request, segmentBytes, headerBytes) ? LOCAL_LENGTH_ERR : 0;
  }
}

/** More than may be segmented, or frames longer than the port sends. */
function isTooLong(
  { port, side }: EthernetAttachment,
  { messageBytes }: SendRecord,
  segmentBytes: number,
  headerBytes: number,
): boolean {
  const longestBytes = headerBytes + Math.min(segmentBytes, messageBytes);
  return messageBytes > side.lsoBytesMax || longestBytes > port.frameBytesMax;
}
