/**
 * Turns work requests into WQEs: a row for each opcode that the service of a QP carries.
 *
 *   reliable: sends, writes, reads, atomics (masked ones by RC alone), work on keys     unreliable: sends, writes     datagrams: sends
 */
import {
  atomicSegment,
  bindSegment,
  controlSegment,
  datagramSegment,
  localInvalidateSegment,
  maskedCompareSwapSegment,
  remoteAddressSegment,
  WqeOpcode,
} from '../abi/index.ts';
import { QpTypeVerb } from '../driver/index.ts';
import { WrOpcode } from './constants.ts';

export interface SendRow {
  /** Opcode of the WQE. */
  readonly opcode: number;
  readonly isDatagram: boolean;
  readonly hasRemoteAddress: boolean;
  readonly isAtomic: boolean;
  readonly isMasked: boolean;
  readonly hasImmediate: boolean;
  /** It names an SRQ of the peer (XRC). */
  readonly hasRemoteSrqn: boolean;
  /** A SEND that names a key to invalidate at the peer. */
  readonly hasInvalidateKey: boolean;
  /** Local invalidate or bind: no data. */
  readonly isKeyOperation: boolean;
  /** A single request uses BlueFlame even if its data are not inline, as libmlx4 does with reads. */
  readonly isShort: boolean;
  /** Bytes of the WQE before its data. */
  readonly dataOffset: number;
}

/** Rows by work request opcode; undefined: EINVAL. */
export type SendRows = readonly (SendRow | undefined)[];

type Kind = 'send' | 'sendInvalidate' | 'write' | 'read' | 'atomic' | 'masked' | 'invalidate' | 'bind';

const opcodes: readonly (readonly [WrOpcode, WqeOpcode, Kind, boolean])[] = [
  [WrOpcode.IBV_WR_RDMA_WRITE, WqeOpcode.RDMA_WRITE, 'write', false],
  [WrOpcode.IBV_WR_RDMA_WRITE_WITH_IMM, WqeOpcode.RDMA_WRITE_IMM, 'write', true],
  [WrOpcode.IBV_WR_SEND, WqeOpcode.SEND, 'send', false],
  [WrOpcode.IBV_WR_SEND_WITH_IMM, WqeOpcode.SEND_IMM, 'send', true],
  [WrOpcode.IBV_WR_RDMA_READ, WqeOpcode.RDMA_READ, 'read', false],
  [WrOpcode.IBV_WR_ATOMIC_CMP_AND_SWP, WqeOpcode.ATOMIC_CS, 'atomic', false],
  [WrOpcode.IBV_WR_ATOMIC_FETCH_AND_ADD, WqeOpcode.ATOMIC_FA, 'atomic', false],
  [WrOpcode.IBV_WR_MASKED_ATOMIC_CMP_AND_SWP, WqeOpcode.MASKED_ATOMIC_CS, 'masked', false],
  [WrOpcode.IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD, WqeOpcode.MASKED_ATOMIC_FA, 'masked', false],
  [WrOpcode.IBV_WR_LOCAL_INV, WqeOpcode.LOCAL_INVAL, 'invalidate', false],
  [WrOpcode.IBV_WR_BIND_MW, WqeOpcode.BIND_MW, 'bind', false],
  [WrOpcode.IBV_WR_SEND_WITH_INV, WqeOpcode.SEND_INVAL, 'sendInvalidate', false],
];

const kindsOf = (type: QpTypeVerb): readonly Kind[] => {
  const reliable = ['send', 'sendInvalidate', 'write', 'read', 'atomic', 'invalidate', 'bind'] as const;
  if (type === QpTypeVerb.IBV_QPT_RC) return [...reliable, 'masked'];
  if (type === QpTypeVerb.IBV_QPT_XRC_SEND) return reliable;
  return type === QpTypeVerb.IBV_QPT_UD ? ['send'] : ['send', 'write'];
};

const rowsByType = new Map<QpTypeVerb, SendRows>();

/** The rows of a QP type, shared by all QPs of that type. */
export function sendRowsOf(type: QpTypeVerb): SendRows {
  let rows = rowsByType.get(type);
  if (rows === undefined) {
    rows = makeRows(type);
    rowsByType.set(type, rows);
  }
  return rows;
}

function makeRows(type: QpTypeVerb): SendRows {
  const rows: (SendRow | undefined)[] = Array.from({ length: 1 + Math.max(...Object.values(WrOpcode)) });
  const isDatagram = type === QpTypeVerb.IBV_QPT_UD;
  for (const [request, opcode, kind, hasImmediate] of opcodes) {
    if (!kindsOf(type).includes(kind)) continue;
    const hasInvalidateKey = kind === 'sendInvalidate';
    const isKeyOperation = kind === 'invalidate' || kind === 'bind';
    const isMasked = kind === 'masked';
    const isAtomic = isMasked || kind === 'atomic';
    const hasRemoteAddress = kind === 'write' || kind === 'read' || isAtomic;
    let dataOffset = controlSegment.sizeBytes;
    if (isDatagram) dataOffset += datagramSegment.sizeBytes;
    if (hasRemoteAddress) dataOffset += remoteAddressSegment.sizeBytes;
    if (opcode === WqeOpcode.MASKED_ATOMIC_CS) dataOffset += maskedCompareSwapSegment.sizeBytes;
    else if (isAtomic) dataOffset += atomicSegment.sizeBytes;
    if (kind === 'invalidate') dataOffset += localInvalidateSegment.sizeBytes;
    if (kind === 'bind') dataOffset += bindSegment.sizeBytes;
    rows[request] = {
      opcode,
      isDatagram,
      hasRemoteAddress,
      isAtomic,
      isMasked,
      hasImmediate,
      hasRemoteSrqn: type === QpTypeVerb.IBV_QPT_XRC_SEND && !isKeyOperation,
      hasInvalidateKey,
      isKeyOperation,
      isShort: kind === 'read',
      dataOffset,
    };
  }
  return rows;
}
