/** Send and receive work requests of the tests, and their bytes. */
import {
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSge,
} from '../../userlib/index.ts';
import type { Area, Pair } from './side.ts';

/** Part of an area as a buffer of a request. */
export const segment = (area: Area, offset: number, length: number, lkey = area.mr.lkey): IbvSge => ({
  addr: area.address + offset,
  length,
  lkey,
});

export const sendOf = (sgList: IbvSge[], more: Partial<IbvSendWr> = {}): IbvSendWr => ({
  wrId: 1,
  sgList,
  numSge: sgList.length,
  opcode: IBV_WR_SEND,
  sendFlags: IBV_SEND_SIGNALED,
  ...more,
});

interface Target {
  readonly address: number;
  readonly rkey: number;
}

export const writeOf = (sgList: IbvSge[], to: Target, more: Partial<IbvSendWr> = {}): IbvSendWr =>
  sendOf(sgList, {
    opcode: IBV_WR_RDMA_WRITE,
    wr: { rdma: { remoteAddr: to.address, rkey: to.rkey } },
    ...more,
  });

export const readOf = (sgList: IbvSge[], from: Target, more: Partial<IbvSendWr> = {}): IbvSendWr =>
  writeOf(sgList, from, { opcode: IBV_WR_RDMA_READ, ...more });

export const fetchAddOf = (
  result: IbvSge,
  at: Target,
  add: bigint,
  more: Partial<IbvSendWr> = {},
): IbvSendWr =>
  sendOf([result], {
    opcode: IBV_WR_ATOMIC_FETCH_AND_ADD,
    wr: { atomic: { remoteAddr: at.address, rkey: at.rkey, compareAdd: add, swap: 0n } },
    ...more,
  });

export const compareSwapOf = (
  result: IbvSge,
  at: Target,
  compare: bigint,
  swap: bigint,
  more: Partial<IbvSendWr> = {},
): IbvSendWr =>
  sendOf([result], {
    opcode: IBV_WR_ATOMIC_CMP_AND_SWP,
    wr: { atomic: { remoteAddr: at.address, rkey: at.rkey, compareAdd: compare, swap } },
    ...more,
  });

export const receiveOf = (sgList: IbvSge[], wrId = 1): IbvRecvWr => ({
  wrId,
  sgList,
  numSge: sgList.length,
});

/** An offset in the peer's buffer of a pair. */
export const remoteAt = ({ remote }: Pair, offset: number): Target => ({
  address: remote.address + offset,
  rkey: remote.rkey,
});

/** Bytes that no other seed, and no shift of this one, would produce. */
export function patternOf(seed: number, lengthBytes: number): Uint8Array {
  const bytes = new Uint8Array(lengthBytes);
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0 || 1;
  for (let index = 0; index < lengthBytes; index++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[index] = state & 0xff;
  }
  return bytes;
}

/** FNV-1a of bytes: their summary in a result. */
export function digestOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

export const areEqual = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index]);
