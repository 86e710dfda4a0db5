/**
 * Decodes the WQEs of operations on memory keys: fast register, local invalidate, bind window. Works on bytes only, as
 * wqe-decoder.ts does; the key unit checks the keys. Source: interface sheet 6.3.
 */
import {
  bindSegment,
  CqeSyndrome,
  fastRegisterSegment,
  localInvalidateSegment,
  WqeOpcode,
  wqeUnitBytes,
} from '../../../abi/index.ts';
import { addressAt, addressTopAt } from '../../../base/index.ts';
import {
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
} from '../memory/index.ts';
import type { KeyRequest, SendRecord } from '../objects/index.ts';

const { LOCAL_QP_OP_ERR } = CqeSyndrome;

/**
 * Fills `request` from the segment after the control segment of the WQE at `at`.
 * @returns 0, or the CQE syndrome of a WQE that is too short
 */
export function decodeKeyOperation(
  view: DataView,
  at: number,
  sizeBytes: number,
  request: SendRecord,
): number {
  const { opcode, keyRequest } = request;
  const segment = at + wqeUnitBytes;
  const rest = sizeBytes - wqeUnitBytes;
  if (opcode === WqeOpcode.LOCAL_INVAL) {
    if (rest < localInvalidateSegment.sizeBytes) return LOCAL_QP_OP_ERR;
    keyRequest.key = localInvalidateSegment.fields.key.get(view, segment);
    return 0;
  }
  if (opcode === WqeOpcode.FMR) {
    if (rest < fastRegisterSegment.sizeBytes) return LOCAL_QP_OP_ERR;
    decodeFastRegister(view, segment, keyRequest);
    return 0;
  }
  if (rest < bindSegment.sizeBytes) return LOCAL_QP_OP_ERR;
  decodeBind(view, segment, keyRequest);
  return 0;
}

const register = fastRegisterSegment.fields;

function decodeFastRegister(view: DataView, at: number, request: KeyRequest): void {
  request.key = register.key.get(view, at);
  request.address = addressAt(view, at + register.startAddress.wordOffset);
  request.addressTop = addressTopAt(view, at + register.startAddress.wordOffset);
  request.lengthBytes = register.lengthBytes.getNumber(view, at);
  request.listAddress = register.pageListAddress.getNumber(view, at);
  request.logPageBytes = register.logPageSize.get(view, at);
  request.firstByteOffset = register.firstByteOffset.get(view, at);
  request.rights =
    register.localReadEnabled.get(view, at) * RIGHT_LOCAL_READ +
    register.localWriteEnabled.get(view, at) * RIGHT_LOCAL_WRITE +
    register.remoteReadEnabled.get(view, at) * RIGHT_REMOTE_READ +
    register.remoteWriteEnabled.get(view, at) * RIGHT_REMOTE_WRITE +
    register.atomicEnabled.get(view, at) * RIGHT_REMOTE_ATOMIC;
}

const bind = bindSegment.fields;

function decodeBind(view: DataView, at: number, request: KeyRequest): void {
  request.key = bind.newRkey.get(view, at);
  request.regionKey = bind.lkey.get(view, at);
  request.address = addressAt(view, at + bind.address.wordOffset);
  request.addressTop = addressTopAt(view, at + bind.address.wordOffset);
  request.lengthBytes = bind.lengthBytes.getNumber(view, at);
  request.isType2 = bind.isType2.get(view, at) === 1;
  request.isZeroBased = bind.zeroBased.get(view, at) === 1;
  request.rights =
    bind.remoteReadEnabled.get(view, at) * RIGHT_REMOTE_READ +
    bind.remoteWriteEnabled.get(view, at) * RIGHT_REMOTE_WRITE +
    bind.atomicEnabled.get(view, at) * RIGHT_REMOTE_ATOMIC;
}
