/**
 * Two programs with a QP each, from RESET to RTS, in which a test changes one thing: an attribute, a size, a key, an
 * omitted call. They use the verbs themselves, so that a mistake is made where a program would make it.
 */

import type { ProgramContext } from '../../../machine/index.ts';
import {
  allocPd,
  createAh,
  createCompChannel,
  createCq,
  createQp,
  getDeviceList,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_LINK_LAYER_ETHERNET,
  IBV_PORT_ACTIVE,
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_AV,
  IBV_QP_DEST_QPN,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_MAX_QP_RD_ATOMIC,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_PATH_MTU,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_QKEY,
  IBV_QP_RETRY_CNT,
  IBV_QP_RNR_RETRY,
  IBV_QP_RQ_PSN,
  IBV_QP_SQ_PSN,
  IBV_QP_STATE,
  IBV_QP_TIMEOUT,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvCompChannel,
  type IbvContext,
  type IbvCq,
  type IbvMr,
  type IbvPd,
  type IbvQp,
  type IbvSrq,
  IbvWc,
  modifyQp,
  openDevice,
  postRecv,
  postSend,
  type QpAttr,
  queryGidTable,
  queryPort,
  regMr,
  spinCq,
} from '../../../userlib/index.ts';

export const allAccess =
  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

/** Values that the two sides exchange. */
export interface Address {
  readonly qpn: number;
  readonly psn: number;
  readonly lid: number;
  readonly gid: readonly number[];
  readonly address: number;
  readonly rkey: number;
}

export interface SideOptions {
  readonly type?: IbvQp['qpType'];
  readonly cqEntries?: number;
  readonly bufferBytes?: number;
  readonly regionBytes?: number;
  readonly access?: number;
  readonly sqSigAll?: number;
  readonly cap?: Partial<QpAttrCap>;
  /** Whether sends and receives have separate CQs. */
  readonly hasTwoCqs?: boolean;
  readonly hasChannel?: boolean;
  readonly srq?: (endpoint: { readonly context: IbvContext; readonly pd: IbvPd }) => Promise<IbvSrq>;
  /** Index of the own GID, counted from the end of the table. */
  readonly gidFromEnd?: number;
  readonly init?: QpAttr;
  readonly rtr?: (peer: Address) => QpAttr;
  readonly rts?: QpAttr;
  /** State in which the QP remains. */
  readonly stopsIn?: 'RESET' | 'INIT' | 'RTR';
  /** Called in INIT, to post receives. */
  readonly inInit?: (side: Side) => void;
  readonly announced?: (own: Address) => Address;
}

interface QpAttrCap {
  maxSendWr: number;
  maxRecvWr: number;
  maxSendSge: number;
  maxRecvSge: number;
  maxInlineData: number;
}

interface Request {
  readonly wrId?: number;
  readonly opcode?: number;
  readonly flags?: number;
  readonly bytes?: number;
  readonly addr?: number;
  readonly lkey?: number;
  readonly remoteAddr?: number;
  readonly rkey?: number;
  readonly numSge?: number;
  readonly immData?: number;
}

/** Options of a side. */
interface SideParts {
  readonly program: ProgramContext;
  readonly context: IbvContext;
  readonly pd: IbvPd;
  readonly channel: IbvCompChannel | null;
  readonly cq: IbvCq;
  readonly recvCq: IbvCq;
  readonly qp: IbvQp;
  readonly buffer: number;
  readonly mr: IbvMr;
  readonly lid: number;
  readonly gid: Uint8Array;
  readonly gidIndex: number;
  readonly isEthernet: boolean;
  readonly peer: Address;
}

/** One side of the pair, with the usual operations of programs. */
export type Side = ReturnType<typeof sideOf>;

function sideOf(parts: SideParts) {
  const { program, cq, qp, buffer, mr, peer, pd } = parts;
  /** Polls the next completion, whatever its status. */
  const take = async (from = cq): Promise<IbvWc> => {
    const wc = [new IbvWc()];
    await spinCq(from, 1, wc);
    return wc[0]!;
  };
  return {
    ...parts,
    take,
    /** Returns the result of ibv_post_send. */
    send({
      opcode = IBV_WR_SEND,
      flags = IBV_SEND_SIGNALED,
      bytes = 64,
      wrId = 1,
      numSge = 1,
      addr = buffer,
      lkey = mr.lkey,
      remoteAddr = peer.address,
      rkey = peer.rkey,
      immData = 0,
    }: Request = {}): number {
      const sgList = Array.from({ length: numSge }, () => ({ addr, length: bytes, lkey }));
      const atomic = { remoteAddr, rkey, compareAdd: 1n, swap: 2n };
      const wr = { rdma: { remoteAddr, rkey }, atomic };
      return postSend(qp, { wrId, sgList, numSge, opcode, sendFlags: flags, immData, wr });
    },
    /** Returns the result of ibv_post_recv. */
    receive({ bytes = 256, addr = buffer, lkey = mr.lkey }: Request = {}, count = 1): number {
      let error = 0;
      for (let posted = 0; posted < count; posted++)
        error = postRecv(qp, { wrId: 2, sgList: [{ addr, length: bytes, lkey }], numSge: 1 });
      return error;
    },
    /** Throws for an unsuccessful completion, as programs do. */
    async mustTake(from = cq): Promise<IbvWc> {
      const wc = await take(from);
      if (wc.status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${wc.status}`);
      return wc;
    },
    /** An address handle to the peer, or to another address. */
    handle: (to: Address = peer, domain = pd) => createAh(domain, pathOf(parts, to)),
    signal: (name = 'done'): Promise<void> => program.exchange.put(name, true),
    async awaitSignal(name = 'done'): Promise<void> {
      await program.exchange.take(name);
    },
  };
}

type PathSide = Pick<SideParts, 'isEthernet' | 'gidIndex'>;

/** The path to a peer. */
export function pathOf({ isEthernet, gidIndex }: PathSide, { lid, gid }: Pick<Address, 'lid' | 'gid'>) {
  const grh = {
    dgid: Uint8Array.from(gid),
    flowLabel: 0,
    sgidIndex: gidIndex,
    hopLimit: 64,
    trafficClass: 0,
  };
  return isEthernet
    ? { dlid: 0, sl: 0, srcPathBits: 0, isGlobal: 1, grh, portNum: 1 }
    : { dlid: lid, sl: 0, srcPathBits: 0, isGlobal: 0, portNum: 1 };
}

const qkey = 0x1111;

/** Opens the device, creates the objects, exchanges their values with the peer, and connects. */
export async function open(program: ProgramContext, options: SideOptions = {}): Promise<Side> {
  const { type = IBV_QPT_RC, cqEntries = 64, bufferBytes = 4096, access = allAccess } = options;
  const context = await openDevice(getDeviceList(program.verbs)[0]!);
  const pd = await allocPd(context);
  const port = await activePort(program, context);
  const gids = await queryGidTable(context, 1);
  const entry = gids.at(-1 - (options.gidFromEnd ?? 0))!;
  const buffer = program.memory.map(bufferBytes);
  const mr = await regMr(pd, buffer, options.regionBytes ?? bufferBytes, access);
  const channel = options.hasChannel === true ? await createCompChannel(context) : null;
  const cq = await createCq(context, cqEntries, null, channel);
  const recvCq = options.hasTwoCqs === true ? await createCq(context, cqEntries, null, channel) : cq;
  const srq = await options.srq?.({ context, pd });
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1, ...options.cap };
  const init = { sendCq: cq, recvCq, qpType: type, cap, sqSigAll: options.sqSigAll ?? 0, srq: srq ?? null };
  const qp = await createQp(pd, init);
  const psn = 0x100 + program.node * 0x1000;
  const own = { qpn: qp.qpNum, psn, lid: port.lid, gid: [...entry.gid], address: buffer, rkey: mr.rkey };
  await program.exchange.put('address', { ...(options.announced?.(own) ?? own) });
  const peer = await program.exchange.take<Address>('address');
  const isEthernet = port.linkLayer === IBV_LINK_LAYER_ETHERNET;
  const { gid, gidIndex } = entry;
  const { lid } = port;
  const side = sideOf({
    ...{ program, context, pd, channel, cq, recvCq, qp, buffer, mr, lid, gid, gidIndex, isEthernet, peer },
  });
  await connect(side, options, own.psn, port.activeMtu);
  await side.signal('connected');
  await side.awaitSignal('connected');
  return side;
}

async function activePort({ cpu }: ProgramContext, context: IbvContext) {
  for (;;) {
    const port = await queryPort(context, 1);
    if (port.state === IBV_PORT_ACTIVE) return port;
    await cpu.sleep(1e9);
  }
}

async function connect(
  side: Side,
  options: SideOptions,
  sqPsn: number,
  mtu: 1 | 2 | 3 | 4 | 5,
): Promise<void> {
  const { qp, peer } = side;
  const { qpType: type } = qp;
  const isReliable = type === IBV_QPT_RC;
  if (options.stopsIn === 'RESET') return;
  await modifyQp(
    qp,
    { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qkey, qpAccessFlags: allAccess, ...options.init },
    IBV_QP_STATE |
      IBV_QP_PKEY_INDEX |
      IBV_QP_PORT |
      (type === IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
  );
  options.inInit?.(side);
  if (options.stopsIn === 'INIT') return;
  const rtr: QpAttr = {
    qpState: IBV_QPS_RTR,
    pathMtu: mtu,
    destQpNum: peer.qpn,
    rqPsn: peer.psn,
    maxDestRdAtomic: 4,
    minRnrTimer: 12,
    ahAttr: pathOf(side, peer),
    ...options.rtr?.(peer),
  };
  const connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  await modifyQp(
    qp,
    rtr,
    IBV_QP_STATE | (type === IBV_QPT_UD ? 0 : connected) | (isReliable ? responder : 0),
  );
  if (options.stopsIn === 'RTR') return;
  const rts: QpAttr = {
    qpState: IBV_QPS_RTS,
    timeout: 10,
    retryCnt: 1,
    rnrRetry: 1,
    sqPsn,
    maxRdAtomic: 4,
    ...options.rts,
  };
  const requester = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  await modifyQp(qp, rts, IBV_QP_STATE | IBV_QP_SQ_PSN | (isReliable ? requester : 0));
}

export { IBV_QPT_UC, IBV_QPT_UD };
