/** Messages of RDMAP with fields of their own, as fields: READ and atomic requests, atomic responses. Each fits into one DDP segment. */
import { addressAt, addressTopAt, putAddress, type Wide } from '../../base/index.ts';
import { atomicRequest, atomicResponse, readRequest } from './formats.ts';

/** Fields of a READ request; one object is reused. Offsets are pairs, as base/address.ts explains. */
export class ReadRequest {
  sinkTag = 0;
  sinkOffset: Wide = 0;
  sinkOffsetTop = 0;
  lengthBytes = 0;
  sourceTag = 0;
  sourceOffset: Wide = 0;
  sourceOffsetTop = 0;
}

export function writeReadRequest(view: DataView, at: number, request: ReadRequest): void {
  const { sinkTag, sinkOffset, lengthBytes, sourceTag, sourceOffset } = readRequest.fields;
  sinkTag.set(view, at, request.sinkTag);
  putAddress(view, at + sinkOffset.wordOffset, request.sinkOffset, request.sinkOffsetTop);
  lengthBytes.set(view, at, request.lengthBytes);
  sourceTag.set(view, at, request.sourceTag);
  putAddress(view, at + sourceOffset.wordOffset, request.sourceOffset, request.sourceOffsetTop);
}

export function parseReadRequest(view: DataView, at: number, into: ReadRequest): void {
  const { sinkTag, sinkOffset, lengthBytes, sourceTag, sourceOffset } = readRequest.fields;
  into.sinkTag = sinkTag.get(view, at);
  into.sinkOffset = addressAt(view, at + sinkOffset.wordOffset);
  into.sinkOffsetTop = addressTopAt(view, at + sinkOffset.wordOffset);
  into.lengthBytes = lengthBytes.get(view, at);
  into.sourceTag = sourceTag.get(view, at);
  into.sourceOffset = addressAt(view, at + sourceOffset.wordOffset);
  into.sourceOffsetTop = addressTopAt(view, at + sourceOffset.wordOffset);
}

/** A value of 64 bits as its two words: all bits of an operand count. */
export class Operand {
  high = 0;
  low = 0;
}

/** Fields of an atomic request (RFC 7306, 5.2.1); one object is reused. */
export class AtomicRequest {
  operation = 0;
  requestId = 0;
  steeringTag = 0;
  offset: Wide = 0;
  offsetTop = 0;
  readonly data = new Operand();
  readonly dataMask = new Operand();
  readonly compareData = new Operand();
  readonly compareMask = new Operand();
}

export const putOperand = (view: DataView, at: number, { high, low }: Operand): void => {
  view.setUint32(at, high);
  view.setUint32(at + 4, low);
};

export function readOperand(view: DataView, at: number, into: Operand): void {
  into.high = view.getUint32(at);
  into.low = view.getUint32(at + 4);
}

export function writeAtomicRequest(view: DataView, at: number, request: AtomicRequest): void {
  const { fields } = atomicRequest;
  view.setUint32(at, 0);
  fields.operation.set(view, at, request.operation);
  fields.requestId.set(view, at, request.requestId);
  fields.steeringTag.set(view, at, request.steeringTag);
  putAddress(view, at + fields.offset.wordOffset, request.offset, request.offsetTop);
  putOperand(view, at + fields.data.wordOffset, request.data);
  putOperand(view, at + fields.dataMask.wordOffset, request.dataMask);
  putOperand(view, at + fields.compareData.wordOffset, request.compareData);
  putOperand(view, at + fields.compareMask.wordOffset, request.compareMask);
}

export function parseAtomicRequest(view: DataView, at: number, into: AtomicRequest): void {
  const { fields } = atomicRequest;
  into.operation = fields.operation.get(view, at);
  into.requestId = fields.requestId.get(view, at);
  into.steeringTag = fields.steeringTag.get(view, at);
  into.offset = addressAt(view, at + fields.offset.wordOffset);
  into.offsetTop = addressTopAt(view, at + fields.offset.wordOffset);
  readOperand(view, at + fields.data.wordOffset, into.data);
  readOperand(view, at + fields.dataMask.wordOffset, into.dataMask);
  readOperand(view, at + fields.compareData.wordOffset, into.compareData);
  readOperand(view, at + fields.compareMask.wordOffset, into.compareMask);
}

export function copyAtomicRequest(from: AtomicRequest, to: AtomicRequest): void {
  to.operation = from.operation;
  to.requestId = from.requestId;
  to.steeringTag = from.steeringTag;
  to.offset = from.offset;
  to.offsetTop = from.offsetTop;
  copyOperand(from.data, to.data);
  copyOperand(from.dataMask, to.dataMask);
  copyOperand(from.compareData, to.compareData);
  copyOperand(from.compareMask, to.compareMask);
}

export function copyOperand({ low, high }: Operand, to: Operand): void {
  to.low = low;
  to.high = high;
}

/** Fields of an atomic response (RFC 7306, 5.2.2). */
export class AtomicResponse {
  requestId = 0;
  readonly original = new Operand();
}

export function writeAtomicResponse(view: DataView, at: number, response: AtomicResponse): void {
  const { fields } = atomicResponse;
  fields.requestId.set(view, at, response.requestId);
  putOperand(view, at + fields.originalData.wordOffset, response.original);
}

export function parseAtomicResponse(view: DataView, at: number, into: AtomicResponse): void {
  const { fields } = atomicResponse;
  into.requestId = fields.requestId.get(view, at);
  readOperand(view, at + fields.originalData.wordOffset, into.original);
}
