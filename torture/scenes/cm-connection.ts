/** A connection of rdma_cm, with what its messages need: what scenes about the connection manager share. */
import type { ProgramContext } from '../../machine/index.ts';
import * as ibv from '../../userlib/index.ts';
import { SEND } from './language/index.ts';

export const cmPort = 7471;
export const cmServer = '10.0.0.2';

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

  /** Gives everything back. */
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
