/**
 * The verbs of stories: their names, the opcodes of their completions, their needs, and their packets. Source:
 * InfiniBand Architecture Specification 1.3, volume 1, 9.4, 10.8 and 11.4; ibv_post_send(3).
 */
import * as ibv from '../userlib/index.ts';

interface Verb {
  readonly name: string;
  /** The verb's row in reports. */
  readonly operation: string;
  /** Opcode of its completion. */
  readonly completion: number;
  /** Right that it needs at the peer's QP and region; 0 of messages and of local requests. */
  readonly right: number;
  /** Words in the opcodes of its packets; acknowledgements apart. */
  readonly packets: readonly string[];
}

const verb = (
  name: string,
  operation: string,
  completion: number,
  right: number,
  ...packets: readonly string[]
): Verb => ({ name, operation, completion, right, packets });

const [write, atomic] = [ibv.IBV_ACCESS_REMOTE_WRITE, ibv.IBV_ACCESS_REMOTE_ATOMIC];
const answer = 'ATOMIC_ACKNOWLEDGE';

/** Verbs by opcode, IBV_WR_…. */
export const verbs: ReadonlyMap<number, Verb> = new Map([
  [ibv.IBV_WR_SEND, verb('SEND', 'SEND', ibv.IBV_WC_SEND, 0, 'SEND')],
  [ibv.IBV_WR_SEND_WITH_IMM, verb('SEND with immediate', 'SEND_IMM', ibv.IBV_WC_SEND, 0, 'SEND')],
  [ibv.IBV_WR_SEND_WITH_INV, verb('SEND with invalidate', 'SEND_INV', ibv.IBV_WC_SEND, 0, 'SEND')],
  [ibv.IBV_WR_RDMA_WRITE, verb('WRITE', 'WRITE', ibv.IBV_WC_RDMA_WRITE, write, 'RDMA_WRITE')],
  [
    ibv.IBV_WR_RDMA_WRITE_WITH_IMM,
    verb('WRITE with immediate', 'WRITE_IMM', ibv.IBV_WC_RDMA_WRITE, write, 'RDMA_WRITE'),
  ],
  [ibv.IBV_WR_RDMA_READ, verb('READ', 'READ', ibv.IBV_WC_RDMA_READ, ibv.IBV_ACCESS_REMOTE_READ, 'RDMA_READ')],
  [
    ibv.IBV_WR_ATOMIC_CMP_AND_SWP,
    verb('CMP_SWAP', 'CMP_SWAP', ibv.IBV_WC_COMP_SWAP, atomic, 'COMPARE_SWAP', answer),
  ],
  [
    ibv.IBV_WR_ATOMIC_FETCH_AND_ADD,
    verb('FETCH_ADD', 'FETCH_ADD', ibv.IBV_WC_FETCH_ADD, atomic, 'FETCH_ADD', answer),
  ],
  [ibv.IBV_WR_BIND_MW, verb('BIND_MW', 'BIND_MW', ibv.IBV_WC_BIND_MW, 0)],
  [ibv.IBV_WR_LOCAL_INV, verb('LOCAL_INV', 'LOCAL_INV', ibv.IBV_WC_LOCAL_INV, 0)],
]);

export const verbNameOf = (opcode: number): string => verbs.get(opcode)?.name ?? `opcode ${opcode}`;

export const isAtomicVerb = (opcode: number): boolean => verbs.get(opcode)?.right === atomic;

/** Whether a request's data are written on its own side. */
export const isFetching = (opcode: number): boolean =>
  opcode === ibv.IBV_WR_RDMA_READ || isAtomicVerb(opcode);

export const hasImmediate = (opcode: number): boolean =>
  opcode === ibv.IBV_WR_SEND_WITH_IMM || opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM;

/** Requests that end on their own side: nothing of them crosses the cable. */
export const isLocal = (opcode: number): boolean =>
  opcode === ibv.IBV_WR_BIND_MW || opcode === ibv.IBV_WR_LOCAL_INV;

/** Whether a request consumes a receive at the other end. */
export const consumesReceive = (opcode: number): boolean =>
  verbs.get(opcode)?.completion === ibv.IBV_WC_SEND || opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM;

/** Opcode of the completion of the receive that a request takes. */
export const receiveOpcodeOf = (opcode: number): number =>
  opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM ? ibv.IBV_WC_RECV_RDMA_WITH_IMM : ibv.IBV_WC_RECV;

/** Bytes of a global route in front of each received datagram (IBTA 11.6.2.1). */
export const grhBytes = 40;
