/**
 * Turns the send WQE of an Ethernet ring into a record: its data is one frame, without FCS. It may take several blocks of the ring,
 * so of the line of the WQE cache that holds it, too, whose end is followed by its begin.
 *
 *     control | data pointers, or inline data
 *
 * Segmentation (LSO) is not offered. Sources: interface sheet 6.1, 6.3, 6.4; IEEE 802.1Q-2018, 9.5 (ethertypes).
 */
import {
  CqeSyndrome,
  ethernetControlSegment,
  WqeOpcode,
  wqeUnitBytes,
  wqeUnitsMax,
} from '../../../abi/index.ts';
import { ETHERNET_HEADER_BYTES } from '../../../wire/index.ts';
import type { HcaCore } from '../core.ts';
import { type FrameOffloads, type SendRecord, WQE_LINE_BYTES, type WqeLine } from '../objects/index.ts';
import { decodeControl, loadData } from './wqe-decoder.ts';

const control = ethernetControlSegment.fields;
const TYPE_C_VLAN = 0x8100;
const TYPE_S_VLAN = 0x88a8;
const NO_TAG = -1;

export class FrameDecoder {
  readonly #core: HcaCore;
  readonly #offloads: FrameOffloads;
  /** A WQE that goes on at the begin of its line, in one piece. */
  readonly #whole = new Uint8Array((wqeUnitsMax + 1) * wqeUnitBytes);
  readonly #wholeView = new DataView(this.#whole.buffer);

  constructor(core: HcaCore) {
    this.#core = core;
    this.#offloads = core.records.frames;
  }

  /** Fills `request` from the WQE at `at`, in `line`. @returns 0, or a CQE syndrome */
  decode(at: number, line: WqeLine, request: SendRecord): number {
    const { sram, sramView } = this.#core;
    const sizeBytes = control.ds.get(sramView, at) * wqeUnitBytes;
    const lineEnd = line.sramOffset + WQE_LINE_BYTES;
    if (at + sizeBytes <= lineEnd) return this.#decode(sram, sramView, at, request);
    const first = sram.subarray(at, lineEnd);
    this.#whole.set(first);
    this.#whole.set(sram.subarray(line.sramOffset, line.sramOffset + sizeBytes - first.length), first.length);
    return this.#decode(this.#whole, this.#wholeView, 0, request);
  }

  #decode(bytes: Uint8Array, view: DataView, at: number, request: SendRecord): number {
    const sizeBytes = decodeControl(view, at, request);
    if (request.opcode === WqeOpcode.NOP) return 0;
    if (request.opcode !== WqeOpcode.SEND) return CqeSyndrome.LOCAL_QP_OP_ERR;
    const { number } = request;
    const { tag, tagType, hasIpChecksum, hasL4Checksum } = this.#offloads;
    const isCustomer = control.insertCVlan.get(view, at) === 1;
    const isTagged = isCustomer || control.insertSVlan.get(view, at) === 1;
    tag[number] = isTagged ? control.vlanTag.get(view, at) : NO_TAG;
    tagType[number] = isCustomer ? TYPE_C_VLAN : TYPE_S_VLAN;
    hasIpChecksum[number] = control.ipChecksum.get(view, at);
    hasL4Checksum[number] = control.tcpUdpChecksum.get(view, at);
    const syndrome = loadData(view, bytes, at, wqeUnitBytes, sizeBytes, request);
    if (syndrome !== 0) return syndrome;
    return request.messageBytes < ETHERNET_HEADER_BYTES ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
  }
}
