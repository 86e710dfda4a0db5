/** Connections of rdma_cm, and a side that has several of them: scenes about the connection manager share these. */

import type { Driver } from '../../driver/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import * as ibv from '../../userlib/index.ts';
import { psPerMs, psPerUs, SEND, type Stage, topic } from './language/index.ts';

export const cmPort = 7471;
export const cmServer = '10.0.0.2';
/** Reason of a REJ: a stale connection (IBTA volume 1, 12.6.7.2). */
export const reasonStale = 10;
/** Longest message of a {@link CmParty}. */
export const cmBytesMax = 4096;
const resolveMs = 2000;
/** Patience for one message or answer: an unanswered REQ is repeated after more than four seconds. */
export const cmPatiencePs = 2000 * psPerMs;
const resetPatiencePs = 10_000 * psPerMs;

export const listening = topic<true>('listening');

/** Name of an event without its prefix. */
export const nameOf = ({ event }: ibv.RdmaCmEvent): string =>
  ibv.rdmaEventStr(event).replace('RDMA_CM_EVENT_', '');

/** PD, memory, CQ and QP of an ID. */
export class CmConnection {
  readonly id: ibv.RdmaCmId;
  readonly address: number;
  readonly cq: ibv.IbvCq;
  readonly #pd: ibv.IbvPd;
  readonly #mr: ibv.IbvMr;
  readonly #qp: ibv.IbvQp;

  private constructor(
    id: ibv.RdmaCmId,
    address: number,
    objects: {
      readonly pd: ibv.IbvPd;
      readonly mr: ibv.IbvMr;
      readonly cq: ibv.IbvCq;
      readonly qp: ibv.IbvQp;
    },
  ) {
    this.id = id;
    this.address = address;
    this.cq = objects.cq;
    this.#pd = objects.pd;
    this.#mr = objects.mr;
    this.#qp = objects.qp;
  }

  static async build(
    id: ibv.RdmaCmId,
    memory: ProgramContext['memory'],
    bytes: number,
  ): Promise<CmConnection> {
    const pd = await ibv.allocPd(id.verbs!);
    const address = memory.map(bytes);
    const mr = await ibv.regMr(pd, address, bytes, ibv.IBV_ACCESS_LOCAL_WRITE);
    const cq = await ibv.createCq(id.verbs!, 4);
    const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
    return new CmConnection(id, address, { pd, mr, cq, qp });
  }

  send(wrId: number, length: number): void {
    const request = { wrId, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED };
    ibv.postSend(this.#qp, { ...request, ...this.#list(0, length) });
  }

  receive(wrId: number, offset: number, length: number): void {
    ibv.postRecv(this.#qp, { wrId, ...this.#list(offset, length) });
  }

  /** Releases all resources. */
  async end(): Promise<void> {
    await ibv.rdmaDestroyQp(this.id);
    await ibv.destroyCq(this.cq);
    await ibv.deregMr(this.#mr);
    await ibv.deallocPd(this.#pd);
    await ibv.rdmaDestroyId(this.id);
  }

  #list(offset: number, length: number) {
    return { sgList: [{ addr: this.address + offset, length, lkey: this.#mr.lkey }], numSge: 1 };
  }
}

/** Listens at any address, and notifies the client. */
export async function listen(
  stage: Stage<unknown>,
  channel: ibv.RdmaEventChannel,
  backlog: number,
): Promise<ibv.RdmaCmId> {
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort: cmPort });
  await ibv.rdmaListen(listener, backlog);
  await stage.put(listening, true);
  return listener;
}

/** One side, whose device may be reset: its channel and its connections. */
export class CmParty<Args> {
  readonly connections = new Map<ibv.RdmaCmId, CmConnection>();
  readonly stage: Stage<Args>;
  readonly channel: ibv.RdmaEventChannel;

  constructor(stage: Stage<Args>, channel: ibv.RdmaEventChannel) {
    this.stage = stage;
    this.channel = channel;
  }

  async build(id: ibv.RdmaCmId): Promise<CmConnection> {
    const connection = await CmConnection.build(id, this.stage.memory, cmBytesMax);
    this.connections.set(id, connection);
    return connection;
  }

  /** Destroys an ID and the objects that belong to it. */
  async end(id: ibv.RdmaCmId): Promise<void> {
    const connection = this.connections.get(id);
    this.connections.delete(id);
    await (connection === undefined ? ibv.rdmaDestroyId(id) : connection.end());
  }

  /** The next event of the channel, acknowledged. */
  async next(patiencePs: number): Promise<ibv.RdmaCmEvent | undefined> {
    const event = await ibv.rdmaGetCmEvent(this.channel, patiencePs);
    if (event !== undefined) ibv.rdmaAckCmEvent(event);
    return event;
  }

  /** Ends the ID of an event, unless it belongs to the connection being made. */
  async settle({ id, event }: ibv.RdmaCmEvent): Promise<void> {
    if (event !== ibv.RDMA_CM_EVENT_TIMEWAIT_EXIT && this.connections.has(id)) await this.end(id);
  }

  /** Handles the events that have arrived. */
  async settleAll(): Promise<void> {
    for (let event = await this.next(psPerMs); event !== undefined; event = await this.next(psPerMs))
      await this.settle(event);
  }

  /** Requests a connection. @returns its ID, and the event that ended the request, with its status unless that is 0 */
  async ask(
    patiencePs: number,
    connect = (id: ibv.RdmaCmId) => ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 }),
  ): Promise<{ id: ibv.RdmaCmId; what: string }> {
    const id = await ibv.rdmaCreateId(this.channel, null, ibv.RDMA_PS_TCP);
    await ibv.rdmaResolveAddr(id, null, { sinAddr: cmServer, sinPort: cmPort }, resolveMs);
    for (;;) {
      const event = await this.next(patiencePs);
      if (event === undefined) return { id, what: 'no event' };
      const what = event.status === 0 ? nameOf(event) : `${nameOf(event)} ${event.status}`;
      if (event.id !== id) await this.settle(event);
      else if (what === 'ADDR_RESOLVED') await ibv.rdmaResolveRoute(id, resolveMs);
      else if (what === 'ROUTE_RESOLVED') {
        await this.build(id);
        await connect(id);
      } else return { id, what };
    }
  }

  /** Accepts a request, with a receive for one message. */
  async accept(id: ibv.RdmaCmId, lengthBytes: number): Promise<void> {
    const connection = await this.build(id);
    this.stage.memory.write(connection.address, new Uint8Array(lengthBytes));
    connection.receive(1, 0, lengthBytes);
    await ibv.rdmaAccept(id);
  }

  /**
   * Sends a message. @returns the status of its completion; undefined if none arrived
   */
  send(id: ibv.RdmaCmId, bytes: Uint8Array): Promise<string | undefined> {
    const connection = this.connections.get(id)!;
    this.stage.memory.write(connection.address, bytes);
    connection.send(1, bytes.length);
    return this.completed(id);
  }

  /**
   * Waits for a completion. @returns its status; undefined if none arrived
   */
  async completed(id: ibv.RdmaCmId): Promise<string | undefined> {
    const patience = { napPs: 20 * psPerUs, patiencePs: cmPatiencePs };
    const [end] = await this.stage.watch(this.connections.get(id)!.cq, 1, patience);
    return end?.status;
  }

  /** Resets the own device as Linux does after an internal error, and waits until its driver is back. */
  async reset(): Promise<void> {
    const { stage } = this;
    const driver = stage.context.verbs.devices[0] as Driver;
    driver.device.lifecycle.die('the scene wants it');
    const beganPs = stage.nowPs;
    while (!driver.isProbed && stage.nowPs - beganPs < resetPatiencePs) await stage.sleepMs(1);
  }

  async close(): Promise<void> {
    await this.settleAll();
    for (const id of [...this.connections.keys()]) await this.end(id);
    await ibv.rdmaDestroyEventChannel(this.channel);
  }
}
