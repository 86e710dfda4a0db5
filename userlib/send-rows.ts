/**
 * How the library turns work requests into WQEs: a row for each opcode that the service of a QP carries.
 *
 *   reliable: sends, writes, reads, atomics     unreliable: no reads, no atomics     datagrams: sends
 */
import { atomicSegment, controlSegment, datagramSegment, remoteAddressSegment } from '../abi/wqe.ts';
import { WqeOpcode } from '../abi/wqe-opcodes.ts';
import { QpTypeVerb } from '../driver/uapi.ts';
import { WrOpcode } from './constants.ts';

export interface SendRow {
  /** That of the WQE. */
  readonly opcode: number;
  readonly isDatagram: boolean;
  readonly hasRemoteAddress: boolean;
  readonly isAtomic: boolean;
  readonly hasImmediate: boolean;
  /** A lone one goes through BlueFlame even when its data are not inline, as libmlx4 does with reads. */
  readonly isShort: boolean;
  /** Bytes of the WQE in front of its data. */
  readonly dataOffset: number;
}

/** By work request opcode; undefined: EINVAL. */
export type SendRows = readonly (SendRow | undefined)[];

type Kind = 'send' | 'write' | 'read' | 'atomic';

const opcodes: readonly (readonly [WrOpcode, WqeOpcode, Kind, boolean])[] = [
  [WrOpcode.IBV_WR_RDMA_WRITE, WqeOpcode.RDMA_WRITE, 'write', false],
  [WrOpcode.IBV_WR_RDMA_WRITE_WITH_IMM, WqeOpcode.RDMA_WRITE_IMM, 'write', true],
  [WrOpcode.IBV_WR_SEND, WqeOpcode.SEND, 'send', false],
  [WrOpcode.IBV_WR_SEND_WITH_IMM, WqeOpcode.SEND_IMM, 'send', true],
  [WrOpcode.IBV_WR_RDMA_READ, WqeOpcode.RDMA_READ, 'read', false],
  [WrOpcode.IBV_WR_ATOMIC_CMP_AND_SWP, WqeOpcode.ATOMIC_CS, 'atomic', false],
  [WrOpcode.IBV_WR_ATOMIC_FETCH_AND_ADD, WqeOpcode.ATOMIC_FA, 'atomic', false],
];

const kindsOf = (type: QpTypeVerb): readonly Kind[] => {
  if (type === QpTypeVerb.IBV_QPT_RC) return ['send', 'write', 'read', 'atomic'];
  return type === QpTypeVerb.IBV_QPT_UD ? ['send'] : ['send', 'write'];
};

const rowsByType = new Map<QpTypeVerb, SendRows>();

/** The rows of QPs of a type, which all of them share. */
export function sendRowsOf(type: QpTypeVerb): SendRows {
  let rows = rowsByType.get(type);
  if (rows === undefined) {
    rows = makeRows(type);
    rowsByType.set(type, rows);
  }
  return rows;
}

function makeRows(type: QpTypeVerb): SendRows {
  const rows: (SendRow | undefined)[] = Array.from({ length: WrOpcode.IBV_WR_ATOMIC_FETCH_AND_ADD + 1 });
  const isDatagram = type === QpTypeVerb.IBV_QPT_UD;
  for (const [request, opcode, kind, hasImmediate] of opcodes) {
    if (!kindsOf(type).includes(kind)) continue;
    const hasRemoteAddress = kind !== 'send';
    const isAtomic = kind === 'atomic';
    let dataOffset = controlSegment.sizeBytes;
    if (isDatagram) dataOffset += datagramSegment.sizeBytes;
    if (hasRemoteAddress) dataOffset += remoteAddressSegment.sizeBytes;
    if (isAtomic) dataOffset += atomicSegment.sizeBytes;
    const isShort = kind === 'read';
    rows[request] = { opcode, isDatagram, hasRemoteAddress, isAtomic, hasImmediate, isShort, dataOffset };
  }
  return rows;
}
