/**
 * The verbs of stories: what each is called, what its completions say, what it needs, and what it sends. Source: InfiniBand
 * Architecture Specification 1.3, volume 1, 9.4, 10.8 and 11.4; ibv_post_send(3).
 */
import {
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_WC_BIND_MW,
  IBV_WC_COMP_SWAP,
  IBV_WC_FETCH_ADD,
  IBV_WC_LOCAL_INV,
  IBV_WC_RDMA_READ,
  IBV_WC_RDMA_WRITE,
  IBV_WC_RECV,
  IBV_WC_RECV_RDMA_WITH_IMM,
  IBV_WC_SEND,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_SEND_WITH_INV,
} from '../userlib/index.ts';

interface Verb {
  readonly name: string;
  /** Its row in reports. */
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

const [write, atomic] = [IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC];
const answer = 'ATOMIC_ACKNOWLEDGE';

/** By opcode, IBV_WR_…. */
export const verbs: ReadonlyMap<number, Verb> = new Map([
  [IBV_WR_SEND, verb('SEND', 'SEND', IBV_WC_SEND, 0, 'SEND')],
  [IBV_WR_SEND_WITH_IMM, verb('SEND with immediate', 'SEND_IMM', IBV_WC_SEND, 0, 'SEND')],
  [IBV_WR_SEND_WITH_INV, verb('SEND with invalidate', 'SEND_INV', IBV_WC_SEND, 0, 'SEND')],
  [IBV_WR_RDMA_WRITE, verb('WRITE', 'WRITE', IBV_WC_RDMA_WRITE, write, 'RDMA_WRITE')],
  [
    IBV_WR_RDMA_WRITE_WITH_IMM,
    verb('WRITE with immediate', 'WRITE_IMM', IBV_WC_RDMA_WRITE, write, 'RDMA_WRITE'),
  ],
  [IBV_WR_RDMA_READ, verb('READ', 'READ', IBV_WC_RDMA_READ, IBV_ACCESS_REMOTE_READ, 'RDMA_READ')],
  [IBV_WR_ATOMIC_CMP_AND_SWP, verb('CMP_SWAP', 'CMP_SWAP', IBV_WC_COMP_SWAP, atomic, 'COMPARE_SWAP', answer)],
  [
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    verb('FETCH_ADD', 'FETCH_ADD', IBV_WC_FETCH_ADD, atomic, 'FETCH_ADD', answer),
  ],
  [IBV_WR_BIND_MW, verb('BIND_MW', 'BIND_MW', IBV_WC_BIND_MW, 0)],
  [IBV_WR_LOCAL_INV, verb('LOCAL_INV', 'LOCAL_INV', IBV_WC_LOCAL_INV, 0)],
]);

export const verbNameOf = (opcode: number): string => verbs.get(opcode)?.name ?? `opcode ${opcode}`;

export const isAtomicVerb = (opcode: number): boolean => verbs.get(opcode)?.right === atomic;

/** Whether what a request brings is written on its own side. */
export const isFetching = (opcode: number): boolean => opcode === IBV_WR_RDMA_READ || isAtomicVerb(opcode);

export const hasImmediate = (opcode: number): boolean =>
  opcode === IBV_WR_SEND_WITH_IMM || opcode === IBV_WR_RDMA_WRITE_WITH_IMM;

/** Requests that end on their own side: nothing of them crosses the cable. */
export const isLocal = (opcode: number): boolean => opcode === IBV_WR_BIND_MW || opcode === IBV_WR_LOCAL_INV;

/** Whether a request takes a receive at the other end. */
export const consumesReceive = (opcode: number): boolean =>
  verbs.get(opcode)?.completion === IBV_WC_SEND || opcode === IBV_WR_RDMA_WRITE_WITH_IMM;

/** Opcode of the completion of the receive that a request takes. */
export const receiveOpcodeOf = (opcode: number): number =>
  opcode === IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;

/** Bytes of a global route in front of each received datagram (IBTA 11.6.2.1). */
export const grhBytes = 40;
