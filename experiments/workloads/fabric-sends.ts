/**
 * One host's program of a fabric whose flows are SENDs, over each transport that has them:
 *
 *     RC        the QPs of each flow, each with a receive queue, or all with one shared receive queue
 *     XRC       the initiators of each flow, and at its other end targets; one shared receive queue of the host
 *     UD        the QPs of the host, for all of its flows
 *
 * All receives are posted before the first message: neither an RNR NAK nor a datagram without a receive belongs to the measurement. A flow
 * lasts until its receiver has polled its last message.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  createQp,
  createQpEx,
  createSrq,
  createSrqEx,
  type DeviceAttr,
  getSrqNum,
  IBV_QPT_RC,
  IBV_QPT_UD,
  IBV_QPT_XRC_RECV,
  IBV_QPT_XRC_SEND,
  IBV_SRQT_XRC,
  type IbvCq,
  type IbvQp,
  type IbvRecvWr,
  type IbvSrq,
  type IbvTargetQp,
  type IbvXrcd,
  O_CREAT,
  openXrcd,
  postRecv,
  postSrqRecv,
  queryDevice,
} from '../../userlib/index.ts';
import { commonStart } from './common-start.ts';
import { CompletionPoller, checkPosted } from './completion-poller.ts';
import { type FabricArgs, type FabricSide, type Flow, flowsOf } from './fabric-plan.ts';
import { awaitPosters, contentOf, type FlowEnd, Sender } from './fabric-traffic.ts';
import { type ExtendedQp, extendedSteps } from './perf-xrc.ts';
import { announcedOf, handleTo, type PortAddress, peerFrom } from './port-address.ts';
import {
  connectQps,
  createBuffer,
  endpointTo,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
  rcSteps,
} from './rc-endpoint.ts';
import { connectUd, initUd, qkey } from './unreliable-states.ts';

type Program = ProgramContext<FabricArgs>;

/** Bytes before a datagram in its receive: IBTA vol 1, 11.4.2.1. */
const grhBytes = 40;

export async function sendingHost(program: Program): Promise<FabricSide> {
  const { args, node } = program;
  const { trafficClass } = args;
  const endpoint = await openEndpoint(program, trafficClass === undefined ? {} : { trafficClass });
  checkDatagram(args, 128 * 2 ** endpoint.port.activeMtu);
  const flows = flowsOf(args).filter(({ from, to }) => from === node || to === node);
  const incoming = flows.filter(({ to }) => to === node);
  const outgoingCount = flows.length - incoming.length;
  checkDepths(args, incoming.length, outgoingCount, await queryDevice(endpoint.context));
  const depth = flows.length * (args.window + args.messages) + 1;
  const cq = await createCq(endpoint.context, depth);
  const inbox = await Inbox.open(endpoint, program, incoming);
  const transport = await transportOf(endpoint, args, cq, inbox, outgoingCount);
  const ends: FlowEnd[] = [];
  for (const flow of flows) ends.push(await transport.connect(flow));
  const startPs = await commonStart(program, args.hostCount);
  await program.cpu.sleep(startPs - Number(program.cpu.instantPs));
  const sent = ends.filter(({ flow }) => flow.from === node);
  const results = await new Sender(program, sent, new CompletionPoller(cq), inbox).run(startPs);
  await awaitPosters(program, ends);
  return {
    startPs,
    flows: results,
    wrong: inbox.wrong(),
    arrivals: inbox.arrivals(startPs),
    qpCount: transport.qpCount,
    receiveQueueCount: inbox.queueCount,
  };
}

/** @throws ConfigurationError for datagrams longer than a packet of the port */
function checkDatagram({ connection, sizeBytes }: FabricArgs, mtuBytes: number): void {
  if (connection !== 'UD' || sizeBytes <= mtuBytes) return;
  const range = `at most the MTU of the port, ${mtuBytes}, with connection UD: a datagram is one packet`;
  throw new ConfigurationError('size', sizeBytes, range);
}

/** @throws ConfigurationError for more messages or a larger window than the queues of the card take */
function checkDepths(
  { connection, usesSrq, messages, window, qpCount = 1 }: FabricArgs,
  incomingCount: number,
  outgoingCount: number,
  { maxQpWr, maxSrqWr }: Pick<DeviceAttr, 'maxQpWr' | 'maxSrqWr'>,
): void {
  const isShared = connection === 'XRC' || usesSrq === true;
  const depth = isShared ? maxSrqWr : maxQpWr;
  const flowCount = isShared || connection === 'UD' ? incomingCount : 1;
  const messagesMax = Math.floor(depth / flowCount) * (isShared ? 1 : qpCount);
  if (incomingCount > 0 && messages > messagesMax)
    throw new ConfigurationError(
      'messages',
      messages,
      `at most ${messagesMax}: all receives are posted at first, those of ${flowCount} flows to a queue, which takes ${depth}`,
    );
  const windowMax = connection === 'UD' ? Math.floor(maxQpWr / outgoingCount) : maxQpWr;
  if (outgoingCount > 0 && window > windowMax)
    throw new ConfigurationError(
      'window',
      window,
      `at most ${windowMax}: ${outgoingCount} flows share a send queue, which takes ${maxQpWr}`,
    );
}

/** The receives of a host, and the messages that arrived in them. The first byte of a message names its flow. */
class Inbox {
  readonly #program: Program;
  readonly #flows: readonly Flow[];
  readonly #buffer: RcBuffer;
  readonly #headerBytes: number;
  readonly #slotBytes: number;
  /** For each flow: the slots of its messages, and the arrival of the last. */
  readonly #slots: number[][];
  readonly #endPs: number[];
  #posted = 0;
  #foreign = 0;
  queueCount = 0;

  private constructor(program: Program, flows: readonly Flow[], buffer: RcBuffer, headerBytes: number) {
    this.#program = program;
    this.#flows = flows;
    this.#buffer = buffer;
    this.#headerBytes = headerBytes;
    this.#slotBytes = program.args.sizeBytes + headerBytes;
    this.#slots = flows.map(() => []);
    this.#endPs = flows.map(() => 0);
  }

  static async open(endpoint: RcEndpoint, program: Program, flows: readonly Flow[]): Promise<Inbox> {
    const { connection, sizeBytes, messages } = program.args;
    const headerBytes = connection === 'UD' ? grhBytes : 0;
    const buffer = await createBuffer(endpoint, flows.length * messages * (sizeBytes + headerBytes));
    return new Inbox(program, flows, buffer, headerBytes);
  }

  /** Messages that all flows to this host have together. */
  get total(): number {
    return this.#flows.length * this.#program.args.messages;
  }

  /** Messages of a flow, or of all, that one of several queues receives in turn. */
  share(messages: number, queue: number, queueCount: number): number {
    return Math.ceil((messages - queue) / queueCount);
  }

  /** Posts `count` receives to one queue. @param post a receive; its result is that of ibv_post_recv */
  fill(count: number, post: (wr: IbvRecvWr) => number): void {
    this.queueCount++;
    for (let index = 0; index < count; index++) {
      const slot = this.#posted++;
      const addr = this.#buffer.address + slot * this.#slotBytes;
      const sgList = [{ addr, length: this.#slotBytes, lkey: this.#buffer.region.lkey }];
      checkPosted(post({ wrId: receiveId(slot), sgList, numSge: 1 }));
    }
  }

  /** Notes the completion of a receive. */
  arrived(wrId: number, nowPs: number): void {
    const slot = -1 - wrId;
    const flow = this.#flows.findIndex((one) => contentOf(one, 1)[0] === this.#bytesAt(slot, 1)[0]);
    if (flow < 0) {
      this.#foreign++;
      return;
    }
    this.#slots[flow]!.push(slot);
    this.#endPs[flow] = nowPs;
  }

  /** Flows to this host with a number of messages or bytes other than sent; all if a message is of none of them. */
  wrong(): Flow[] {
    if (this.#foreign > 0) return [...this.#flows];
    const { messages, sizeBytes } = this.#program.args;
    return this.#flows.filter((flow, index) => {
      const expected = contentOf(flow, sizeBytes);
      const slots = this.#slots[index]!;
      const isAsSent = (slot: number): boolean =>
        this.#bytesAt(slot, sizeBytes).every((byte, at) => byte === expected[at]);
      return slots.length !== messages || !slots.every(isAsSent);
    });
  }

  arrivals(startPs: number): NonNullable<FabricSide['arrivals']> {
    return this.#flows.map((flow, index) => ({ ...flow, durationPs: this.#endPs[index]! - startPs }));
  }

  #bytesAt(slot: number, length: number): Uint8Array {
    const { memory } = this.#program;
    return memory.read(this.#buffer.address + slot * this.#slotBytes + this.#headerBytes, length);
  }
}

/** Receives have negative numbers, sends those of their lanes. */
const receiveId = (slot: number): number => -1 - slot;

/** The QPs of a host, and how each of its flows uses them. */
interface Transport {
  readonly qpCount: number;
  connect(flow: Flow): Promise<FlowEnd>;
}

async function transportOf(
  endpoint: RcEndpoint,
  args: FabricArgs,
  cq: IbvCq,
  inbox: Inbox,
  outgoingCount: number,
): Promise<Transport> {
  const attr = { maxWr: Math.max(1, inbox.total), maxSge: 1 };
  switch (args.connection) {
    case 'UD':
      return Datagrams.open(endpoint, args, cq, inbox, outgoingCount);
    case 'XRC': {
      const xrcd = await openXrcd(endpoint.context, { fd: -1, oflags: O_CREAT });
      const srq = await createSrqEx(endpoint.context, {
        pd: endpoint.pd,
        attr,
        srqType: IBV_SRQT_XRC,
        xrcd,
        cq,
      });
      inbox.fill(inbox.total, (wr) => postSrqRecv(srq, wr));
      return new ExtendedConnections(endpoint, args, cq, { xrcd, srq });
    }
    default: {
      const srq = args.usesSrq === true ? await createSrq(endpoint.pd, { attr }) : undefined;
      if (srq !== undefined) inbox.fill(inbox.total, (wr) => postSrqRecv(srq, wr));
      return new Connections(endpoint, args, cq, inbox, srq);
    }
  }
}

/** The buffer of a flow that begins here, with its content. */
async function sourceOf(endpoint: RcEndpoint, flow: Flow, { sizeBytes }: FabricArgs): Promise<RcBuffer> {
  const { program } = endpoint;
  const isSource = flow.from === program.node;
  const buffer = await createBuffer(endpoint, isSource ? sizeBytes : 0);
  if (isSource) program.memory.write(buffer.address, contentOf(flow, sizeBytes));
  return buffer;
}

const nowhere = { address: 0, rkey: 0 } as const;
const labelOf = ({ from, to }: Flow): string => `fabric.${from}.${to}`;

/** The endpoint for one flow, with its service level. */
function pairOf(endpoint: RcEndpoint, { from, to, serviceLevel }: Flow): RcEndpoint {
  const far = from === endpoint.program.node ? to : from;
  const own = serviceLevel === undefined ? endpoint.own : { ...endpoint.own, serviceLevel };
  return endpointTo({ ...endpoint, own }, far);
}

/** RC: QPs of each flow. */
class Connections implements Transport {
  readonly #endpoint: RcEndpoint;
  readonly #args: FabricArgs;
  readonly #cq: IbvCq;
  readonly #inbox: Inbox;
  readonly #srq: IbvSrq | undefined;
  qpCount = 0;

  constructor(endpoint: RcEndpoint, args: FabricArgs, cq: IbvCq, inbox: Inbox, srq: IbvSrq | undefined) {
    this.#endpoint = endpoint;
    this.#args = args;
    this.#cq = cq;
    this.#inbox = inbox;
    this.#srq = srq;
  }

  async connect(flow: Flow): Promise<FlowEnd> {
    const { qpCount: count = 1, messages, window } = this.#args;
    const endpoint = pairOf(this.#endpoint, flow);
    const isReceiver = flow.to === endpoint.program.node;
    const qps: IbvQp[] = [];
    for (let index = 0; index < count; index++) {
      const receives = isReceiver ? this.#inbox.share(messages, index, count) : 1;
      const cap = { maxSendWr: isReceiver ? 1 : window, maxRecvWr: Math.max(1, receives) };
      const shared = this.#srq === undefined ? {} : { srq: this.#srq };
      const init = { sendCq: this.#cq, recvCq: this.#cq, qpType: IBV_QPT_RC, cap, ...shared };
      qps.push(await createQp(endpoint.pd, init));
    }
    this.qpCount += count;
    const beforeReady = (): void => {
      if (!isReceiver || this.#srq !== undefined) return;
      for (const [index, qp] of qps.entries())
        this.#inbox.fill(this.#inbox.share(messages, index, count), (wr) => postRecv(qp, wr));
    };
    await connectQps(endpoint, qps, labelOf(flow), null, { ...rcSteps(endpoint, 0), beforeReady });
    const buffer = await sourceOf(endpoint, flow, this.#args);
    return { flow, buffer, qps, remote: nowhere, completesEarly: false };
  }
}

/** XRC: initiators and targets of each flow; receives in the host's shared queue. */
class ExtendedConnections implements Transport {
  readonly #endpoint: RcEndpoint;
  readonly #args: FabricArgs;
  readonly #cq: IbvCq;
  readonly #own: { readonly xrcd: IbvXrcd; readonly srq: IbvSrq };
  qpCount = 0;

  constructor(
    endpoint: RcEndpoint,
    args: FabricArgs,
    cq: IbvCq,
    own: { readonly xrcd: IbvXrcd; readonly srq: IbvSrq },
  ) {
    this.#endpoint = endpoint;
    this.#args = args;
    this.#cq = cq;
    this.#own = own;
  }

  async connect(flow: Flow): Promise<FlowEnd> {
    const { qpCount: count = 1, window } = this.#args;
    const endpoint = pairOf(this.#endpoint, flow);
    const { context, pd, program } = endpoint;
    const { xrcd, srq } = this.#own;
    const isSource = flow.from === program.node;
    const initiators: IbvQp[] = [];
    const targets: IbvTargetQp[] = [];
    const cap = { maxSendWr: window, maxRecvWr: 0, maxSendSge: 1, maxRecvSge: 0, maxInlineData: 0 };
    for (let index = 0; index < count; index++)
      if (isSource)
        initiators.push(await createQpEx(context, { pd, sendCq: this.#cq, qpType: IBV_QPT_XRC_SEND, cap }));
      else targets.push(await createQpEx(context, { qpType: IBV_QPT_XRC_RECV, xrcd }));
    this.qpCount += count;
    const qps: readonly ExtendedQp[] = isSource ? initiators : targets;
    const note = { srqNumber: getSrqNum(srq) };
    const steps = { ...extendedSteps(endpoint, 0), beforeReady: () => {} };
    const peer = await connectQps<typeof note, ExtendedQp>(endpoint, qps, labelOf(flow), note, steps);
    const buffer = await sourceOf(endpoint, flow, this.#args);
    const to = { qpType: { xrc: { remoteSrqn: peer.note.srqNumber } } };
    return { flow, buffer, qps: initiators, remote: nowhere, completesEarly: false, addressing: () => to };
  }
}

/** UD: the QPs of a host; those of the sender and of the receiver with the same number belong together. */
class Datagrams implements Transport {
  readonly #endpoint: RcEndpoint;
  readonly #args: FabricArgs;
  readonly #qps: readonly IbvQp[];

  private constructor(endpoint: RcEndpoint, args: FabricArgs, qps: readonly IbvQp[]) {
    this.#endpoint = endpoint;
    this.#args = args;
    this.#qps = qps;
  }

  static async open(
    endpoint: RcEndpoint,
    args: FabricArgs,
    cq: IbvCq,
    inbox: Inbox,
    outgoingCount: number,
  ): Promise<Datagrams> {
    const { qpCount = 1, messages, window } = args;
    const flowCount = inbox.total / messages;
    const qps: IbvQp[] = [];
    for (let index = 0; index < qpCount; index++) {
      const receives = flowCount * inbox.share(messages, index, qpCount);
      const depths = { maxSendWr: Math.max(1, window * outgoingCount), maxRecvWr: Math.max(1, receives) };
      const cap = { ...depths, maxSendSge: 1, maxRecvSge: 1 };
      const qp = await createQp(endpoint.pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_UD, cap });
      await initUd(qp);
      inbox.fill(receives, (wr) => postRecv(qp, wr));
      await connectUd(qp, 0);
      qps.push(qp);
    }
    return new Datagrams(endpoint, args, qps);
  }

  get qpCount(): number {
    return this.#qps.length;
  }

  async connect(flow: Flow): Promise<FlowEnd> {
    const endpoint = pairOf(this.#endpoint, flow);
    const { program, own, pd } = endpoint;
    const { exchange, node } = program;
    const buffer = await sourceOf(endpoint, flow, this.#args);
    const end = { flow, buffer, qps: this.#qps, remote: nowhere, completesEarly: false };
    if (flow.to === node) {
      const qpNumbers = this.#qps.map(({ qpNum }) => qpNum);
      await exchange.put(labelOf(flow), { ...announcedOf(own), qpNumbers });
      return end;
    }
    const { qpNumbers, ...there } = await exchange.take<
      PortAddress & { readonly qpNumbers: readonly number[] }
    >(labelOf(flow));
    if (qpNumbers.length !== this.#qps.length)
      throw new InvariantError('QPs of the receiver', qpNumbers.length, `${this.#qps.length}`);
    const ah = await handleTo(pd, peerFrom(own, there));
    const addressing: NonNullable<FlowEnd['addressing']> = (turn) => ({
      wr: { ud: { ah, remoteQpn: qpNumbers[turn]!, remoteQkey: qkey } },
    });
    return { ...end, addressing };
  }
}
