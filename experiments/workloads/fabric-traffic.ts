/**
 * One host's program of a fabric: the reliable connections of each flow that begins or ends here. All connect, agree on an instant over
 * the exchange, and then send: each flow keeps its window full, its messages go to its QPs in turn, and one thread posts for all flows in
 * turn.
 *
 *     connect each flow ─▶ host 0 knows that all are ready ─▶ the instant ─▶ post, poll … ─▶ ended ─▶ the receiver compares its bytes
 *
 * WRITEs of iWARP complete before the receiver has them: a READ of no bytes after the last one confirms their arrival, as in perf-arrival.ts.
 */
import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  IBV_SEND_SIGNALED,
  IBV_TRANSPORT_IWARP,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  type IbvSendWr,
  type IbvWc,
  postSend,
  WcStatus,
  wcStatusStr,
} from '../../userlib/index.ts';
import { commonStart } from './common-start.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import {
  type FabricArgs,
  type FabricSide,
  type Flow,
  type FlowResult,
  flowsOf,
  posterOf,
} from './fabric-plan.ts';
import {
  connectRc,
  createBuffer,
  createRcQps,
  endpointTo,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from './rc-endpoint.ts';

/** Address and key of a buffer, as its owner announces it. */
interface RemoteBuffer {
  readonly address: number;
  readonly rkey: number;
}

/** One end of a flow. */
export interface FlowEnd {
  readonly flow: Flow;
  readonly buffer: RcBuffer;
  readonly qps: readonly IbvQp[];
  readonly remote: RemoteBuffer;
  /** Whether messages complete before the receiver has them. */
  readonly completesEarly: boolean;
  /** Destination that a SEND over XRC or UD names, for each of the QPs. */
  readonly addressing?: (turn: number) => Pick<IbvSendWr, 'wr' | 'qpType'>;
}

/** Receives of a host's flows, whose completions have negative numbers. */
interface Receives {
  /** Number of messages. */
  readonly total: number;
  arrived(wrId: number, nowPs: number): void;
}

export async function fabricHost(program: ProgramContext<FabricArgs>): Promise<FabricSide> {
  const { args, node } = program;
  const flows = flowsOf(args).filter(({ from, to }) => from === node || to === node);
  const { trafficClass } = args;
  const endpoint = await openEndpoint(program, trafficClass === undefined ? {} : { trafficClass });
  const posted = flows.filter((flow) => posterOf(flow, args.verb) === node);
  const cq = await createCq(
    endpoint.context,
    Math.max(1, posted.length * Math.max(args.window, args.qpCount ?? 1)),
  );
  const ends: FlowEnd[] = [];
  for (const flow of flows) ends.push(await connectFlow(endpoint, flow, cq, args));
  const startPs = await commonStart(program, args.hostCount);
  await program.cpu.sleep(startPs - Number(program.cpu.instantPs));
  const sent = ends.filter(({ flow }) => posterOf(flow, args.verb) === node);
  const results = await new Sender(program, sent, new CompletionPoller(cq)).run(startPs);
  return { startPs, flows: results, wrong: await wrongFlows(program, ends) };
}

/** Connects one flow; both hosts do it in the order of the flows, so that no two wait for each other. */
export async function connectFlow(
  endpoint: RcEndpoint,
  flow: Flow,
  cq: Awaited<ReturnType<typeof createCq>>,
  { sizeBytes, window, verb, qpCount = 1 }: FabricArgs,
): Promise<FlowEnd> {
  const { program } = endpoint;
  const far = flow.from === program.node ? flow.to : flow.from;
  const buffer = await createBuffer(endpoint, sizeBytes);
  if (flow.from === program.node) program.memory.write(buffer.address, contentOf(flow, sizeBytes));
  const cap = { maxSendWr: window, maxRecvWr: 1 };
  const qps = await createRcQps(endpoint, qpCount, { send: cq, receive: cq }, cap);
  const { serviceLevel } = flow;
  const own = serviceLevel === undefined ? endpoint.own : { ...endpoint.own, serviceLevel };
  const pair = endpointTo({ ...endpoint, own }, far);
  const place: RemoteBuffer = { address: buffer.address, rkey: buffer.region.rkey };
  const { note } = await connectRc<RemoteBuffer>(pair, qps, `fabric.${flow.from}.${flow.to}`, { ...place });
  const completesEarly = verb === 'write' && endpoint.context.device.transportType === IBV_TRANSPORT_IWARP;
  return { flow, buffer, qps, remote: note, completesEarly };
}

/** Posts and polls for all flows of one host. */
export class Sender {
  readonly #program: ProgramContext<FabricArgs>;
  readonly #ends: readonly FlowEnd[];
  readonly #poller: CompletionPoller;
  readonly #qpCount: number;
  readonly #receives: Receives | undefined;
  /** Requests of each QP, all of a flow after each other. */
  readonly #wrs: readonly IbvSendWr[];
  /** For each QP the instants at which its messages in flight were posted, oldest first. */
  readonly #postedPs: number[][];
  /** For each flow. */
  readonly #posted: number[];
  readonly #messagePs: number[][];
  readonly #halfPs: number[];
  readonly #endPs: number[];

  constructor(
    program: ProgramContext<FabricArgs>,
    ends: readonly FlowEnd[],
    poller: CompletionPoller,
    receives?: Receives,
  ) {
    this.#receives = receives;
    this.#program = program;
    this.#ends = ends;
    this.#poller = poller;
    this.#qpCount = program.args.qpCount ?? 1;
    this.#wrs = ends
      .flatMap((end) => end.qps.map(() => end))
      .map((end, index) => requestOf(end, index, program.args));
    this.#postedPs = this.#wrs.map(() => []);
    this.#posted = ends.map(() => 0);
    this.#messagePs = ends.map(() => []);
    this.#halfPs = ends.map(() => 0);
    this.#endPs = ends.map(() => 0);
  }

  async run(startPs: number): Promise<FlowResult[]> {
    const { args, cpu } = this.#program;
    const confirmations = this.#qpCount * this.#ends.filter(({ completesEarly }) => completesEarly).length;
    const total = args.messages * this.#ends.length + confirmations + (this.#receives?.total ?? 0);
    for (let done = 0; done < total; ) {
      this.#post();
      const count = await this.#poller.arrival();
      for (let index = 0; index < count; index++)
        this.#completed(this.#checked(this.#poller.taken[index]!), cpu.localPs);
      done += count;
      this.#program.progress(done, total);
    }
    return this.#ends.map(({ flow }, index) => ({
      ...flow,
      durationPs: this.#endPs[index]! - startPs,
      halfPs: this.#halfPs[index]! - startPs,
      messagePs: this.#messagePs[index]!,
    }));
  }

  /** Fills every window, one message of each flow in turn. */
  #post(): void {
    const { args, cpu } = this.#program;
    for (let isAnyPosted = true; isAnyPosted; ) {
      isAnyPosted = false;
      for (const [flow, { qps }] of this.#ends.entries()) {
        const posted = this.#posted[flow]!;
        if (posted === args.messages || posted - this.#messagePs[flow]!.length === args.window) continue;
        const turn = posted % this.#qpCount;
        const lane = flow * this.#qpCount + turn;
        this.#postedPs[lane]!.push(cpu.localPs);
        post(qps[turn]!, this.#wrs[lane]!);
        this.#posted[flow]!++;
        isAnyPosted = true;
      }
    }
  }

  /** @returns the lane of a completion. @throws WorkFailedError for a failed one */
  #checked({ status, wrId, qpNum }: IbvWc): number {
    if (status === WcStatus.IBV_WC_SUCCESS) return wrId;
    if (wrId < 0) throw new WorkFailedError(`receive of QP ${qpNum}: ${wcStatusStr(status)}`);
    const { from, to } = this.#ends[Math.floor(wrId / this.#qpCount)]!.flow;
    throw new WorkFailedError(`message from host ${from} to ${to}, QP ${qpNum}: ${wcStatusStr(status)}`);
  }

  /** @param lane the request's QP among all of this host's flows */
  #completed(lane: number, nowPs: number): void {
    if (lane < 0) {
      this.#receives!.arrived(lane, nowPs);
      return;
    }
    const flow = Math.floor(lane / this.#qpCount);
    this.#endPs[flow] = nowPs;
    const postedPs = this.#postedPs[lane]!.shift();
    // The READ of no bytes: nothing else of its flow was in flight.
    if (postedPs === undefined) return;
    const times = this.#messagePs[flow]!;
    times.push(nowPs - postedPs);
    if (times.length === Math.ceil(this.#program.args.messages / 2)) this.#halfPs[flow] = nowPs;
    const { completesEarly, qps } = this.#ends[flow]!;
    if (!completesEarly || times.length < this.#program.args.messages) return;
    for (const [turn, qp] of qps.entries()) {
      const wr = this.#wrs[flow * this.#qpCount + turn]!;
      post(qp, { ...wr, sgList: [], numSge: 0, opcode: IBV_WR_RDMA_READ });
    }
  }
}

function post(qp: IbvQp, wr: IbvSendWr): void {
  const error = postSend(qp, wr);
  if (error !== 0) throw new WorkFailedError(`post of a message to QP ${qp.qpNum}: error ${error}`);
}

const opcodes = { write: IBV_WR_RDMA_WRITE, read: IBV_WR_RDMA_READ, send: IBV_WR_SEND } as const;

function requestOf(
  { buffer, remote, addressing }: FlowEnd,
  index: number,
  { verb, qpCount = 1 }: FabricArgs,
): IbvSendWr {
  return {
    wrId: index,
    sgList: [{ addr: buffer.address, length: buffer.lengthBytes, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: opcodes[verb],
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: remote.address, rkey: remote.rkey } },
    ...addressing?.(index % qpCount),
  };
}

/** Waits until all flows to this host have ended, and compares their bytes. */
export async function wrongFlows(
  program: ProgramContext<FabricArgs>,
  ends: readonly FlowEnd[],
): Promise<Flow[]> {
  await awaitPosters(program, ends);
  const { node, memory, args } = program;
  return ends.flatMap(({ flow, buffer }) => {
    if (flow.to !== node) return [];
    const bytes = memory.read(buffer.address, args.sizeBytes);
    const expected = contentOf(flow, args.sizeBytes);
    return bytes.some((byte, index) => byte !== expected[index]) ? [flow] : [];
  });
}

/** Waits until the posters of all flows to this host have ended. */
export async function awaitPosters(
  { node, exchange, args }: ProgramContext<FabricArgs>,
  ends: readonly FlowEnd[],
): Promise<void> {
  for (const { flow } of ends) {
    const name = `fabric.ended.${flow.from}.${flow.to}`;
    const isPoster = posterOf(flow, args.verb) === node;
    if (isPoster) await exchange.put(name, true, [flow.from === node ? flow.to : flow.from]);
    else await exchange.take(name);
  }
}

/** Content of a flow's messages: bytes that differ between flows and along the message. */
export function contentOf({ from, to }: Flow, sizeBytes: number): Uint8Array {
  return Uint8Array.from(
    { length: sizeBytes },
    (_, index) => (index * 31 + (index >> 8) + from * 7 + to * 113 + 1) & 0xff,
  );
}
