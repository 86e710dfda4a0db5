/**
 * The program of each host of a fabric's story: its ends of all flows.
 *
 *     open, create, connect ─► the common instant ─► post and poll ─► ended ─► poll what came, compare all bytes
 *
 * A flow whose connection fails ends there; the others continue. Datagrams and SENDs have all their receives from the beginning.
 */
import {
  announcedOf,
  connectRc,
  connectUd,
  createBuffer,
  handleTo,
  initUd,
  openEndpoint,
  type PortAddress,
  peerFrom,
  qkey,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import * as ibv from '../../userlib/index.ts';
import { contentOf, type FabricFlow, type FlowEnd, type HostOutcome, startPs } from './fabric-story.ts';

interface HostArgs {
  readonly flows: readonly FabricFlow[];
  readonly hostCount: number;
  /** P_Keys of all QPs, by host; left out: the default one. */
  readonly pkeys: readonly number[];
}

type Program = ProgramContext<HostArgs>;

const grhBytes = 40;
/** Work requests of a flow: its number times this, and the number of the message or receive. */
const idsPerFlow = 1024;
const entries = Array.from({ length: 16 }, () => new ibv.IbvWc());
const multicastQpn = 0xff_ffff;
const groupLid = 0xc001;
/** By then packets that faults hold back have come. */
const lastArrivalsPs = 20_000_000_000;

/** The far end of a flow, as its host announces it. */
interface Far {
  readonly address: number;
  readonly rkey: number;
}

/** One end of a flow. */
interface End {
  readonly index: number;
  readonly flow: FabricFlow;
  readonly isPoster: boolean;
  readonly buffer: RcBuffer;
  readonly qp: ibv.IbvQp;
  readonly far: Far;
  /** Present for datagrams. */
  readonly ah?: ibv.IbvAh;
  readonly farQpn: number;
  posted: number;
  readonly statuses: string[];
  /** Completions of receives, in order. */
  readonly received: { readonly slot: number; readonly byteLen: number }[];
}

export async function fabricStoryHost(program: Program): Promise<HostOutcome> {
  const { args, node, cpu } = program;
  const endpoint = await openEndpoint(program);
  const pkey = args.pkeys[node];
  if (pkey !== undefined) await ibv.smSetPkeys(endpoint.context, 1, 0, [pkey]);
  const entryCount = 2 * args.flows.reduce((sum, { messages }) => sum + messages, 1);
  const cqs = {
    send: await ibv.createCq(endpoint.context, entryCount),
    receive: await ibv.createCq(endpoint.context, entryCount),
  };
  const ends: End[] = [];
  for (const [index, flow] of args.flows.entries())
    if (flow.kind === 'group' || flow.from === node || flow.to === node)
      ends.push(await openEnd(endpoint, program, cqs, index, flow));
  await cpu.sleep((await commonStart(program)) - Number(cpu.instantPs));
  const posting = ends.filter(({ isPoster }) => isPoster);
  const byIndex = new Map(ends.map((end) => [end.index, end]));
  for (;;) {
    for (const end of posting) postMore(end);
    if (!posting.some(isUnderWay)) break;
    note(byIndex, false, await ibv.spinCq(cqs.send, entries.length, entries));
  }
  await meetEnds(program, ends);
  await cpu.sleep(lastArrivalsPs);
  for (let count = -1; count !== 0; ) {
    count = await ibv.pollCq(cqs.receive, entries.length, entries);
    note(byIndex, true, count);
  }
  return { lid: endpoint.port.lid, ends: ends.map((end) => outcomeOf(program, end)) };
}

// ---- the beginning ----

/** The instant at which all flows begin: the story's, or later where a fault delayed a connection. */
async function commonStart({ node, args, exchange, cpu }: Program): Promise<number> {
  const others = Array.from({ length: args.hostCount - 1 }, (_, index) => index + 1);
  if (node !== 0) {
    await exchange.put('ready', node, [0]);
    return await exchange.take<number>('start');
  }
  for (const _ of others) await exchange.take('ready');
  await cpu.settle();
  const atPs = Math.max(startPs, Number(cpu.instantPs) + 2 * exchange.latencyPs);
  await exchange.put('start', atPs, others);
  return atPs;
}

const isDatagram = ({ kind }: FabricFlow): boolean => kind === 'datagram' || kind === 'group';
const posterOf = ({ kind, from, to }: FabricFlow): number => (kind === 'read' ? to : from);

/** Bytes of one message's place in the buffers. */
const slotBytesOf = (flow: FabricFlow): number => flow.sizeBytes + (isDatagram(flow) ? grhBytes : 0);

interface Cqs {
  readonly send: ibv.IbvCq;
  readonly receive: ibv.IbvCq;
}

async function openEnd(
  anyEndpoint: RcEndpoint,
  program: Program,
  cqs: Cqs,
  index: number,
  flow: FabricFlow,
): Promise<End> {
  const { node, memory } = program;
  const { level, rate } = flow;
  const endpoint = {
    ...anyEndpoint,
    own: {
      ...anyEndpoint.own,
      ...(level === undefined ? {} : { serviceLevel: level }),
      ...(rate === undefined ? {} : { staticRate: rate }),
    },
  };
  const isSource = flow.from === node;
  const { messages, kind } = flow;
  const slotBytes = slotBytesOf(flow);
  // A member of a group sends from the second half.
  const buffer = await createBuffer(endpoint, 2 * messages * slotBytes);
  if (isSource)
    for (let message = 0; message < messages; message++)
      memory.write(buffer.address + sourceAt(flow, message), contentOf(index, message, flow.sizeBytes));
  const cap = { maxSendWr: messages, maxRecvWr: 2 * messages, maxSendSge: 1, maxRecvSge: 1 };
  const qpType = isDatagram(flow) ? ibv.IBV_QPT_UD : ibv.IBV_QPT_RC;
  const qp = await ibv.createQp(endpoint.pd, { sendCq: cqs.send, recvCq: cqs.receive, qpType, cap });
  const isPoster = posterOf(flow) === node;
  const own = { index, flow, isPoster, buffer, qp, posted: 0, statuses: [], received: [] };
  if (isDatagram(flow)) return { ...own, ...(await openDatagrams(endpoint, program, own)) };
  const farHost = isSource ? flow.to : flow.from;
  const { exchange } = program;
  const toFar = { ...exchange, put: (name: string, value: never) => exchange.put(name, value, [farHost]) };
  const pair = { ...endpoint, program: { ...program, exchange: toFar as typeof exchange } };
  const note = { address: buffer.address, rkey: buffer.region.rkey };
  const ready = (): void => {
    if (kind === 'send' && !isSource) postReceives(own, messages);
  };
  const far = await connectRc<Far>(pair, [qp], `story.${index}`, note, ready);
  return { ...own, far: far.note, farQpn: far.qpNumbers[0]! };
}

type Opened = Pick<End, 'index' | 'flow' | 'isPoster' | 'buffer' | 'qp'>;

async function openDatagrams(
  endpoint: RcEndpoint,
  program: Program,
  own: Opened,
): Promise<Pick<End, 'ah' | 'far' | 'farQpn'>> {
  const { qp, flow, index, isPoster } = own;
  const { exchange, node } = program;
  await initUd(qp);
  const nowhere: Far = { address: 0, rkey: 0 };
  if (flow.kind === 'group' || !isPoster)
    postReceives(own, flow.messages + (flow.kind === 'group' ? 0 : flow.messages));
  await connectUd(qp, 0);
  if (flow.kind === 'group') {
    const gid = await groupGidOf(endpoint, index);
    await ibv.attachMcast(qp, gid, groupLid + index);
    if (!isPoster) return { far: nowhere, farQpn: multicastQpn };
    return { ah: await groupHandle(endpoint, gid, index), far: nowhere, farQpn: multicastQpn };
  }
  const name = `datagrams.${index}`;
  if (!isPoster) {
    await exchange.put(name, { ...announcedOf(endpoint.own), qpNum: qp.qpNum }, [posterOf(flow)]);
    return { far: nowhere, farQpn: 0 };
  }
  const { qpNum, ...there } = await exchange.take<PortAddress & { readonly qpNum: number }>(name);
  if (node !== flow.from) throw new Error('a datagram is posted where it comes from');
  return { ah: await handleTo(endpoint.pd, peerFrom(endpoint.own, there)), far: nowhere, farQpn: qpNum };
}

/** The GID of a group: of the kind that the port's own GID needs, as rdma_cm makes it of 239.129.3.x, or ff12::x. */
async function groupGidOf({ own, context }: RcEndpoint, index: number): Promise<Uint8Array> {
  const gid = new Uint8Array(16);
  if (own.gid === undefined) {
    gid.set([0xff, 0x12]);
    gid[15] = index + 1;
    return gid;
  }
  const entries = await ibv.queryGidTable(context, 1);
  const { gidType } = entries.find(({ gidIndex }) => gidIndex === own.sgidIndex)!;
  if (gidType !== ibv.IBV_GID_TYPE_ROCE_V2) gid.set([0xff, 0x0e]);
  gid.set([0xff, 0xff, 239, 129, 3, index + 1], 10);
  return gid;
}

async function groupHandle(
  { own, pd, context }: RcEndpoint,
  dgid: Uint8Array,
  index: number,
): Promise<ibv.IbvAh> {
  const sgidIndex = own.sgidIndex ?? (await ibv.queryGidTable(context, 1))[0]!.gidIndex;
  const grh = { dgid, flowLabel: 0, sgidIndex, hopLimit: 64, trafficClass: 0 };
  const dlid = own.gid === undefined ? groupLid + index : 0;
  const { serviceLevel: sl = 0, staticRate = 0 } = own;
  return ibv.createAh(pd, { dlid, sl, staticRate, srcPathBits: 0, portNum: 1, isGlobal: 1, grh });
}

/** Place of the message at its source: for datagrams after those of the receives. */
const sourceAt = (flow: FabricFlow, message: number): number =>
  (message + (isDatagram(flow) ? flow.messages : 0)) * slotBytesOf(flow);

function postReceives({ qp, buffer, flow, index }: Opened, count: number): void {
  const length = slotBytesOf(flow);
  for (let slot = 0; slot < count; slot++) {
    const sgList = [{ addr: buffer.address + slot * length, length, lkey: buffer.region.lkey }];
    const error = ibv.postRecv(qp, { wrId: index * idsPerFlow + slot, sgList, numSge: 1 });
    if (error !== 0) throw new Error(`a receive was refused with ${error}`);
  }
}

// ---- the traffic ----

const isFailed = ({ statuses }: End): boolean => statuses.some((status) => status !== 'SUCCESS');
/** A QP that has failed flushes what is posted; nothing else is posted to it. */
const isUnderWay = (end: End): boolean =>
  end.statuses.length < end.posted || (!isFailed(end) && end.posted < end.flow.messages);

function postMore(end: End): void {
  const { flow, qp, statuses } = end;
  while (!isFailed(end) && end.posted < flow.messages && end.posted - statuses.length < flow.window) {
    const error = ibv.postSend(qp, requestOf(end, end.posted));
    if (error !== 0) throw new Error(`a request was refused with ${error}`);
    end.posted++;
  }
}

function requestOf({ index, flow, buffer, far, ah, farQpn }: End, message: number): ibv.IbvSendWr {
  const { kind, sizeBytes } = flow;
  const at = kind === 'read' ? message * sizeBytes : sourceAt(flow, message);
  const opcode =
    { write: ibv.IBV_WR_RDMA_WRITE, read: ibv.IBV_WR_RDMA_READ }[kind as string] ?? ibv.IBV_WR_SEND;
  return {
    wrId: index * idsPerFlow + message,
    sgList: [{ addr: buffer.address + at, length: sizeBytes, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode,
    sendFlags: ibv.IBV_SEND_SIGNALED,
    wr:
      ah === undefined
        ? { rdma: { remoteAddr: far.address + message * sizeBytes, rkey: far.rkey } }
        : { ud: { ah, remoteQpn: farQpn, remoteQkey: qkey } },
  };
}

/** Notes the completions in {@link entries}. */
function note(ends: ReadonlyMap<number, End>, areReceives: boolean, count: number): void {
  for (const { status, wrId, byteLen } of entries.slice(0, count)) {
    const { statuses, received } = ends.get(Math.floor(wrId / idsPerFlow))!;
    if (!areReceives) statuses.push(ibv.wcStatusStr(status));
    else if (status === ibv.IBV_WC_SUCCESS) received.push({ slot: wrId % idsPerFlow, byteLen });
  }
}

/** Waits until the posters of all flows to or from here have ended. */
async function meetEnds({ exchange, node, args }: Program, ends: readonly End[]): Promise<void> {
  const all = Array.from({ length: args.hostCount }, (_, host) => host);
  for (const { flow, index, isPoster } of ends) {
    const others = flow.kind === 'group' ? all : [flow.from, flow.to];
    const to = others.filter((host) => host !== node);
    if (isPoster) await exchange.put(`ended.${index}`, true, to);
    else await exchange.take(`ended.${index}`);
  }
}

// ---- the outcome ----

function outcomeOf({ memory, node }: Program, end: End): FlowEnd {
  const { index, flow, statuses, received, buffer } = end;
  const { kind, sizeBytes, messages } = flow;
  const [came, wrong]: [number[], number[]] = [[], []];
  const compare = (message: number, at: number): void => {
    const expected = contentOf(index, message, sizeBytes);
    const bytes = memory.read(buffer.address + at, sizeBytes);
    (bytes.every((byte, place) => byte === expected[place]) ? came : wrong).push(message);
  };
  if (kind === 'write' || kind === 'read') {
    if (node === flow.to)
      for (let message = 0; message < messages; message++) compare(message, message * sizeBytes);
  } else {
    for (const { slot, byteLen } of received) {
      const header = isDatagram(flow) ? grhBytes : 0;
      const at = slot * slotBytesOf(flow) + header;
      const bytes = memory.read(buffer.address + at, sizeBytes);
      const message = numberOf(index, flow, bytes);
      if (message < 0 || byteLen !== sizeBytes + header) wrong.push(slot);
      else came.push(message);
    }
  }
  return { flow: index, qpn: end.qp.qpNum, statuses, came, wrong };
}

/** The message that has these bytes; -1 for none. */
function numberOf(index: number, { sizeBytes, messages }: FabricFlow, bytes: Uint8Array): number {
  for (let message = 0; message < messages; message++)
    if (contentOf(index, message, sizeBytes).every((byte, at) => byte === bytes[at])) return message;
  return -1;
}
