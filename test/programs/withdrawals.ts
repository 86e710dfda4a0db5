/**
 * Takes memory from the device in the middle of traffic, by each call that does so, and reuses it at once: later reads of the
 * device must not reach the peer, and later writes would be visible.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  deregMr,
  destroyQp,
  IBV_MTU_4096,
  IBV_QP_STATE,
  IBV_QPS_RESET,
  modifyQp,
  postRecv,
  postSend,
} from '../../userlib/index.ts';
import { readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const messageBytes = 65_536;
const messages = 4;
const bufferBytes = messages * messageBytes;
/** Data that the program writes when it owns the memory again, and the earlier data: at the peer, and here. */
const later = 0x22;
const [before, peersBefore] = [0x11, 0x33];

const part = (pair: Pair, index: number) => segment(pair.buffer, index * messageBytes, messageBytes);
const remote = (pair: Pair, index: number) => remoteAt(pair, index * messageBytes);

/** The traffic that reaches host 0's memory, begun by one side. */
interface Traffic {
  readonly node: number;
  readonly post: (pair: Pair, index: number) => void;
  readonly hasReceives?: boolean;
}

const traffics: Readonly<Record<string, Traffic>> = {
  'gathers a WRITE': {
    node: 0,
    post: (pair, index) => postSend(pair.qp, writeOf([part(pair, index)], remote(pair, index))),
  },
  'answers a READ': {
    node: 1,
    post: (pair, index) => postSend(pair.qp, readOf([part(pair, index)], remote(pair, index))),
  },
  'places a WRITE': {
    node: 1,
    post: (pair, index) => postSend(pair.qp, writeOf([part(pair, index)], remote(pair, index))),
  },
  'places the answer of a READ': {
    node: 0,
    post: (pair, index) => postSend(pair.qp, readOf([part(pair, index)], remote(pair, index))),
  },
  'scatters a SEND': {
    node: 1,
    hasReceives: true,
    post: (pair, index) => postSend(pair.qp, sendOf([part(pair, index)])),
  },
};

const withdrawals: Readonly<Record<string, (pair: Pair) => Promise<unknown>>> = {
  deregMr: ({ buffer }) => deregMr(buffer.mr),
  destroyQp: ({ qp }) => destroyQp(qp),
  'modifyQp to RESET': ({ qp }) => modifyQp(qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE),
};

export interface WithdrawalArgs {
  readonly traffic: string;
  readonly by: string;
  /** Simulated time from the first post to the call. */
  readonly delayUs: number;
}

/** Forbidden bytes: on host 0 those that the device wrote later, on host 1 those that it read later. */
export async function withdraw(program: ProgramContext<WithdrawalArgs>): Promise<JsonValue> {
  const { traffic, by, delayUs } = program.args;
  const { node, post, hasReceives } = traffics[traffic]!;
  const side = await Side.open(program);
  const pair = await side.pair('withdrawal', { bufferBytes, timeoutCode: 14, mtu: IBV_MTU_4096 });
  side.write(pair.buffer, new Uint8Array(bufferBytes).fill(program.node === 0 ? before : peersBefore));
  if (hasReceives === true && program.node === 0)
    for (let index = 0; index < messages; index++) postRecv(pair.qp, receiveOf([part(pair, index)]));
  await side.barrier('filled');
  if (program.node === node) for (let index = 0; index < messages; index++) post(pair, index);
  if (program.node === 0) {
    await program.cpu.sleep(delayUs * 1e6);
    await withdrawals[by]!(pair);
    side.write(pair.buffer, new Uint8Array(bufferBytes).fill(later));
  }
  await program.cpu.sleep(5e9);
  await side.barrier('over');
  const isWrong = program.node === 0 ? (byte: number) => byte !== later : (byte: number) => byte === later;
  return side.read(pair.buffer, bufferBytes).filter(isWrong).length;
}
