/** An open device of a program, with its objects, which it destroys when the program ends. */
import {
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from '../../../experiments/workloads/index.ts';
import * as ibv from '../../../userlib/index.ts';

export class Device {
  readonly endpoint: RcEndpoint;
  readonly #qps = new Set<ibv.IbvQp | ibv.IbvTargetQp>();
  readonly #handles: ibv.IbvAh[] = [];
  readonly #cqs = new Set<ibv.IbvCq>();
  readonly #channels: ibv.IbvCompChannel[] = [];
  readonly #srqs: ibv.IbvSrq[] = [];
  /** Destroyed before their CQs. */
  readonly #xrcQueues: ibv.IbvSrq[] = [];
  readonly #regions = new Set<ibv.IbvMr>();
  readonly #domains: ibv.IbvPd[] = [];
  readonly #xrcDomains: ibv.IbvXrcd[] = [];
  #isOpen = true;

  private constructor(endpoint: RcEndpoint) {
    this.endpoint = endpoint;
  }

  static async open(program: RcEndpoint['program']): Promise<Device> {
    return new Device(await openEndpoint(program));
  }

  get context(): ibv.IbvContext {
    return this.endpoint.context;
  }

  get pd(): ibv.IbvPd {
    return this.endpoint.pd;
  }

  async channel(): Promise<ibv.IbvCompChannel> {
    const channel = await ibv.createCompChannel(this.context);
    this.#channels.push(channel);
    return channel;
  }

  async cq(entries: number, channel: ibv.IbvCompChannel | null = null, vector = 0): Promise<ibv.IbvCq> {
    const cq = await ibv.createCq(this.context, entries, null, channel, vector);
    this.#cqs.add(cq);
    return cq;
  }

  /** Makes RC QPs in RESET that complete into one CQ. */
  async rcQps(
    count: number,
    cq: ibv.IbvCq,
    cap: Partial<ibv.QpCap>,
    { pd = this.pd, inlRecvSz = 0 }: { pd?: ibv.IbvPd; inlRecvSz?: number } = {},
  ): Promise<ibv.IbvQp[]> {
    const qps = await createRcQps({ ...this.endpoint, pd }, count, { send: cq, receive: cq }, cap, inlRecvSz);
    return qps.map((qp) => this.own(qp));
  }

  /** Makes a QP of any kind in RESET that completes into one CQ. */
  async qp(cq: ibv.IbvCq, init: Omit<ibv.IbvQpInitAttr, 'sendCq' | 'recvCq'>): Promise<ibv.IbvQp> {
    return this.own(await ibv.createQp(this.pd, { sendCq: cq, recvCq: cq, ...init, cap: { ...init.cap } }));
  }

  /** Destroys a QP that was created elsewhere when the program ends. */
  own<Q extends ibv.IbvQp | ibv.IbvTargetQp>(qp: Q): Q {
    this.#qps.add(qp);
    return qp;
  }

  async srq(attr: { readonly maxWr: number; readonly maxSge: number }): Promise<ibv.IbvSrq> {
    const srq = await ibv.createSrq(this.pd, { attr: { ...attr } });
    this.#srqs.push(srq);
    return srq;
  }

  /** Makes a shared receive queue of an XRC domain. */
  async xrcQueue(init: Parameters<typeof ibv.createSrqEx>[1]): Promise<ibv.IbvSrq> {
    const srq = await ibv.createSrqEx(this.context, init);
    this.#xrcQueues.push(srq);
    return srq;
  }

  async xrcDomain(): Promise<ibv.IbvXrcd> {
    const xrcd = await ibv.openXrcd(this.context, { fd: -1, oflags: 0 });
    this.#xrcDomains.push(xrcd);
    return xrcd;
  }

  /** Destroys an address handle when the program ends. */
  handle(handle: ibv.IbvAh): ibv.IbvAh {
    this.#handles.push(handle);
    return handle;
  }

  /** Maps memory and registers it. */
  async buffer(lengthBytes: number, access?: number, pd = this.pd): Promise<RcBuffer> {
    const buffer = await createBuffer({ ...this.endpoint, pd }, lengthBytes, access);
    this.#regions.add(buffer.region);
    return buffer;
  }

  async region(address: number, lengthBytes: number, access: number, pd = this.pd): Promise<ibv.IbvMr> {
    const region = await ibv.regMr(pd, address, lengthBytes, access);
    this.#regions.add(region);
    return region;
  }

  async domain(): Promise<ibv.IbvPd> {
    const pd = await ibv.allocPd(this.context);
    this.#domains.push(pd);
    return pd;
  }

  async destroyQp(qp: ibv.IbvQp): Promise<void> {
    this.#qps.delete(qp);
    await ibv.destroyQp(qp);
  }

  async destroyCq(cq: ibv.IbvCq): Promise<void> {
    this.#cqs.delete(cq);
    await ibv.destroyCq(cq);
  }

  async deregister(region: ibv.IbvMr): Promise<void> {
    this.#regions.delete(region);
    await ibv.deregMr(region);
  }

  /** Destroys all objects that are left, and closes the device. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const qp of this.#qps) await ibv.destroyQp(qp);
    for (const handle of this.#handles) await ibv.destroyAh(handle);
    for (const srq of this.#xrcQueues) await ibv.destroySrq(srq);
    for (const cq of this.#cqs) {
      ibv.ackCqEvents(cq, cq.eventsUnacked);
      await ibv.destroyCq(cq);
    }
    for (const channel of this.#channels) await ibv.destroyCompChannel(channel);
    for (const srq of this.#srqs) await ibv.destroySrq(srq);
    for (const region of this.#regions) await ibv.deregMr(region);
    for (const xrcd of this.#xrcDomains) await ibv.closeXrcd(xrcd);
    for (const pd of [...this.#domains, this.pd]) await ibv.deallocPd(pd);
    await ibv.closeDevice(this.context);
  }
}
