/**
 * The common start of all programs with reliable connections: an open device, a protection domain, completion queues,
 * QPs, and their connection to those of a program at another host, whose addresses arrive over the exchange.
 *
 *     openEndpoint ─► createRcQps ─► connectRc (RESET ─► INIT ─► RTR ─► RTS)
 */
import { ConfigurationError, InvariantError, psPerMs } from '../../base/index.ts';
import { PortStateVerb } from '../../driver/index.ts';
import type { JsonLike, JsonValue, ProgramContext } from '../../machine/index.ts';
import {
  allocPd,
  createQp,
  getDeviceList,
  IBV_QPT_RC,
  IBV_TRANSPORT_IWARP,
  type IbvContext,
  type IbvCq,
  type IbvMr,
  type IbvPd,
  type IbvQp,
  openDevice,
  type PortAttr,
  type QpCap,
  queryPort,
  regMr,
} from '../../userlib/index.ts';
import { iwarpSteps } from './iwarp-steps.ts';
import {
  announcedOf,
  ownAddressOf,
  type PeerAddress,
  type PortAddress,
  peerFrom,
  type RouteChoice,
} from './port-address.ts';
import { allAccess, type RcAddress, toInit, toRtr, toRts } from './rc-states.ts';

/** Timeouts of ConnectX-3 programs; 67 ms and 0.64 ms are perftest's. */
export const rcDefaults = {
  readAtomicMax: 16,
  timeoutCode: 14,
  rnrTimerCode: 12,
  retryCount: 7,
  rnrRetryCount: 7,
} as const;

export interface RcEndpoint {
  readonly program: ProgramContext;
  readonly context: IbvContext;
  readonly pd: IbvPd;
  readonly port: PortAttr;
  /** Address of the port. */
  readonly own: PeerAddress;
  /** Host whose program its QPs are connected to: unless {@link endpointTo} names another, the first that the port reaches. */
  readonly peer: number | undefined;
}

/** A buffer of the program with its region. */
export interface RcBuffer {
  readonly address: number;
  readonly lengthBytes: number;
  readonly region: IbvMr;
}

/** Data that the peer sends about itself. @typeParam Note type of the note that its program supplies */
export interface RcPeer<Note = JsonValue> extends PortAddress {
  readonly qpNumbers: readonly number[];
  readonly firstPsns: readonly number[];
  /** Agreement of the programs. */
  readonly note: Note;
}

/** Opens the first device of the host. */
export async function openEndpoint(program: ProgramContext, route?: RouteChoice): Promise<RcEndpoint> {
  const [device] = getDeviceList(program.verbs);
  if (device === undefined) throw new InvariantError('devices', 0, 'at least 1');
  const context = await openDevice(device);
  const pd = await allocPd(context);
  const port = await activePort(program, context);
  const own = await ownAddressOf(context, port, route);
  return { program, context, pd, port, own, peer: program.links[0]?.peer };
}

/** The same for QPs that are connected to the program of one of several hosts: its exchange sends to that host by default. */
export function endpointTo(endpoint: RcEndpoint, peer: number): RcEndpoint {
  const { program } = endpoint;
  const exchange: ProgramContext['exchange'] = {
    ...program.exchange,
    put: (name, value, to) => program.exchange.put(name, value, to ?? [peer]),
  };
  return { ...endpoint, peer, program: { ...program, exchange } };
}

/** Waits until the port is active: before that it has no LID, or its link is down because the peer starts late. */
async function activePort({ cpu }: ProgramContext, context: IbvContext): Promise<PortAttr> {
  for (let waitedMs = 0; ; waitedMs++) {
    const port = await queryPort(context, 1);
    if (port.state === PortStateVerb.IBV_PORT_ACTIVE || waitedMs === portWaitMs) return port;
    await cpu.sleep(psPerMs);
  }
}

/** A minute: by then the peer has stopped waiting. */
const portWaitMs = 60_000;

/** Maps and registers a buffer, by default with all rights. */
export async function createBuffer(
  endpoint: RcEndpoint,
  lengthBytes: number,
  access = allAccess,
): Promise<RcBuffer> {
  const address = endpoint.program.memory.map(Math.max(1, lengthBytes));
  const region = await regMr(endpoint.pd, address, Math.max(1, lengthBytes), access);
  return { address, lengthBytes, region };
}

/** Creates `count` QPs in RESET that complete into these CQs. */
export async function createRcQps(
  { pd }: RcEndpoint,
  count: number,
  cqs: { readonly send: IbvCq; readonly receive: IbvCq },
  cap: Partial<QpCap>,
  inlRecvSz = 0,
): Promise<IbvQp[]> {
  const qps: IbvQp[] = [];
  for (let index = 0; index < count; index++) {
    const init = { sendCq: cqs.send, recvCq: cqs.receive, qpType: IBV_QPT_RC, cap: { ...cap }, inlRecvSz };
    qps.push(await createQp(pd, init));
  }
  return qps;
}

/**
 * Connects QPs to the same number of QPs of the program at the other host that calls this with the same label. Receives
 * can be posted in `beforeReady`: it runs in INIT, before anything can arrive.
 */
export async function connectRc<Note = JsonValue>(
  endpoint: RcEndpoint,
  qps: readonly IbvQp[],
  label: string,
  note: JsonLike = null,
  beforeReady: () => void = () => {},
  pathMtuBytes = 0,
): Promise<RcPeer<Note>> {
  return connectQps(endpoint, qps, label, note, { beforeReady, ...rcSteps(endpoint, pathMtuBytes) });
}

/** State transitions of an RC QP until it sends and receives. */
export function rcSteps(
  endpoint: RcEndpoint,
  pathMtuBytes: number,
): Pick<QpSteps, 'init' | 'listenPort' | 'ready'> {
  if (endpoint.context.device.transportType === IBV_TRANSPORT_IWARP)
    return iwarpSteps(endpoint, rcDefaults.readAtomicMax);
  const attributes = { ...rcDefaults, pathMtu: pathMtuOf(endpoint, pathMtuBytes) };
  return {
    init: (qp) => toInit(qp),
    ready: async (qp, address, firstPsn) => {
      await toRtr(qp, address, attributes);
      await toRts(qp, firstPsn, attributes);
    },
  };
}

/** State transitions of a service's QPs until they send and receive, or do one of both. */
export interface QpSteps<Q = IbvQp> {
  init(qp: Q): Promise<void>;
  /** Runs in INIT. */
  beforeReady(): void;
  /** The TCP port at which this program listens for the connections of its QPs, if it does; asked after `init`. */
  listenPort?(): number | undefined;
  /**
   * @param address of the QP at the other host;
   * @param firstPsn of this one
   */
  ready(qp: Q, address: RcAddress, firstPsn: number): Promise<void>;
  /** Runs when all QPs are ready, immediately before the peer is notified. */
  afterReady?(): Promise<void>;
}

/** {@link connectRc} for QPs of any service. */
export async function connectQps<Note = JsonValue, Q extends Pick<IbvQp, 'qpNum'> = IbvQp>(
  endpoint: RcEndpoint,
  qps: readonly Q[],
  label: string,
  note: JsonLike,
  steps: QpSteps<Q>,
): Promise<RcPeer<Note>> {
  const { program } = endpoint;
  const firstPsns = qps.map(() => program.random.below(1 << 24));
  for (const qp of qps) await steps.init(qp);
  steps.beforeReady();
  const qpNumbers = qps.map(({ qpNum }) => qpNum);
  const sinPort = steps.listenPort?.();
  const address = { ...announcedOf(endpoint.own), ...(sinPort === undefined ? {} : { sinPort }) };
  const own: RcPeer<JsonLike> = { ...address, qpNumbers, firstPsns, note };
  await putPeer(program, label, own);
  const peer = await takePeer<Note>(program, label, qps.length);
  for (const [index, qp] of qps.entries()) {
    const there = peerFrom(endpoint.own, peer);
    const to = { ...there, qpNum: peer.qpNumbers[index]!, psn: peer.firstPsns[index]! };
    await steps.ready(qp, to, firstPsns[index]!);
  }
  await steps.afterReady?.();
  // Neither side sends before both can receive.
  await barrier(program, `${label}.ready`);
  return peer;
}

/** Code of a path MTU in bytes; 0 is the port's. */
export function pathMtuOf({ port }: RcEndpoint, pathMtuBytes: number): PortAttr['activeMtu'] {
  const code = pathMtuBytes === 0 ? port.activeMtu : mtuCodeOf(pathMtuBytes);
  if (code > port.activeMtu)
    throw new ConfigurationError(
      'path MTU',
      pathMtuBytes,
      `at most the port's, ${128 * 2 ** port.activeMtu}`,
    );
  return code;
}

/** Number of QPs announced at once, limited by the size of an exchanged value. */
const announcedQps = 256;

/** One value for each 256 QPs; the first carries the note. */
async function putPeer({ exchange }: ProgramContext, label: string, peer: RcPeer<JsonLike>): Promise<void> {
  const { qpNumbers, firstPsns, note, ...address } = peer;
  for (let at = 0; at === 0 || at < qpNumbers.length; at += announcedQps) {
    const qpns = qpNumbers.slice(at, at + announcedQps);
    const psns = firstPsns.slice(at, at + announcedQps);
    await exchange.put(label, { ...address, qpNumbers: qpns, firstPsns: psns, note: at === 0 ? note : null });
  }
}

async function takePeer<Note>(
  { exchange }: ProgramContext,
  label: string,
  count: number,
): Promise<RcPeer<Note>> {
  const first = await exchange.take<RcPeer<Note>>(label);
  const qpNumbers = [...first.qpNumbers];
  const firstPsns = [...first.firstPsns];
  while (qpNumbers.length < count) {
    const next = await exchange.take<RcPeer>(label);
    qpNumbers.push(...next.qpNumbers);
    firstPsns.push(...next.firstPsns);
  }
  return { ...first, qpNumbers, firstPsns };
}

/** Waits until the program at the other host has reached the barrier of this name. */
export async function barrier({ exchange }: ProgramContext, name: string): Promise<void> {
  await exchange.put(name, true);
  await exchange.take(name);
}

/** IBV_MTU_256 is 1, IBV_MTU_4096 is 5. */
const mtuCodeOf = (bytes: number): PortAttr['activeMtu'] => (Math.log2(bytes) - 7) as PortAttr['activeMtu'];
