/**
 * A catalogue of mistakes: programs of two hosts with one error each, and the cause that must be named with its
 * evidence in numbers. Numbers follow from the programs, never from a run. `// here` marks the line that a finding must
 * name.
 */

import type { FaultPlan } from '../../../machine/faults/index.ts';
import type { ProgramContext } from '../../../machine/index.ts';
import type { ParameterValues } from '../../../machine/profile/index.ts';
import {
  ackCqEvents,
  allocMw,
  allocPd,
  bindMw,
  createSrq,
  deregMr,
  destroyCq,
  destroyQp,
  getCqEvent,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_ON_DEMAND,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_MTU_256,
  IBV_MTU_1024,
  IBV_MTU_4096,
  IBV_MW_TYPE_1,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPS_RESET,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  type IbvAh,
  IbvWc,
  modifyQp,
  pollCq,
  postSend,
  regMr,
  reqNotifyCq,
} from '../../../userlib/index.ts';
import {
  type Address,
  allAccess,
  IBV_QPT_UC,
  IBV_QPT_UD,
  open,
  pathOf,
  type Side,
  type SideOptions,
} from './scene.ts';

export type Network = 'InfiniBand' | 'RoCE' | 'iWARP';

export interface Mistake {
  readonly name: string;
  readonly cause: string;
  /** Words that the sentence must contain. */
  readonly says: RegExp;
  readonly evidence?: Readonly<Record<string, number | string>>;
  /** The affected host; default 0. */
  readonly node?: number;
  readonly networks?: readonly Network[];
  readonly set?: ParameterValues;
  readonly faults?: FaultPlan;
  /** Whether to watch program accesses to device-owned buffers, as `hca why` does. */
  readonly watch?: 'races';
  /** Whether the cause only costs time or a message, and nothing fails. */
  readonly isNote?: boolean;
  readonly host0: (program: ProgramContext) => Promise<void>;
  readonly host1: (program: ProgramContext) => Promise<void>;
}

export type Act = (side: Side) => Promise<void> | void;

export const side =
  (act: Act, options: SideOptions = {}) =>
  async (program: ProgramContext): Promise<void> => {
    await act(await open(program, options));
  };

export const idle: Act = () => {};
/** Ends when host 0 sends the signal to end. */
export const waits: Act = (here) => here.awaitSignal();
export const receives =
  (count: number, bytes = 256) =>
  (here: Side): void => {
    here.receive({ bytes }, count);
  };

/** Sends, polls the completion, and signals the peer to end. */
export const sendAndTake: Act = async (here) => {
  here.send(); // here
  await here.take();
  await here.signal();
};

export const write =
  (request: Parameters<Side['send']>[0] = {}): Act =>
  async (here) => {
    here.send({ opcode: IBV_WR_RDMA_WRITE, ...request }); // here
    await here.take();
    await here.signal();
  };

export const ib: readonly Network[] = ['InfiniBand'];
export const roce: readonly Network[] = ['RoCE'];
/** A GID that no host has, in the form of both networks. */
export const strangeGid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0x99];

export const wellConnected = { inInit: receives(4) };

export function sendDatagram(
  here: Side,
  ah: IbvAh,
  { qpn = here.peer.qpn, qkey = 0x1111, bytes = 64, flags = IBV_SEND_SIGNALED } = {},
): number {
  return postSend(here.qp, {
    wrId: 3,
    sgList: [{ addr: here.buffer, length: bytes, lkey: here.mr.lkey }],
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: flags,
    wr: { ud: { ah, remoteQpn: qpn, remoteQkey: qkey } },
  });
}

export const ud = (options: SideOptions = {}): SideOptions => ({
  type: IBV_QPT_UD,
  inInit: receives(4),
  ...options,
});
export const uc = (options: SideOptions = {}): SideOptions => ({
  type: IBV_QPT_UC,
  inInit: receives(4),
  ...options,
});

/** Sends a datagram and polls its completion: the sender notices no error. */
export const datagram =
  (options: Parameters<typeof sendDatagram>[2] = {}, to: (peer: Address) => Address = (peer) => peer): Act =>
  async (here) => {
    const ah = await here.handle(to(here.peer));
    sendDatagram(here, ah, options); // here
    await here.take();
  };
/** Waits for a datagram or a message. */
export const expects: Act = async (here) => {
  await here.mustTake(here.recvCq);
};

/** Posts a WRITE and polls its completion, whatever its outcome. */
export const unheardWrite: Act = async (here) => {
  here.send({ opcode: IBV_WR_RDMA_WRITE });
  await here.mustTake();
  await here.signal();
};
/** Ends some time after the signal of host 0. */
export const later: Act = async (here) => {
  await here.awaitSignal();
  await here.program.cpu.sleep(1e8);
};

const connections: readonly Mistake[] = [
  {
    name: 'dest_qp_num is another number',
    cause: 'wrong-qpn',
    says: /sends to QP 0x3039, which host 1 does not have: its device dropped 2 packets \(packetUnknownQp\)/,
    evidence: { destQpn: 12345, packetUnknownQp: 2, timeouts: 2 },
    host0: side(sendAndTake, { rtr: () => ({ destQpNum: 12345 }) }),
    host1: side(waits, wellConnected),
  },
  {
    name: 'dest_qp_num is the own number plus one',
    cause: 'wrong-qpn',
    says: /does not have.*packetUnknownQp/,
    host0: side(write(), { rtr: (peer) => ({ destQpNum: peer.qpn + 1 }) }),
    host1: side(waits),
  },
  {
    name: 'the QPN was told wrong by the peer',
    cause: 'wrong-qpn',
    says: /sends to QP 0x777/,
    evidence: { destQpn: 0x777 },
    host0: side(write()),
    host1: side(waits, { announced: (own) => ({ ...own, qpn: 0x777 }) }),
  },
  {
    name: 'dlid is of nobody',
    cause: 'wrong-lid',
    says: /sends to LID 0x77, which no port has: the port at the other end has LID 0x2 and dropped 2 packets/,
    evidence: { lid: 0x77, portLid: 2, packetForeignLid: 2 },
    networks: ib,
    host0: side(sendAndTake, {
      rtr: (peer) => ({ ahAttr: { dlid: 0x77, isGlobal: 0, portNum: 1, srcPathBits: peer.lid & 0 } }),
    }),
    host1: side(waits, wellConnected),
  },
  {
    name: 'dlid is the own LID',
    cause: 'own-address',
    says: /sends to the address of its own port/,
    networks: ib,
    host0: side(write(), {
      rtr: (peer) => ({ destQpNum: peer.qpn + 7, ahAttr: { dlid: 1, isGlobal: 0, portNum: 1 } }),
    }),
    host1: side(waits),
  },
  {
    name: 'the peer answers to another LID',
    cause: 'answers-misrouted',
    says: /answers to LID 0x55, which is not the port of host 0/,
    networks: ib,
    host0: side(write()),
    host1: side(waits, { rtr: () => ({ ahAttr: { dlid: 0x55, isGlobal: 0, portNum: 1 } }) }),
  },
  {
    name: 'the peer is still in INIT',
    cause: 'peer-qp-state',
    says: /was in INIT.*receives nothing: its device dropped 2 packets/,
    evidence: { state: 'INIT', packetQpState: 2, timeouts: 2 },
    host0: side(sendAndTake),
    host1: side(waits, { stopsIn: 'INIT', inInit: receives(4) }),
  },
  {
    name: 'the peer never left RESET',
    cause: 'wrong-qpn',
    says: /which host 1 does not have/,
    host0: side(write()),
    host1: side(waits, { stopsIn: 'RESET' }),
  },
  {
    name: 'the peer put its QP into ERR',
    cause: 'peer-qp-error',
    says: /was in ERR since .*, where its program had put it/,
    evidence: { state: 'ERR', packetQpState: 2 },
    host0: side(async (here) => {
      await here.awaitSignal('ready');
      await write()(here);
    }),
    host1: side(async (here) => {
      await modifyQp(here.qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
      await here.signal('ready');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the peer destroyed its QP',
    cause: 'peer-qp-destroyed',
    says: /Host 1 destroyed QP .* before .* had its answer/,
    host0: side(async (here) => {
      await here.awaitSignal('gone');
      await write()(here);
    }),
    host1: side(async (here) => {
      await destroyQp(here.qp); // here
      await here.signal('gone');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the peer reset its QP',
    cause: 'peer-qp-destroyed',
    says: /Host 1 destroyed QP/,
    host0: side(async (here) => {
      await here.awaitSignal('gone');
      await write()(here);
    }),
    host1: side(async (here) => {
      await modifyQp(here.qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE);
      await here.signal('gone');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the peer is UC, this side RC',
    cause: 'wrong-service',
    says: /is RC, .* is UC: its device dropped 2 packets of another service/,
    evidence: { packetOpcode: 2 },
    host0: side(write()),
    host1: side(waits, uc()),
  },
  {
    name: 'the peer is connected to another QP',
    cause: 'peer-connected-elsewhere',
    says: /is connected to QP 0x999 and answers that one/,
    evidence: { peerDestQpn: 0x999 },
    host0: side(write()),
    host1: side(waits, { rtr: () => ({ destQpNum: 0x999 }) }),
  },
  {
    name: 'sq_psn is ahead of the peer’s rq_psn',
    cause: 'psn',
    says: /begins with PSN 0x123 \(sq_psn\), its peer expects 0x100 \(rq_psn\)/,
    evidence: { sqPsn: 0x123, rqPsn: 0x100 },
    host0: side(write(), { rts: { sqPsn: 0x123 } }),
    host1: side(waits),
  },
  {
    name: 'sq_psn is behind the peer’s rq_psn',
    cause: 'psn',
    says: /begins with PSN 0xf0 .* counted as duplicates/,
    evidence: { sqPsn: 0xf0, rqPsn: 0x100 },
    host0: side(write(), { rts: { sqPsn: 0xf0 } }),
    host1: side(waits),
  },
  {
    name: 'sq_psn is one behind, and the message has several packets',
    cause: 'psn',
    // IBTA 9.7.5.1.1: the first packet is a duplicate. The second has the expected PSN and does not begin a message.
    says: /begins with PSN 0xff \(sq_psn\), its peer expects 0x100 \(rq_psn\)/,
    evidence: { sqPsn: 0xff, rqPsn: 0x100, duplicates: 1 },
    host0: side(write({ bytes: 1000 }), { rtr: () => ({ pathMtu: IBV_MTU_256 }), rts: { sqPsn: 0xff } }),
    host1: side(waits, { rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
  },
  {
    name: 'rq_psn of the peer is wrong',
    cause: 'psn',
    says: /its peer expects 0xabc \(rq_psn\)/,
    evidence: { sqPsn: 0x100, rqPsn: 0xabc },
    host0: side(write()),
    host1: side(waits, { rtr: () => ({ rqPsn: 0xabc }) }),
  },
  {
    name: 'the path MTUs differ, and a WRITE is longer than the lesser',
    cause: 'mtu-mismatch',
    says: /has a path MTU of 1024 bytes, .* has 256/,
    evidence: { mtu: 1024, peerMtu: 256 },
    host0: side(write({ bytes: 1000 }), { rtr: () => ({ pathMtu: IBV_MTU_1024 }) }),
    host1: side(waits, { rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
  },
  {
    name: 'the path MTUs differ, and a READ is longer than the lesser',
    cause: 'mtu-mismatch',
    says: /has a path MTU of 256 bytes, .* has 1024/,
    host0: side(write({ opcode: IBV_WR_RDMA_READ, bytes: 1000 }), { rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
    host1: side(waits, { rtr: () => ({ pathMtu: IBV_MTU_1024 }) }),
  },
  {
    name: 'the cable is pulled',
    cause: 'link-down',
    says: /The link of host \d went down at 8 ms/,
    faults: [{ cable: 'pulled', at: '8ms' }],
    host0: side(async (here) => {
      await here.program.cpu.sleep(1e10);
      await write()(here);
    }),
    host1: side(waits),
  },
  {
    name: 'every packet of the sender is lost',
    cause: 'packets-lost',
    says: /lost or damaged packets of QP .* fired 2 times/,
    faults: [{ packet: 'lost', node: 0, nth: 'every' }],
    host0: side(write()),
    host1: side(waits),
    networks: ib,
  },
  {
    name: 'dgid is of nobody',
    cause: 'wrong-gid',
    says: /sends to GID .*, which no port has/,
    networks: roce,
    host0: side(sendAndTake, {
      rtr: (peer) => ({ ahAttr: pathOf({ isEthernet: true, gidIndex: 0 }, { ...peer, gid: strangeGid }) }),
    }),
    host1: side(waits, wellConnected),
  },
  {
    name: 'sgid_index of RoCE v1 here, of v2 there',
    cause: 'roce-version',
    says: /speaks RoCE v1, .* speaks RoCE v2: packets of one version do not reach a QP of the other/,
    evidence: { roce: 'v1', peerRoce: 'v2' },
    networks: roce,
    host0: side(write(), { gidFromEnd: 1 }),
    host1: side(waits),
  },
  {
    name: 'the peer expects packets from another GID',
    cause: 'wrong-gid-path',
    says: /takes packets from GID .* only and dropped/,
    networks: roce,
    host0: side(write()),
    host1: side(waits, {
      rtr: (peer) => ({ ahAttr: pathOf({ isEthernet: true, gidIndex: 0 }, { ...peer, gid: strangeGid }) }),
    }),
  },
];

const receiving: readonly Mistake[] = [
  {
    name: 'no receive is posted',
    cause: 'no-receive',
    says: /had no receive for the message, none was ever posted: 2 RNR NAKs .* rnr_retry 1 is used up/,
    evidence: { rnrNaks: 2, rnrRetry: 1, receivesPosted: 0 },
    host0: side(sendAndTake),
    host1: side(waits),
  },
  {
    name: 'one receive, two messages',
    cause: 'no-receive',
    says: /all 1 posted ones were used/,
    evidence: { receivesPosted: 1, receivesTaken: 1 },
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
      await sendAndTake(here);
    }),
    host1: side(waits, { inInit: receives(1) }),
  },
  {
    name: 'no receive, and rnr_retry is without limit',
    cause: 'no-receive',
    says: /had no receive.* rnr_retry 7 repeats it indefinitely/,
    host0: side(sendAndTake, { rts: { rnrRetry: 7 } }),
    host1: side(waits),
  },
  {
    name: 'WRITE with immediate finds no receive',
    cause: 'no-receive',
    says: /had no receive for the message/,
    host0: side(write({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM })),
    host1: side(waits),
  },
  {
    name: 'the receive comes 2 ms late, and the message gets through',
    cause: 'rnr-wait',
    says: /waited .* in \d+ RNR NAKs: its peer had no receive posted/,
    isNote: true,
    host0: side(sendAndTake, { rts: { rnrRetry: 7 } }),
    host1: side(async (here) => {
      await here.program.cpu.sleep(2e9);
      here.receive();
      await here.awaitSignal();
    }),
  },
  {
    name: 'the shared receive queue is empty',
    cause: 'srq-empty',
    says: /The shared receive queue of QP .* had no receive/,
    host0: side(sendAndTake),
    host1: side(waits, { srq: ({ pd }) => createSrq(pd, { attr: { maxWr: 16, maxSge: 1 } }) }),
  },
  {
    name: 'the receive is shorter than the message',
    cause: 'receive-too-short',
    says: /A message of 200 bytes to QP .* is longer than the receive that it found/,
    evidence: { bytes: 200 },
    host0: side(async (here) => {
      here.send({ bytes: 200 }); // here
      await here.take();
      await here.signal();
    }),
    host1: side(waits, { inInit: receives(4, 100) }),
  },
  {
    name: 'the receive’s memory is registered too short',
    cause: 'receive-too-short',
    says: /A receive of QP .* of host 1, .* bytes beyond the region .* of 100 bytes that host 1 registered/,
    evidence: { regionBytes: 100 },
    host0: side(async (here) => {
      here.send({ bytes: 200 }); // here
      await here.take();
      await here.signal();
    }),
    host1: side(waits, { regionBytes: 100, inInit: receives(4) }),
  },
  {
    name: 'the receive’s memory is registered too short, up to where a packet ends',
    cause: 'receive-too-short',
    says: /A receive of QP .* of host 1, .* bytes beyond the region .* of 512 bytes that host 1 registered/,
    evidence: { regionBytes: 512 },
    host0: side(
      async (here) => {
        here.send({ bytes: 600 }); // here
        await here.take();
        await here.signal();
      },
      { rtr: () => ({ pathMtu: IBV_MTU_256 }) },
    ),
    host1: side(waits, {
      regionBytes: 512,
      inInit: receives(4, 1024),
      rtr: () => ({ pathMtu: IBV_MTU_256 }),
    }),
  },
  {
    name: 'the receive has an lkey of nobody',
    cause: 'receive-key-unknown',
    says: /A receive of QP .* of host 1 uses lkey 0x12345678, which no region of host 1 ever had/,
    evidence: { key: 0x12345678 },
    host0: side(sendAndTake),
    host1: side(waits, { inInit: (here) => here.receive({ lkey: 0x12345678 }) }),
  },
  {
    name: 'the receive’s memory may not be written',
    cause: 'receive-right-missing',
    says: /needs local write on key .* registered it with local read, remote read/,
    host0: side(sendAndTake),
    host1: side(waits, { access: IBV_ACCESS_REMOTE_READ, inInit: receives(4) }),
  },
];

const memory: readonly Mistake[] = [
  {
    name: 'the rkey is of nobody',
    cause: 'remote-key-unknown',
    says: /The WRITE of QP .* of host 0 uses rkey 0xdeadbe00, which no region of host 1 ever had/,
    evidence: { key: 0xdeadbe00 },
    host0: side(write({ rkey: 0xdeadbe00 })),
    host1: side(waits),
  },
  {
    name: 'the rkey has another variant',
    cause: 'remote-key-stale',
    says: /uses rkey .*; the region there has key/,
    host0: side(async (here) => {
      await write({ rkey: (here.peer.rkey ^ 1) >>> 0 })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the own rkey is used for the peer’s memory',
    cause: 'own-key-as-rkey',
    says: /which is a key of host 0, not of host 1/,
    host0: side(async (here) => {
      const more = await regMr(here.pd, here.buffer, 4096, allAccess);
      await write({ rkey: more.rkey })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the peer has deregistered the memory',
    cause: 'remote-key-deregistered',
    says: /whose region host 1 deregistered at/,
    host0: side(async (here) => {
      await here.awaitSignal('gone');
      await write()(here);
    }),
    host1: side(async (here) => {
      await deregMr(here.mr); // here
      await here.signal('gone');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the WRITE reaches beyond the peer’s region',
    cause: 'remote-too-short',
    says: /4096 bytes at .* reaches 3072 bytes beyond the region .* of 1024 bytes that host 1 registered/,
    evidence: { bytes: 4096, regionBytes: 1024, beyondBytes: 3072 },
    host0: side(write({ bytes: 4096 })),
    host1: side(waits, { regionBytes: 1024 }),
  },
  {
    name: 'the READ begins before the peer’s region',
    cause: 'remote-wrong-address',
    says: /lies outside of the region/,
    host0: side(async (here) => {
      await write({ opcode: IBV_WR_RDMA_READ, remoteAddr: here.peer.address - 64 })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the address is a physical or foreign one',
    cause: 'remote-wrong-address',
    says: /64 bytes at 0x1000, lies outside/,
    host0: side(write({ remoteAddr: 0x1000 })),
    host1: side(waits),
  },
  {
    name: 'the region does not allow remote WRITE',
    cause: 'remote-right-missing',
    says: /needs remote write on key .* registered it with local read, local write, remote read/,
    evidence: { missing: 'IBV_ACCESS_REMOTE_WRITE' },
    host0: side(write()),
    host1: side(waits, { access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ }),
  },
  {
    name: 'the region does not allow remote READ',
    cause: 'remote-right-missing',
    says: /needs remote read/,
    host0: side(write({ opcode: IBV_WR_RDMA_READ })),
    host1: side(waits, { access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE }),
  },
  {
    name: 'the region does not allow atomics',
    cause: 'remote-right-missing',
    says: /needs remote atomic/,
    host0: side(write({ opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, bytes: 8 })),
    host1: side(waits, { access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE }),
  },
  {
    name: 'the peer’s region is of another protection domain',
    cause: 'remote-wrong-pd',
    says: /of protection domain .*, the QP of host 1 belongs to/,
    host0: side(async (here) => {
      const rkey = Number(await here.program.exchange.take('rkey'));
      await write({ rkey })(here);
    }),
    host1: side(async (here) => {
      const other = await allocPd(here.context);
      const mr = await regMr(other, here.buffer, 4096, allAccess); // here
      await here.program.exchange.put('rkey', mr.rkey);
      await here.awaitSignal();
    }),
  },
  {
    name: 'the QP of the peer does not allow WRITE',
    cause: 'qp-right-missing',
    says: /needs remote write; QP .* of host 1 allows its peer remote read/,
    evidence: { missing: 'IBV_ACCESS_REMOTE_WRITE', given: 'IBV_ACCESS_REMOTE_READ' },
    host0: side(write()),
    host1: side(waits, { init: { qpAccessFlags: IBV_ACCESS_REMOTE_READ } }),
  },
  {
    name: 'qp_access_flags is 0, and the peer READs',
    cause: 'qp-right-missing',
    says: /needs remote read; QP .* allows its peer none/,
    host0: side(write({ opcode: IBV_WR_RDMA_READ })),
    host1: side(waits, { init: { qpAccessFlags: 0 } }),
  },
  {
    name: 'an atomic is not aligned',
    cause: 'atomic-misaligned',
    says: /which is no multiple of 8/,
    host0: side(async (here) => {
      await write({ opcode: IBV_WR_ATOMIC_CMP_AND_SWP, bytes: 8, remoteAddr: here.peer.address + 4 })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'max_rd_atomic is more than the peer’s max_dest_rd_atomic',
    cause: 'too-many-reads',
    says: /has up to 4 READs and atomics under way, .* keeps 1/,
    evidence: { maxRdAtomic: 4, maxDestRdAtomic: 1 },
    host0: side(
      async (here) => {
        for (let posted = 0; posted < 4; posted++) here.send({ opcode: IBV_WR_RDMA_READ, bytes: 65536 });
        for (let taken = 0; taken < 4; taken++) await here.take();
        await here.signal();
      },
      { bufferBytes: 65536 },
    ),
    host1: side(waits, { bufferBytes: 65536, rtr: () => ({ maxDestRdAtomic: 1 }) }),
  },
  {
    name: 'the lkey is of nobody',
    cause: 'local-key-unknown',
    says: /The WRITE of QP .* uses lkey 0xbad00, which no region of host 0 ever had/,
    host0: side(write({ lkey: 0xbad00 })),
    host1: side(waits),
  },
  {
    name: 'the own memory is registered too short',
    cause: 'local-too-short',
    says: /2048 bytes at .* reaches 1024 bytes beyond the region .* of 1024 bytes that host 0 registered/,
    evidence: { bytes: 2048, regionBytes: 1024, beyondBytes: 1024 },
    host0: side(write({ bytes: 2048 }), { regionBytes: 1024, rtr: () => ({ pathMtu: 4 }) }),
    host1: side(waits, { rtr: () => ({ pathMtu: 4 }) }),
    networks: ib,
  },
  {
    name: 'the own memory is registered too short, up to where a packet ends',
    cause: 'local-too-short',
    says: /600 bytes at .* reaches 88 bytes beyond the region .* of 512 bytes that host 0 registered/,
    evidence: { bytes: 600, regionBytes: 512, beyondBytes: 88 },
    host0: side(write({ bytes: 600 }), { regionBytes: 512, rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
    host1: side(waits, { rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
  },
  {
    name: 'the own memory was deregistered before the request',
    cause: 'local-key-deregistered',
    says: /uses lkey .*, whose region host 0 deregistered/,
    host0: side(async (here) => {
      await deregMr(here.mr);
      await write()(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the own memory is of another protection domain',
    cause: 'local-wrong-pd',
    says: /of protection domain .*, the QP of host 0 belongs to/,
    host0: side(async (here) => {
      const mr = await regMr(await allocPd(here.context), here.buffer, 4096, allAccess);
      await write({ lkey: mr.lkey })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'a READ into memory without local write',
    cause: 'local-right-missing',
    says: /needs local write/,
    host0: side(write({ opcode: IBV_WR_RDMA_READ }), { access: IBV_ACCESS_REMOTE_READ }),
    host1: side(waits),
  },
  {
    name: 'an atomic with a buffer of 16 bytes',
    cause: 'atomic-length',
    says: /has a buffer of 16 bytes, an atomic returns 8/,
    evidence: { bytes: 16 },
    host0: side(write({ opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, bytes: 16 })),
    host1: side(waits),
  },
  {
    name: 'on-demand pages of the peer are absent',
    cause: 'page-fault-storm',
    says: /asked for \d+ pages of on-demand regions/,
    isNote: true,
    node: 1,
    host0: side(
      async (here) => {
        for (let page = 0; page < 24; page++) {
          here.send({ opcode: IBV_WR_RDMA_WRITE, remoteAddr: here.peer.address + 4096 * page });
          await here.mustTake();
        }
        await here.signal();
      },
      { rts: { rnrRetry: 7 } },
    ),
    host1: side(waits, { bufferBytes: 24 * 4096, access: allAccess | IBV_ACCESS_ON_DEMAND }),
  },
];

const completions: readonly Mistake[] = [
  {
    name: 'the CQ is smaller than what is posted, and polled late',
    cause: 'cq-overrun',
    says: /CQ .* of host 0 overran.*: it has 8 entries, the completion after 8 found no room, and its program had never polled it/,
    evidence: { entries: 8, written: 8, taken: 0 },
    host0: side(
      async (here) => {
        for (let posted = 0; posted < 12; posted++)
          here.send({ opcode: IBV_WR_RDMA_WRITE, flags: IBV_SEND_SIGNALED });
        await here.program.cpu.sleep(5e7);
        await pollCq(here.cq, 1, [new IbvWc()]);
        await here.signal();
      },
      { cqEntries: 7, cap: { maxSendWr: 32 } },
    ),
    host1: side(waits),
  },
  {
    name: 'the receiver’s CQ is too small',
    cause: 'cq-overrun',
    node: 1,
    says: /CQ .* of host 1 overran/,
    evidence: { entries: 4 },
    host0: side(async (here) => {
      for (let posted = 0; posted < 8; posted++) here.send();
      for (let taken = 0; taken < 8; taken++) await here.take();
      await here.signal();
    }),
    host1: side(waits, { cqEntries: 3, inInit: receives(8) }),
  },
  {
    name: 'the send queue is full of unsignalled requests',
    cause: 'send-queue-unsignalled',
    says: /ENOMEM .* all of them unsignalled/,
    host0: side(async (here) => {
      let error = 0;
      for (let posted = 0; posted < 200 && error === 0; posted++)
        error = here.send({ opcode: IBV_WR_RDMA_WRITE, flags: 0 }); // here
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'the send queue is full, and nothing is polled',
    cause: 'send-queue-unpolled',
    says: /ENOMEM .* completions in its CQ were not polled/,
    host0: side(
      async (here) => {
        for (let posted = 0; posted < 200; posted++) {
          if (here.send({ opcode: IBV_WR_RDMA_WRITE }) !== 0) throw new Error('post failed'); // here
          await here.program.cpu.sleep(1e7);
        }
      },
      { cqEntries: 255 },
    ),
    host1: side(idle),
  },
  {
    name: 'the receive queue is full',
    cause: 'receive-queue-full',
    says: /ibv_post_recv returned ENOMEM .* has no free slot of 16/,
    evidence: { outstanding: 16, capacity: 16 },
    host0: side((here) => {
      if (here.receive({}, 17) !== 0) throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'the request is unsignalled, and its completion awaited',
    cause: 'unsignalled',
    says: /polls CQ .* for 1 request of QP .* posted unsignalled/,
    evidence: { unsignalled: 1, silent: 1 },
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE, flags: 0 });
      await here.take(); // here
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'the passive side polls for a WRITE',
    cause: 'one-sided',
    node: 1,
    says: /but the peer of QP .* did 3 WRITEs, 0 READs and 0 atomics, which complete at the peer only/,
    evidence: { writes: 3 },
    host0: side(async (here) => {
      for (let posted = 0; posted < 3; posted++) {
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await here.mustTake();
      }
    }),
    host1: side(expects, wellConnected),
  },
  {
    name: 'the passive side polls for a READ',
    cause: 'one-sided',
    node: 1,
    says: /1 READ and/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_READ });
      await here.mustTake();
    }),
    host1: side(expects),
  },
  {
    name: 'the receive CQ is polled for a send',
    cause: 'other-cq',
    says: /with 1 completion in CQ .*, which it never polled/,
    evidence: { unpolled: 1, polls: 0 },
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await here.take(here.recvCq); // here
      },
      { hasTwoCqs: true },
    ),
    host1: side(waits),
  },
  {
    name: 'the CQ was never armed',
    cause: 'event-never-armed',
    says: /waits for an event of CQ .*, which was never armed: 1 completion came/,
    evidence: { arms: 0, unpolled: 1 },
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await getCqEvent(here.channel!); // here
      },
      { hasChannel: true },
    ),
    host1: side(idle),
  },
  {
    name: 'the CQ was not armed again after its event',
    cause: 'event-not-rearmed',
    says: /which was not armed again after its last event/,
    evidence: { arms: 1, events: 1 },
    host0: side(
      async (here) => {
        reqNotifyCq(here.cq, 0);
        for (let sent = 0; sent < 2; sent++) {
          here.send({ opcode: IBV_WR_RDMA_WRITE });
          const cq = await getCqEvent(here.channel!);
          ackCqEvents(cq!, 1);
          await here.mustTake();
        }
      },
      { hasChannel: true },
    ),
    host1: side(idle),
  },
  {
    name: 'the CQ is armed for solicited completions, and messages are not',
    cause: 'event-solicited-only',
    node: 1,
    says: /which is armed for solicited completions only/,
    host0: side(sendAndTake),
    host1: side(
      async (here) => {
        reqNotifyCq(here.cq, 1);
        await here.awaitSignal();
        await getCqEvent(here.channel!);
      },
      { hasChannel: true, inInit: receives(4) },
    ),
  },
  {
    name: 'completions are left in a CQ that is armed again',
    cause: 'left-in-armed-cq',
    node: 1,
    says: /with 1 completion left in it/,
    evidence: { unpolled: 1 },
    host0: side(async (here) => {
      here.send();
      here.send();
      await here.mustTake();
      await here.mustTake();
      await here.signal('both');
    }),
    host1: side(
      async (here) => {
        await here.awaitSignal('both');
        await here.program.cpu.sleep(1e8);
        reqNotifyCq(here.cq, 0);
        ackCqEvents((await getCqEvent(here.channel!))!, 1);
        await here.mustTake();
        reqNotifyCq(here.cq, 0);
        await getCqEvent(here.channel!); // here
      },
      { hasChannel: true, inInit: receives(4) },
    ),
  },
  {
    name: 'no CQ was made with the channel',
    cause: 'event-no-cq',
    says: /which no CQ was created with/,
    host0: side(async (here) => {
      const { createCompChannel } = await import('../../../userlib/index.ts');
      await getCqEvent(await createCompChannel(here.context));
    }),
    host1: side(idle),
  },
  {
    name: 'a post before RTS',
    cause: 'post-in-wrong-state',
    says: /ibv_post_send returned EINVAL: QP .* is in RTR, and sends are posted from RTS on/,
    evidence: { state: 'RTR' },
    host0: side(
      (here) => {
        if (here.send() !== 0) throw new Error('post failed'); // here
      },
      { stopsIn: 'RTR' },
    ),
    host1: side(idle),
  },
  {
    name: 'a receive in RESET',
    cause: 'post-in-wrong-state',
    says: /ibv_post_recv returned EINVAL: .* is in RESET/,
    host0: side(
      (here) => {
        if (here.receive() !== 0) throw new Error('post failed');
      },
      { stopsIn: 'RESET' },
    ),
    host1: side(idle),
  },
  {
    name: 'more buffers than the queue takes',
    cause: 'too-many-segments',
    says: /the request has 40 buffers/,
    evidence: { segments: 40 },
    host0: side((here) => {
      if (here.send({ numSge: 40 }) !== 0) throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'inline data longer than the queue takes',
    cause: 'inline-too-long',
    says: /1000 bytes inline/,
    evidence: { inlineBytes: 1000 },
    host0: side((here) => {
      if (here.send({ bytes: 1000, flags: IBV_SEND_SIGNALED | IBV_SEND_INLINE }) !== 0)
        throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'READ on UC',
    cause: 'unsupported-operation',
    says: /is UC, which has no READ/,
    host0: side((here) => {
      if (here.send({ opcode: IBV_WR_RDMA_READ }) !== 0) throw new Error('post failed');
    }, uc()),
    host1: side(idle, uc()),
  },
  {
    name: 'a receive to a QP with a shared receive queue',
    cause: 'receive-to-qp-with-srq',
    says: /takes its receives from a shared receive queue/,
    host0: side(
      (here) => {
        if (here.receive() !== 0) throw new Error('post failed');
      },
      { srq: ({ pd }) => createSrq(pd, { attr: { maxWr: 16, maxSge: 1 } }) },
    ),
    host1: side(idle),
  },
  {
    name: 'the QP is in SQD',
    cause: 'send-queue-drained',
    says: /the QP is in SQD/,
    host0: side(async (here) => {
      await modifyQp(here.qp, { qpState: IBV_QPS_SQD }, IBV_QP_STATE);
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.take();
    }),
    host1: side(idle),
  },
  {
    name: 'a transition that does not exist',
    cause: 'verb-refused',
    says: /was refused a call: ibv_modify_qp/,
    host0: side(
      async (here) => {
        await modifyQp(here.qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
      },
      { stopsIn: 'INIT' },
    ),
    host1: side(idle),
  },
  {
    name: 'both sides wait for the other’s message',
    cause: 'deadlock',
    says: /no request that could complete there is under way: 0 receives completed, host 1 waits in ibv_poll_cq/,
    host0: side(expects, wellConnected),
    host1: side(expects, wellConnected),
  },
  {
    name: 'one message less than expected',
    cause: 'no-more-messages',
    node: 1,
    says: /1 receive completed, all programs of host 0 have ended/,
    evidence: { received: 1 },
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }),
    host1: side(async (here) => {
      await here.mustTake();
      await here.mustTake(); // here
    }, wellConnected),
  },
  {
    name: 'a value of the exchange that nobody puts',
    cause: 'exchange-never-put',
    says: /waits for 'reply' of the other host/,
    host0: side((here) => here.awaitSignal('reply')),
    host1: side(idle),
  },
  {
    name: 'a loop over memory that nobody writes',
    cause: 'memory-never-changes',
    node: 1,
    says: /the peer did 1 WRITE or atomic so far/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.mustTake();
    }),
    host1: side(async (here) => {
      while (here.program.memory.read(here.buffer + 2048, 1)[0] === 0) await here.program.cpu.sleep(1e8);
    }),
  },
  {
    name: 'a wrong QPN, and timeout 0',
    cause: 'wrong-qpn',
    says: /with timeout 0 the request never fails/,
    host0: side(write(), { rts: { timeout: 0 }, rtr: () => ({ destQpNum: 0x4444 }) }),
    host1: side(waits),
  },
];

const unreliable: readonly Mistake[] = [
  {
    name: 'a datagram with another Q_Key',
    cause: 'ud-qkey',
    node: 1,
    says: /they carry Q_Key 0x2222, the QP has Q_Key 0x1111 \(datagramQkey\)/,
    evidence: { datagramQkey: 1, found: 'Q_Key 0x2222', heldTo: 'Q_Key 0x1111' },
    host0: side(datagram({ qkey: 0x2222 }), ud()),
    host1: side(expects, ud()),
  },
  {
    name: 'a datagram longer than the frames of the ports',
    cause: 'ud-too-long',
    node: 1,
    networks: roce,
    says: /1 datagram of .* had 2048 bytes, the ports carry 1500: a datagram is one packet/,
    evidence: { bytes: 2048, portMtu: 1500, datagrams: 1 },
    host0: side(datagram({ bytes: 2048 }), ud()),
    host1: side(expects, ud({ inInit: receives(4, 4096) })),
  },
  {
    name: 'a datagram to another QPN',
    cause: 'ud-qpn',
    node: 1,
    says: /to QP 0x3333, which does not exist \(packetUnknownQp\)/,
    host0: side(datagram({ qpn: 0x3333 }), ud()),
    host1: side(expects, ud()),
  },
  {
    name: 'a datagram without a receive',
    cause: 'ud-no-receive',
    node: 1,
    says: /which had no receive posted \(0 in all\)/,
    host0: side(datagram(), ud()),
    host1: side(expects, ud({ inInit: () => {} })),
  },
  {
    name: 'a datagram to another LID',
    cause: 'ud-wrong-lid',
    node: 1,
    says: /they are for DLID 0x66, it has LID 0x2/,
    networks: ib,
    host0: side(
      datagram({}, (peer) => ({ ...peer, lid: 0x66 })),
      ud(),
    ),
    host1: side(expects, ud()),
  },
  {
    name: 'a datagram longer than the MTU',
    cause: 'datagram-too-long',
    says: /The SEND of 4200 bytes on QP .* is longer than a datagram/,
    host0: side(datagram({ bytes: 4200 }), ud({ bufferBytes: 8192 })),
    host1: side(idle, ud()),
  },
  {
    name: 'a receive without room for the GRH',
    cause: 'ud-receive-too-short',
    node: 1,
    says: /40 bytes for the GRH come before the payload/,
    host0: side(datagram(), ud()),
    host1: side(expects, ud({ inInit: receives(4, 64) })),
  },
  {
    name: 'an address handle of another protection domain',
    cause: 'ah-wrong-pd',
    says: /has an address handle of another protection domain/,
    host0: side(async (here) => {
      const ah = await here.handle(here.peer, await allocPd(here.context));
      sendDatagram(here, ah); // here
      await here.take();
    }, ud()),
    host1: side(idle, ud()),
  },
  {
    name: 'a datagram to a QP in INIT',
    cause: 'ud-qp-state',
    node: 1,
    says: /which was in INIT \(packetQpState\)/,
    host0: side(datagram(), ud()),
    host1: side(expects, ud({ stopsIn: 'INIT' })),
  },
  {
    name: 'a message of UC without a receive',
    cause: 'uc-no-receive',
    node: 1,
    says: /of an unreliable connection to QP .* without an answer: found no receive posted/,
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc({ inInit: () => {} })),
  },
  {
    name: 'a message of UC to another QPN',
    cause: 'uc-qpn',
    node: 1,
    says: /\(packetUnknownQp\)/,
    host0: side(
      async (here) => {
        here.send();
        await here.mustTake();
      },
      uc({ rtr: () => ({ destQpNum: 0x5555 }) }),
    ),
    host1: side(expects, uc()),
  },
  {
    name: 'a WRITE with immediate of UC with a wrong key',
    cause: 'remote-key-unknown',
    node: 1,
    says: /A WRITE to QP .*, which a UC QP drops without an answer, uses rkey 0xabcd00/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM, rkey: 0xabcd00 });
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc()),
  },
  {
    name: 'a WRITE of UC that the region does not allow',
    cause: 'remote-right-missing',
    node: 1,
    isNote: true,
    says: /A WRITE to QP .*, which a UC QP drops without an answer, needs remote write on key .* registered it with local read, local write, remote read/,
    evidence: { missing: 'IBV_ACCESS_REMOTE_WRITE' },
    host0: side(unheardWrite, uc()),
    host1: side(later, uc({ access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ })),
  },
  {
    name: 'a WRITE of UC that the QP does not allow, polled for in memory',
    cause: 'qp-right-missing',
    node: 1,
    says: /A WRITE to QP .*, which a UC QP drops without an answer, needs remote write; QP .* of host 1 allows its peer none/,
    evidence: { missing: 'IBV_ACCESS_REMOTE_WRITE', given: 'none' },
    host0: side(unheardWrite, uc()),
    host1: side(
      async (here) => {
        while (here.program.memory.read(here.buffer, 1)[0] === 0) await here.program.cpu.sleep(1e8);
      },
      uc({ init: { qpAccessFlags: 0 } }),
    ),
  },
  {
    name: 'a datagram with another Q_Key, which nobody waits for',
    cause: 'ud-qkey',
    node: 1,
    isNote: true,
    says: /they carry Q_Key 0x7/,
    host0: side(async (here) => {
      await datagram({ qkey: 7 })(here);
      await here.signal();
    }, ud()),
    host1: side(async (here) => {
      await here.awaitSignal();
      await here.program.cpu.sleep(1e8);
    }, ud()),
  },
];

/** Common mistakes of published programs: off by one, out of order, or a limit of 0. */
const reported: readonly Mistake[] = [
  {
    name: 'path_mtu is above the MTU of the ports',
    cause: 'mtu-above-port',
    says: /has a path MTU of 4096 bytes, the port of host 0 carries 1500/,
    evidence: { pathMtu: 4096, portMtu: 1500 },
    networks: roce,
    host0: side(write({ bytes: 4000 }), { rtr: () => ({ pathMtu: IBV_MTU_4096 }) }),
    host1: side(waits, { rtr: () => ({ pathMtu: IBV_MTU_4096 }) }),
  },
  {
    name: 'timeout is shorter than the way there and back',
    cause: 'responder-slow',
    says: /arrive later than its time-out of .*: 2 time-outs, .* duplicates? at the peer/,
    evidence: { timeouts: 2 },
    faults: [{ packet: 'late', delay: '20ms', node: 1, nth: 'every' }],
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE }); // here
      await here.take();
      // The responses arrive after all.
      await here.program.cpu.sleep(5e10);
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'pkey_index of the peer names an empty entry',
    cause: 'pkey',
    says: /sends with P_Key 0xffff \(index 0\), its peer has P_Key 0x0 \(index 1\): 2 packets of another partition were dropped/,
    evidence: { pkey: 0xffff, peerPkey: 0, packetPkey: 2 },
    networks: ib,
    host0: side(write()),
    host1: side(waits, { init: { pkeyIndex: 1 } }),
  },
  {
    name: 'pkey_index is beyond the table, which has one entry with RoCE',
    cause: 'verb-refused',
    node: 1,
    says: /was refused a call: ibv_modify_qp/,
    networks: roce,
    host0: side(idle),
    host1: side(idle, { init: { pkeyIndex: 1 } }),
  },
  {
    name: 'pkey_index of a datagram’s receiver names an empty entry',
    cause: 'ud-pkey',
    node: 1,
    says: /they carry P_Key 0xffff, the QP has P_Key 0x0 \(datagramPkey\)/,
    evidence: { datagramPkey: 1 },
    networks: ib,
    host0: side(datagram(), ud()),
    host1: side(expects, ud({ init: { pkeyIndex: 1 } })),
  },
  {
    name: 'more requests are posted at once than max_send_wr',
    cause: 'send-queue-full',
    says: /ENOMEM 1 time: the send queue of QP .* holds \d+ of \d+ requests, of which \d+ signalled ones have not completed yet/,
    host0: side((here) => {
      for (let posted = 0; posted < 200; posted++)
        if (here.send({ opcode: IBV_WR_RDMA_WRITE }) !== 0) throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'a window is bound to memory that was not registered for windows',
    cause: 'bind-refused',
    says: /The bind on QP .* was refused: the region does not allow windows \(IBV_ACCESS_MW_BIND\)/,
    host0: side(async (here) => {
      const mw = await allocMw(here.pd, IBV_MW_TYPE_1);
      const bindInfo = { mr: here.mr, addr: here.buffer, length: 64, mwAccessFlags: IBV_ACCESS_REMOTE_READ };
      bindMw(here.qp, mw, { wrId: 1, sendFlags: IBV_SEND_SIGNALED, bindInfo });
      await here.mustTake();
    }),
    host1: side(idle),
  },
  {
    name: 'max_dest_rd_atomic is 0, and the peer READs',
    // Like Linux's driver: without resources for READs, the QP allows its peer no READ.
    cause: 'qp-right-missing',
    says: /needs remote read; QP .* of host 1 allows its peer remote write/,
    evidence: { missing: 'IBV_ACCESS_REMOTE_READ', given: 'IBV_ACCESS_REMOTE_WRITE' },
    host0: side(write({ opcode: IBV_WR_RDMA_READ }), { rts: { maxRdAtomic: 1 } }),
    host1: side(waits, { rtr: () => ({ maxDestRdAtomic: 0 }) }),
  },
  {
    name: 'retry_cnt is 0, and one packet is lost',
    cause: 'packets-lost',
    says: /fired 1 time, and 1 time-out of .* used up retry_cnt 0/,
    evidence: { fired: 1, timeouts: 1, retryCount: 0 },
    faults: [{ packet: 'lost', node: 0, nth: 2 }],
    networks: ib,
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await here.mustTake();
        await write()(here);
      },
      { rts: { retryCnt: 0 } },
    ),
    host1: side(waits),
  },
  {
    name: 'every packet is lost, with selective repeat',
    cause: 'packets-lost',
    // RTO_low is 100 us: 100 + 200 + 400 + 800 us, then the QP's own, 4.096 us x 2^8 = 1049 us: 2549 us.
    says: /fired 5 times, and 5 time-outs of 100 µs to 1\.049 ms, 2\.549 ms together used up retry_cnt 1/,
    faults: [{ packet: 'lost', node: 0, nth: 'every' }],
    networks: ib,
    set: { 'hca.lossRecovery': 'selective-repeat' },
    host0: side(write(), { rts: { retryCnt: 1, timeout: 8 } }),
    host1: side(waits),
  },
  {
    name: 'the last packet is lost once, with selective repeat',
    cause: 'retransmissions',
    isNote: true,
    says: /sent packets again after 1 time-out of 100 µs, 0 NAKs for a sequence error/,
    faults: [{ packet: 'lost', node: 0, nth: 1 }],
    networks: ib,
    set: { 'hca.lossRecovery': 'selective-repeat' },
    host0: side(write()),
    host1: side(waits),
  },
  {
    name: 'rnr_retry is 0, and the receive comes a little later',
    cause: 'no-receive',
    says: /none was ever posted: 1 RNR NAK .* rnr_retry 0 is used up/,
    evidence: { rnrNaks: 1, rnrRetry: 0 },
    host0: side(sendAndTake, { rts: { rnrRetry: 0 } }),
    host1: side(waits),
  },
  {
    name: 'the receive is one byte short',
    cause: 'receive-too-short',
    says: /A message of 64 bytes to QP .* is longer than the receive that it found/,
    evidence: { bytes: 64 },
    host0: side(sendAndTake),
    host1: side(waits, { inInit: receives(4, 63) }),
  },
  {
    name: 'a UD receive has 39 bytes for the GRH',
    cause: 'ud-receive-too-short',
    node: 1,
    says: /40 bytes for the GRH come before the payload/,
    host0: side(datagram(), ud()),
    host1: side(expects, ud({ inInit: receives(4, 64 + 39) })),
  },
  {
    name: 'a send in INIT',
    cause: 'post-in-wrong-state',
    says: /ibv_post_send returned EINVAL: QP .* is in INIT, and sends are posted from RTS on/,
    evidence: { state: 'INIT' },
    host0: side(
      (here) => {
        if (here.send() !== 0) throw new Error('post failed');
      },
      { stopsIn: 'INIT' },
    ),
    host1: side(idle),
  },
  {
    name: 'the CQ is destroyed while its QP lives',
    cause: 'verb-refused',
    says: /was refused a call: ibv_destroy_cq/,
    host0: side(async (here) => {
      await destroyCq(here.cq);
    }),
    host1: side(idle),
  },
  {
    name: 'the rkey of before a registration of the same memory',
    cause: 'remote-key-deregistered',
    says: /The WRITE of QP .* uses rkey .*, whose region host 1 deregistered at/,
    host0: side(async (here) => {
      await here.awaitSignal('again');
      await write()(here);
    }),
    host1: side(async (here) => {
      await deregMr(here.mr);
      await regMr(here.pd, here.buffer, 4096, allAccess);
      await here.signal('again');
      await here.awaitSignal();
    }),
  },
  {
    name: 'sgid_index is beyond the GIDs of the port',
    cause: 'verb-refused',
    says: /was refused a call: ibv_modify_qp/,
    networks: roce,
    host0: side(idle, {
      rtr: (peer) => ({ ahAttr: pathOf({ isEthernet: true, gidIndex: 120 }, peer) }),
    }),
    host1: side(idle),
  },
  {
    name: 'a READ with IBV_SEND_INLINE',
    cause: 'inline-of-read',
    says: /READ on QP .* has IBV_SEND_INLINE, but its buffer is written, not sent/,
    host0: side((here) => {
      const flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
      if (here.send({ opcode: IBV_WR_RDMA_READ, bytes: 8, flags }) !== 0) throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'the lkey is left 0',
    cause: 'local-key-unknown',
    says: /uses lkey 0x0, which no region of host 0 ever had/,
    evidence: { key: 0 },
    host0: side(write({ lkey: 0 })),
    host1: side(waits),
  },
  {
    name: 'the rkey is sent over in the other byte order',
    cause: 'remote-key-unknown',
    says: /uses rkey .*, which no region of host 1 ever had/,
    host0: side(async (here) => {
      const swapped = new DataView(new ArrayBuffer(4));
      swapped.setUint32(0, here.peer.rkey);
      await write({ rkey: swapped.getUint32(0, true) })(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the QP goes to ERR with a request under way',
    cause: 'flushed-by-program',
    isNote: true,
    says: /The program put QP .* of host 0 into ERR at/,
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_READ, bytes: 65536 });
        here.send({ opcode: IBV_WR_RDMA_READ, bytes: 65536 });
        await modifyQp(here.qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
        here.send();
        await here.take();
      },
      { bufferBytes: 65536 },
    ),
    host1: side(idle, { bufferBytes: 65536 }),
  },
];

export const mistakes: readonly Mistake[] = [
  ...connections,
  ...receiving,
  ...memory,
  ...completions,
  ...unreliable,
  ...reported,
];

/** Correct programs: no finding is allowed. */
export const rightPrograms: readonly Pick<Mistake, 'name' | 'host0' | 'host1'>[] = [
  {
    name: 'SEND, WRITE, READ and atomic with signalled completions',
    host0: side(async (here) => {
      const requests = [
        {},
        { opcode: IBV_WR_RDMA_WRITE },
        { opcode: IBV_WR_RDMA_READ },
        { opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, bytes: 8 },
      ];
      for (const request of requests) {
        here.send(request);
        await here.mustTake();
      }
      await here.signal();
    }),
    host1: side(waits, wellConnected),
  },
  {
    name: 'posts until the queue is full, then polls',
    host0: side(async (here) => {
      for (let done = 0; done < 60; ) {
        while (here.send({ opcode: IBV_WR_RDMA_WRITE }) === 0);
        await here.mustTake();
        done++;
      }
      await here.program.cpu.sleep(1e8);
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'events, armed again after each and polled empty',
    host0: side(sendAndTake),
    host1: side(
      async (here) => {
        reqNotifyCq(here.cq, 0);
        ackCqEvents((await getCqEvent(here.channel!))!, 1);
        reqNotifyCq(here.cq, 0);
        await here.mustTake();
        await here.awaitSignal();
      },
      { hasChannel: true, inInit: receives(4) },
    ),
  },
  {
    name: 'every fourth request signalled, and the QP drained at the end',
    host0: side(async (here) => {
      for (let posted = 1; posted <= 32; posted++) {
        here.send({ opcode: IBV_WR_RDMA_WRITE, flags: posted % 4 === 0 ? IBV_SEND_SIGNALED : 0 });
        if (posted % 4 === 0) await here.mustTake();
      }
      await here.signal();
      await modifyQp(here.qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
      here.send();
      await here.take();
      await destroyQp(here.qp);
    }),
    host1: side(waits),
  },
  {
    name: 'the buffer of a READ sent after a request with a fence, and named by an empty request before it',
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_READ, bytes: 2048 });
      here.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 0, addr: here.buffer + 64 });
      here.send({ opcode: IBV_WR_RDMA_WRITE, flags: IBV_SEND_SIGNALED | IBV_SEND_FENCE });
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      for (let taken = 0; taken < 4; taken++) await here.mustTake();
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'datagrams both ways',
    host0: side(async (here) => {
      await datagram()(here);
      await here.mustTake();
    }, ud()),
    host1: side(async (here) => {
      await here.mustTake();
      await datagram()(here);
    }, ud()),
  },
  {
    name: 'READ with max_rd_atomic 0, of which this driver makes one at a time',
    host0: side(write({ opcode: IBV_WR_RDMA_READ }), { rts: { maxRdAtomic: 0 } }),
    host1: side(waits),
  },
  {
    name: 'sends from RTS to a peer that is in RTR, as the first message of a connection may',
    host0: side(sendAndTake),
    host1: side(waits, { stopsIn: 'RTR', inInit: receives(4) }),
  },
  {
    name: 'immediate data in the byte order of the host, which the program at the other end must know',
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM, immData: 0x0403_0201 });
      await here.mustTake();
    }),
    host1: side(async (here) => {
      await here.mustTake();
    }, wellConnected),
  },
];
