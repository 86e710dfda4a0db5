/**
 * One end of a test: an open device and as many connected pairs of QPs as the test requests, with every attribute that
 * a test may want to change. The program on the second host requests the same pairs in the same order.
 *
 *     Side.open ─► pair('label', options) ─► post … ─► take(cq, n) ─► closePair
 */

import {
  announcedOf,
  ownAddressOf,
  type PeerAddress,
  peerFrom,
} from '../../experiments/workloads/port-address.ts';
import { allAccess, type RcAttributes, toInit, toRtr, toRts } from '../../experiments/workloads/rc-states.ts';
import type { JsonLike, JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  allocPd,
  createCq,
  createQp,
  deregMr,
  destroyCq,
  destroyQp,
  getDeviceList,
  IBV_MTU_1024,
  IBV_QPT_RC,
  type IbvContext,
  type IbvCq,
  type IbvMr,
  type IbvPd,
  type IbvQp,
  type IbvSrq,
  openDevice,
  type PortAttr,
  type QpCap,
  queryPort,
  queryQp,
  regMr,
} from '../../userlib/index.ts';
import { eventsWithin } from './outcomes.ts';

/** Memory with its region. */
export interface Area {
  readonly address: number;
  readonly lengthBytes: number;
  readonly mr: IbvMr;
}

export interface PairOptions {
  readonly pd?: IbvPd;
  readonly cap?: Partial<QpCap>;
  /** Rights of the QP, and of its buffer. */
  readonly qpAccess?: number;
  readonly bufferAccess?: number;
  readonly bufferBytes?: number;
  /** PD of the buffer, if it is not the QP's. */
  readonly bufferPd?: IbvPd;
  readonly mtu?: PortAttr['activeMtu'];
  /** ACK timeout 4.096 µs × 2^code; 0 waits without limit. */
  readonly timeoutCode?: number;
  readonly retryCount?: number;
  readonly rnrRetryCount?: number;
  readonly rnrTimerCode?: number;
  readonly readsMax?: number;
  readonly srq?: IbvSrq;
  readonly sendCq?: IbvCq;
  readonly recvCq?: IbvCq;
  readonly sqSigAll?: number;
  /** Data sent to the peer. */
  readonly note?: JsonValue;
  /** Called in INIT: receives can be posted before anything arrives. */
  beforeReady?(pair: Pair): void;
}

/** Data of a pair that one side sends to the other. */
export interface Remote extends PeerAddress {
  readonly qpNum: number;
  readonly psn: number;
  readonly address: number;
  readonly rkey: number;
  readonly note: JsonValue;
}

export interface Pair {
  readonly label: string;
  readonly qp: IbvQp;
  readonly sendCq: IbvCq;
  readonly recvCq: IbvCq;
  readonly buffer: Area;
  /** Limits as granted. */
  readonly cap: QpCap;
  remote: Remote;
}

const defaultCap: QpCap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 4, maxRecvSge: 4, maxInlineData: 64 };

/** The attributes of a pair's connection: short times, so that a test does not wait. */
export const attributesOf = (options: PairOptions): RcAttributes => ({
  pathMtu: options.mtu ?? IBV_MTU_1024,
  readAtomicMax: options.readsMax ?? 4,
  timeoutCode: options.timeoutCode ?? 5,
  retryCount: options.retryCount ?? 7,
  rnrRetryCount: options.rnrRetryCount ?? 7,
  rnrTimerCode: options.rnrTimerCode ?? 1,
});

export class Side {
  readonly program: ProgramContext;
  readonly context: IbvContext;
  readonly pd: IbvPd;
  readonly port: PortAttr;
  /** Location of the port. */
  readonly own: PeerAddress;

  private constructor(
    program: ProgramContext,
    context: IbvContext,
    pd: IbvPd,
    port: PortAttr,
    own: PeerAddress,
  ) {
    this.program = program;
    this.context = context;
    this.pd = pd;
    this.port = port;
    this.own = own;
  }

  static async open(program: ProgramContext): Promise<Side> {
    const context = await openDevice(getDeviceList(program.verbs)[0]!);
    const pd = await allocPd(context);
    const port = await queryPort(context, 1);
    return new Side(program, context, pd, port, await ownAddressOf(context, port));
  }

  /** Maps memory and registers it. */
  async area(lengthBytes: number, access = allAccess, pd = this.pd): Promise<Area> {
    const address = this.program.memory.map(lengthBytes);
    return { address, lengthBytes, mr: await regMr(pd, address, lengthBytes, access) };
  }

  /** A QP in RESET with its own CQs and buffer. */
  async unconnected(label: string, options: PairOptions = {}): Promise<Pair> {
    const { context } = this;
    const pd = options.pd ?? this.pd;
    const sendCq = options.sendCq ?? (await createCq(context, 64));
    const recvCq = options.recvCq ?? (await createCq(context, 64));
    const cap = { ...defaultCap, ...options.cap };
    const srq = options.srq ?? null;
    const init = { sendCq, recvCq, srq, cap, qpType: IBV_QPT_RC, sqSigAll: options.sqSigAll ?? 0 };
    const qp = await createQp(pd, init);
    const buffer = await this.area(
      options.bufferBytes ?? 4096,
      options.bufferAccess ?? allAccess,
      options.bufferPd ?? pd,
    );
    const remote = { lid: 0, qpNum: 0, psn: 0, address: 0, rkey: 0, note: null };
    return { label, qp, sendCq, recvCq, buffer, cap: init.cap, remote };
  }

  /** A QP in RTS, connected to that of the peer's call with the same label. */
  async pair(label: string, options: PairOptions = {}): Promise<Pair> {
    const pair = await this.unconnected(label, options);
    const psn = this.program.random.below(1 << 24);
    await toInit(pair.qp, options.qpAccess ?? allAccess);
    options.beforeReady?.(pair);
    await this.tell(label, {
      ...announcedOf(this.own),
      qpNum: pair.qp.qpNum,
      psn,
      address: pair.buffer.address,
      rkey: pair.buffer.mr.rkey,
      note: options.note ?? null,
    });
    const remote = await this.hear<Remote>(label);
    pair.remote = { ...remote, ...peerFrom(this.own, remote) };
    await toRtr(pair.qp, pair.remote, attributesOf(options));
    await toRts(pair.qp, psn, attributesOf(options));
    await this.barrier(`${label} ready`);
    return pair;
  }

  /** Destroys objects created by {@link pair}; not CQs and PDs passed in the options. */
  async closePair(pair: Pair, options: PairOptions = {}): Promise<void> {
    await destroyQp(pair.qp);
    if (options.sendCq === undefined) await destroyCq(pair.sendCq);
    if (options.recvCq === undefined) await destroyCq(pair.recvCq);
    await deregMr(pair.buffer.mr);
    this.program.memory.unmap(pair.buffer.address, pair.buffer.lengthBytes);
  }

  tell(name: string, value: JsonLike): Promise<void> {
    return this.program.exchange.put(name, value);
  }

  hear<Value = JsonValue>(name: string): Promise<Value> {
    return this.program.exchange.take(name);
  }

  async barrier(name: string): Promise<void> {
    await this.tell(`barrier ${name}`, true);
    await this.hear(`barrier ${name}`);
  }

  /** Names of the asynchronous events until none has occurred for a while. */
  events(): Promise<string[]> {
    return eventsWithin(this.context);
  }

  /** The QP's state as reported by the device. */
  async stateOf(pair: Pair): Promise<string> {
    const names = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'];
    return names[(await queryQp(pair.qp)).qpState ?? 0]!;
  }

  write(area: Area, bytes: Uint8Array, offset = 0): void {
    this.program.memory.write(area.address + offset, bytes);
  }

  read(area: Area, lengthBytes: number, offset = 0): Uint8Array {
    return this.program.memory.read(area.address + offset, lengthBytes);
  }
}
