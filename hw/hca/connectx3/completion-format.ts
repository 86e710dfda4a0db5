/** CQEs of the ConnectX-3, of 32 bytes, and the doorbell records of its CQs (interface sheet 6.6 to 6.8). */
import {
  CqeOpcode,
  cqe,
  cqeBytes,
  cqeOwnerOffset,
  cqRecord,
  errorCqe,
  ethernetCqe,
  roceUdCqe,
  timestampCqe,
  vendorSyndromeOf,
} from '../../../abi/index.ts';
import type { PostedCompletion } from '../completion/index.ts';
import type { CompletionFormat } from '../host-interface/index.ts';
import { type QueuePair, XRC_SERVICE } from '../objects/index.ts';

const RECORD_BYTES = 8;
const ownerShift = cqe.fields.owner.shift;
const isSendBit = 1 << cqe.fields.isSend.shift;
const inlineShift = cqe.fields.inlineScatter.shift;

export const completionFormat: CompletionFormat = {
  entryBytes: cqeBytes,
  recordBytes: RECORD_BYTES,
  consumerAt: (view, at) => cqRecord.fields.consumerCounter.get(view, at),
  encode: (view, offset, completion, pass, pair, clockCycles) => {
    const isError = completion.syndrome !== 0;
    const opcode = isError ? CqeOpcode.ERROR : completion.opcode;
    const inlineBit = isError ? 0 : completion.isInlined << inlineShift;
    const ownership = (pass << ownerShift) | (completion.isSend ? isSendBit : 0) | inlineBit | opcode;
    view.setUint8(offset + cqeOwnerOffset, ownership);
    if (isError) return fillError(view, completion, offset, pair);
    fill(view, completion, offset);
    // The low 48 bits of the clock occupy fields that such a CQE lacks.
    if (clockCycles !== -1) timestampCqe.fields.timestamp.set(view, offset, clockCycles);
  },
  encodeResize: (view, offset, pass) => {
    cqe.fields.opcode.set(view, offset, CqeOpcode.RESIZE);
    cqe.fields.owner.set(view, offset, pass);
  },
};

function fill(view: DataView, completion: PostedCompletion, offset: number): void {
  const f = cqe.fields;
  f.qpn.set(view, offset, completion.qpn);
  f.immediate.set(view, offset, completion.immediate);
  f.sourceLid.set(view, offset, completion.sourceLid);
  f.byteCount.set(view, offset, completion.byteCount);
  f.wqeCounter.set(view, offset, completion.wqeCounter);
  if ((completion.source | completion.tag | completion.ipStatus) === 0) return;
  if (completion.isRoce === 1) return fillRoce(view, completion, offset);
  if (completion.ipStatus !== 0) fillChecksum(view, completion, offset);
  if (completion.tag !== 0) return fillTag(view, completion, offset);
  view.setInt32(offset + f.sourceQpn.wordOffset, completion.source);
  f.serviceLevel.set(view, offset, completion.serviceLevel);
}

function fillTag(view: DataView, { tag }: PostedCompletion, offset: number): void {
  const { cVlanPresent, vlanPriority } = ethernetCqe.fields;
  cVlanPresent.set(view, offset, 1);
  view.setUint16(offset + vlanPriority.wordOffset, tag & 0xffff);
}

function fillChecksum(view: DataView, completion: PostedCompletion, offset: number): void {
  const { ipStatus, checksum } = ethernetCqe.fields;
  ipStatus.set(view, offset, completion.ipStatus);
  checksum.set(view, offset, completion.checksum);
}

function fillRoce(view: DataView, completion: PostedCompletion, offset: number): void {
  const { sourceQpn, sourceMac } = roceUdCqe.fields;
  view.setInt32(offset + sourceQpn.wordOffset, completion.source);
  const mac = offset + sourceMac.field.offset;
  view.setUint16(mac, completion.sourceMacHigh);
  view.setUint32(mac + 2, completion.sourceMacLow);
  if (completion.tag !== 0) fillTag(view, completion, offset);
}

function fillError(view: DataView, completion: PostedCompletion, offset: number, pair: QueuePair): void {
  const f = errorCqe.fields;
  f.qpn.set(view, offset, completion.qpn);
  f.wqeCounter.set(view, offset, completion.wqeCounter);
  f.syndrome.set(view, offset, completion.syndrome);
  const vendor = vendorSyndromeOf(completion.syndrome, completion.isSend, pair.lastRefusal);
  f.vendorSyndrome.set(view, offset, vendor);
  if (pair.serviceBits === XRC_SERVICE) f.srqn.set(view, offset, completion.source);
}
