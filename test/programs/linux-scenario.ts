/**
 * The program with which stock Linux made the captures of `reference/wire` (wt.c there), for a simulated host: the same steps,
 * buffers, keys and attributes, so that the device sends the same packets as Linux' Soft-RoCE.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  allocMw,
  createAh,
  createCq,
  createQp,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_MW_TYPE_2,
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
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_BIND_MW,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_SEND_WITH_INV,
  type IbvAh,
  type IbvMw,
  type IbvQp,
  type IbvSendWr,
  incRkey,
  modifyQp,
  type PortAttr,
  postRecv,
  postSend,
  queryGid,
} from '../../userlib/index.ts';
import { takeWithin } from './outcomes.ts';
import { receiveOf, segment } from './requests.ts';
import { type Area, Side } from './side.ts';

/** One work request: `send:3000:si` of the notation. */
export interface LinuxWork {
  readonly kind: 'send' | 'write' | 'read' | 'fadd' | 'cswp';
  readonly length: number;
  readonly flags: string;
}

/** Work requests that one end posts at once; the peer posts its receives before, or this much later. */
export interface LinuxStep {
  readonly poster: number;
  readonly lateMs: number;
  /** Bytes of a receive; 0: the whole buffer. */
  readonly receiveBytes: number;
  readonly works: readonly LinuxWork[];
}

/** Arguments of wt. */
export interface LinuxScenario {
  readonly transport: 'rc' | 'uc' | 'ud';
  readonly sgidIndex: number;
  readonly mtu: PortAttr['activeMtu'];
  /** First PSNs of both ends. */
  readonly psns: readonly [number, number];
  readonly readsMax: number;
  readonly limitMs: number;
  readonly hopLimit: number;
  readonly trafficClass: number;
  readonly flowLabel: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrTimerCode: number;
  /** Whether the server's QP grants rights. */
  readonly serverGives: boolean;
  readonly steps: readonly LinuxStep[];
}

const bufferBytes = 256 * 1024;
const qkey = 0x1234;
const wrongQkey = 0x9999;
const targetOffset = 8192;
const readOffset = 65_536;
const atomicOffset = 131_072;
const windowBytes = 4096;
const ms = 1e9;

interface Told {
  readonly qpn: number;
  readonly rkey: number;
  readonly address: number;
  readonly gid: readonly number[];
  /** 0 on Ethernet. */
  readonly lid: number;
}

/** wt's fill pattern of its buffer. */
const byteOf = (isServer: boolean, at: number): number =>
  isServer ? 0x40 + (at % 53) : (at * 7 + (at >> 8)) & 0xff;

class End {
  readonly #side: Side;
  readonly #scenario: LinuxScenario;
  readonly #qp: IbvQp;
  readonly #buffer: Area;
  readonly #window: IbvMw | undefined;
  #peer!: Told;
  #ah: IbvAh | undefined;

  constructor(side: Side, scenario: LinuxScenario, qp: IbvQp, buffer: Area, window: IbvMw | undefined) {
    this.#side = side;
    this.#scenario = scenario;
    this.#qp = qp;
    this.#buffer = buffer;
    this.#window = window;
  }

  get #isServer(): boolean {
    return this.#side.program.node === 1;
  }

  static async open(side: Side, scenario: LinuxScenario): Promise<End> {
    const { context, pd, program } = side;
    const access =
      IBV_ACCESS_LOCAL_WRITE |
      IBV_ACCESS_REMOTE_READ |
      IBV_ACCESS_REMOTE_WRITE |
      IBV_ACCESS_REMOTE_ATOMIC |
      IBV_ACCESS_MW_BIND;
    const buffer = await side.area(bufferBytes, access);
    const isServer = program.node === 1;
    side.write(
      buffer,
      Uint8Array.from({ length: bufferBytes }, (_, at) => byteOf(isServer, at)),
    );
    const [sendCq, recvCq] = [await createCq(context, 256), await createCq(context, 256)];
    const cap = { maxSendWr: 64, maxRecvWr: 64, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 64 };
    const qpType = { rc: IBV_QPT_RC, uc: IBV_QPT_UC, ud: IBV_QPT_UD }[scenario.transport];
    const qp = await createQp(pd, { sendCq, recvCq, qpType, cap, sqSigAll: 1 });
    const isWindowed = scenario.steps.some(({ works }) => works.some(({ flags }) => flags.includes('V')));
    const window = isWindowed && isServer ? await allocMw(pd, IBV_MW_TYPE_2) : undefined;
    const end = new End(side, scenario, qp, buffer, window);
    await end.#connect();
    return end;
  }

  async #connect(): Promise<void> {
    const { context, pd, program } = this.#side;
    const { transport, sgidIndex, psns, ...more } = this.#scenario;
    const gid = await queryGid(context, 1, sgidIndex);
    const { mr, address } = this.#buffer;
    await this.#side.tell('end', {
      qpn: this.#qp.qpNum,
      rkey: mr.rkey,
      address,
      gid: [...gid],
      lid: this.#side.port.lid,
    });
    this.#peer = await this.#side.hear<Told>('end');
    const { readsMax, hopLimit, trafficClass, flowLabel } = more;
    const dgid = Uint8Array.from(this.#peer.gid);
    const grh = { dgid, flowLabel, sgidIndex, hopLimit, trafficClass };
    const ahAttr = { dlid: this.#peer.lid, sl: 0, srcPathBits: 0, isGlobal: 1, grh, portNum: 1 };
    const isRc = transport === 'rc';
    const all = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const given = isRc ? all : IBV_ACCESS_REMOTE_WRITE;
    const qpAccessFlags = this.#isServer && !more.serverGives ? 0 : given;
    const isUd = transport === 'ud';
    await modifyQp(
      this.#qp,
      { qpState: IBV_QPS_INIT, portNum: 1, pkeyIndex: 0, qpAccessFlags, qkey },
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (isUd ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
    );
    const sqPsn = psns[program.node === 0 ? 0 : 1];
    const rqPsn = psns[program.node === 0 ? 1 : 0];
    if (isUd) {
      await modifyQp(this.#qp, { qpState: IBV_QPS_RTR }, IBV_QP_STATE);
      await modifyQp(this.#qp, { qpState: IBV_QPS_RTS, sqPsn }, IBV_QP_STATE | IBV_QP_SQ_PSN);
      this.#ah = await createAh(pd, ahAttr);
      return;
    }
    const { mtu: pathMtu, rnrTimerCode: minRnrTimer } = more;
    await modifyQp(
      this.#qp,
      {
        qpState: IBV_QPS_RTR,
        pathMtu,
        destQpNum: this.#peer.qpn,
        rqPsn,
        maxDestRdAtomic: readsMax,
        minRnrTimer,
        ahAttr,
      },
      IBV_QP_STATE |
        IBV_QP_AV |
        IBV_QP_PATH_MTU |
        IBV_QP_DEST_QPN |
        IBV_QP_RQ_PSN |
        (isRc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
    );
    const { timeoutCode: timeout, retryCount: retryCnt, rnrRetryCount: rnrRetry } = more;
    await modifyQp(
      this.#qp,
      { qpState: IBV_QPS_RTS, sqPsn, timeout, retryCnt, rnrRetry, maxRdAtomic: readsMax },
      IBV_QP_STATE |
        IBV_QP_SQ_PSN |
        (isRc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0),
    );
  }

  #postReceives(count: number, bytes: number): void {
    for (let at = 0; at < count; at++)
      postRecv(this.#qp, receiveOf([segment(this.#buffer, 0, bytes)], 1000 + at));
  }

  #workOf({ kind, length, flags }: LinuxWork, at: number, windowKey: number): IbvSendWr {
    const has = (flag: string): boolean => flags.includes(flag);
    const { qpn: remoteQpn, address, rkey } = this.#peer;
    const isAtomic = kind === 'fadd' || kind === 'cswp';
    const offset = isAtomic ? atomicOffset + 8 * at : kind === 'read' ? readOffset : has('3') ? 3 : 0;
    const bytes = isAtomic ? 8 : length;
    const remoteAddr = address + targetOffset + (has('o') ? bufferBytes : 0);
    const remoteKey = (rkey ^ (has('b') ? 0x5500 : 0)) >>> 0;
    const immData = (0xcafe_0000 + at) >>> 0;
    const sgList = bytes === 0 ? [] : [segment(this.#buffer, offset, bytes)];
    const sendFlags =
      IBV_SEND_SIGNALED | (has('s') ? IBV_SEND_SOLICITED : 0) | (has('f') ? IBV_SEND_FENCE : 0);
    const basis = { wrId: at, sgList, numSge: sgList.length, sendFlags, immData };
    switch (kind) {
      case 'send': {
        if (has('V')) return { ...basis, opcode: IBV_WR_SEND_WITH_INV, invalidateRkey: windowKey };
        const opcode = has('i') ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        if (this.#ah === undefined) return { ...basis, opcode };
        const ud = { ah: this.#ah, remoteQpn, remoteQkey: has('q') ? wrongQkey : qkey };
        return { ...basis, opcode, wr: { ud } };
      }
      case 'write': {
        const opcode = has('i') ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        return { ...basis, opcode, wr: { rdma: { remoteAddr, rkey: remoteKey } } };
      }
      case 'read':
        return { ...basis, opcode: IBV_WR_RDMA_READ, wr: { rdma: { remoteAddr, rkey: remoteKey } } };
      default: {
        const isFetch = kind === 'fadd';
        const opcode = isFetch ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
        const compareAdd = isFetch ? BigInt(length) : 0x1122_3344_5566_7788n;
        const swap = 0xa0a1_a2a3_a4a5_a6a7n;
        return { ...basis, opcode, wr: { atomic: { remoteAddr, rkey: remoteKey, compareAdd, swap } } };
      }
    }
  }

  /** The passive end binds a window, and sends its key. */
  async #windowKey(isPoster: boolean, name: string): Promise<number> {
    if (isPoster) return await this.#side.hear<number>(name);
    const { mr, address: addr } = this.#buffer;
    const mw = this.#window!;
    const rkey = incRkey(mw.rkey);
    const mwAccessFlags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const bindInfo = { mr, addr, length: windowBytes, mwAccessFlags };
    const bind = { wrId: 77, sgList: [], numSge: 0, opcode: IBV_WR_BIND_MW, sendFlags: IBV_SEND_SIGNALED };
    postSend(this.#qp, { ...bind, bindMw: { mw, rkey, bindInfo } });
    await takeWithin(this.#qp.sendCq, 1, 1e6);
    await this.#side.tell(name, rkey);
    return rkey;
  }

  /** @returns statuses of the completions that this end awaited */
  async play({ poster, lateMs, receiveBytes, works }: LinuxStep, name: string): Promise<string[]> {
    const { node } = this.#side.program;
    const isPoster = node === poster;
    const isWindowed = works.some(({ flags }) => flags.includes('V'));
    const windowKey = isWindowed ? await this.#windowKey(isPoster, `${name} window`) : 0;
    const received = works.filter(
      ({ kind, flags }) =>
        (kind === 'send' && !flags.includes('q')) || (kind === 'write' && flags.includes('i')),
    ).length;
    const bytes = receiveBytes || bufferBytes;
    if (!isPoster && lateMs === 0) this.#postReceives(received, bytes);
    await this.#side.barrier(name);
    const limitUs = this.#scenario.limitMs * 1000;
    if (isPoster) {
      const list = works.map((work, at) => this.#workOf(work, at, windowKey));
      list.forEach((work, at) => {
        const next = list[at + 1];
        if (next !== undefined) Object.assign(work, { next });
      });
      postSend(this.#qp, list[0]!);
      return statusesUpTo(await takeWithin(this.#qp.sendCq, works.length, limitUs), works.length);
    }
    if (lateMs > 0) {
      await this.#qp.cpu.sleep(lateMs * ms);
      this.#postReceives(received, bufferBytes);
    }
    return statusesUpTo(await takeWithin(this.#qp.recvCq, received, limitUs), received);
  }
}

const statusesUpTo = (outcomes: readonly { readonly status: string }[], count: number): string[] =>
  Array.from({ length: count }, (_, at) => outcomes[at]?.status ?? 'none');

/** @returns the statuses of each step, and the address of this end's buffer, with its key and QP number */
export async function linux(program: ProgramContext<LinuxScenario>): Promise<JsonValue> {
  const scenario = program.args;
  const side = await Side.open(program);
  const end = await End.open(side, scenario);
  const told: string[][] = [];
  for (const [at, step] of scenario.steps.entries()) {
    const statuses = await end.play(step, `step ${at}`);
    told.push(statuses);
    const isGood = statuses.every((status) => status === 'SUCCESS');
    await side.tell(`good ${at}`, isGood);
    if (!((await side.hear(`good ${at}`)) && isGood)) break;
  }
  return told;
}
