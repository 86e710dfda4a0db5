/**
 * The two programs of a watched operation: a connection, optional warm-up operations, and the operation itself. Timers
 * are as short as the interface allows, so that the effect of a loss or a missing receive fits into a picture.
 */
import {
  ackCqEvents,
  createBuffer,
  createCompChannel,
  createCq,
  createRcQps,
  getCqEvent,
  IBV_ACCESS_ON_DEMAND,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_TRANSPORT_IWARP,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  type IbvCompChannel,
  type IbvCq,
  type IbvQp,
  type IbvSendWr,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  postRecv,
  postSend,
  type RcBuffer,
  type RcEndpoint,
  reqNotifyCq,
  spinCq,
} from '../../../browser.ts';
import {
  allAccess,
  connectQps,
  pathMtuOf,
  rcDefaults,
  rcSteps,
  toInit,
  toRtr,
  toRts,
} from '../../../experiments/workloads/index.ts';
import { type Scenario, type ScenarioVerb, warmUpBytes } from './scenarios.ts';

export interface WatchArgs {
  readonly scenario: Scenario;
  readonly sizeBytes: number;
  readonly mtuBytes: number;
  readonly warmUpCount: number;
}

/** Times of the watched operation, as the first program sees them. Instants since power-on. */
export interface WatchResult {
  /** Instant at which the program began to post. */
  readonly fromPs: number;
  /** Instant at which the program had the completion. */
  readonly toPs: number;
  /** Instant at which all has arrived. */
  readonly shownToPs: number;
  readonly status: number;
}

/** 16 µs: the shortest timeout that is longer than any round trip of a rack. */
const timeoutCode = 2;
/** 10 µs, the shortest value (IBTA table 45). */
const rnrTimerCode = 1;
/** Pending messages arrive in the meantime. */
const afterglowPs = 4_000_000;
/** Time shown after the completion. */
export const afterPs = 3_000_000;
/** Over TCP a request completes before its bytes leave: the time of a byte on a cable of 10 Gb/s, and of its headers. */
const tcpPsPerByte = 1000;

interface Side {
  readonly program: ProgramContext;
  readonly buffer: RcBuffer;
  readonly cq: IbvCq;
  readonly channel: IbvCompChannel | undefined;
  readonly qp: IbvQp;
  readonly isOverTcp: boolean;
  readonly far: { readonly address: number; readonly rkey: number };
}

const opcodes = {
  write: IBV_WR_RDMA_WRITE,
  writeImmediate: IBV_WR_RDMA_WRITE_WITH_IMM,
  read: IBV_WR_RDMA_READ,
  send: IBV_WR_SEND,
  fetchAdd: IBV_WR_ATOMIC_FETCH_AND_ADD,
  compareSwap: IBV_WR_ATOMIC_CMP_AND_SWP,
} as const satisfies Record<ScenarioVerb, number>;

const needsReceive = ({ verb }: Scenario): boolean => verb === 'send' || verb === 'writeImmediate';

async function open(program: ProgramContext, args: WatchArgs): Promise<Side> {
  const { scenario, sizeBytes, mtuBytes } = args;
  const endpoint = await openEndpoint(program);
  const isFarOnDemand = scenario.isOnDemand === true && program.node === 1;
  const access = isFarOnDemand ? allAccess | IBV_ACCESS_ON_DEMAND : allAccess;
  const buffer = await createBuffer(endpoint, sizeBytes, access);
  if (program.node === 0)
    program.memory.write(
      buffer.address,
      Uint8Array.from({ length: sizeBytes }, (_, index) => index + 1),
    );
  const channel = scenario.usesEvents === true ? await createCompChannel(endpoint.context) : undefined;
  const cq = await createCq(endpoint.context, 16, null, channel ?? null);
  const cap = {
    maxSendWr: 8,
    maxRecvWr: 8,
    maxSendSge: 1,
    maxRecvSge: 1,
    maxInlineData: scenario.isInline === true ? sizeBytes : 0,
  };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const far = await connect(endpoint, qp!, buffer, mtuBytes, () => {
    if (needsReceive(scenario) && program.node === 1)
      for (let count = args.warmUpCount + 1; count > Number(scenario.receiveDelayPs !== undefined); count--)
        receive(qp!, buffer);
  });
  return { program, buffer, cq, channel, qp: qp!, isOverTcp: isIwarp(endpoint), far };
}

async function connect(
  endpoint: RcEndpoint,
  qp: IbvQp,
  buffer: RcBuffer,
  mtuBytes: number,
  beforeReady: () => void,
): Promise<Side['far']> {
  const own = { address: buffer.address, rkey: buffer.region.rkey };
  const steps = { ...stepsOf(endpoint, mtuBytes), beforeReady };
  const { note } = await connectQps(endpoint, [qp], 'watch', own, steps);
  return note as Side['far'];
}

const isIwarp = ({ context }: RcEndpoint): boolean => context.device.transportType === IBV_TRANSPORT_IWARP;

/** The steps of a reliable connection with short timers; those of TCP are parameters of the card. */
function stepsOf(endpoint: RcEndpoint, mtuBytes: number): ReturnType<typeof rcSteps> {
  if (isIwarp(endpoint)) return rcSteps(endpoint, mtuBytes);
  const attributes = { ...rcDefaults, timeoutCode, rnrTimerCode, pathMtu: pathMtuOf(endpoint, mtuBytes) };
  return {
    init: (each) => toInit(each),
    ready: async (each, address, firstPsn) => {
      await toRtr(each, address, attributes);
      await toRts(each, firstPsn, attributes);
    },
  };
}

function receive(qp: IbvQp, { address, lengthBytes, region }: RcBuffer): void {
  postRecv(qp, { wrId: 1, sgList: [{ addr: address, length: lengthBytes, lkey: region.lkey }], numSge: 1 });
}

function requestOf({ buffer, far }: Side, scenario: Scenario, length: number, isWatched: boolean): IbvSendWr {
  const { verb, isInline, hasWrongKey } = scenario;
  const rkey = hasWrongKey === true && isWatched ? far.rkey ^ 1 : far.rkey;
  const { address: remoteAddr } = far;
  const isAtomic = verb === 'fetchAdd' || verb === 'compareSwap';
  return {
    wrId: 1,
    sgList: [{ addr: buffer.address, length, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: opcodes[verb],
    sendFlags: IBV_SEND_SIGNALED | (isInline === true ? IBV_SEND_INLINE : 0),
    ...(verb === 'writeImmediate' ? { immData: 0x1234 } : {}),
    wr: isAtomic
      ? { atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 2n } }
      : { rdma: { remoteAddr, rkey } },
  };
}

/**
 * Posts one request, or a list, and waits for all completions.
 * @returns the status of the first
 */
async function carriedOut(
  side: Side,
  scenario: Scenario,
  length: number,
  isWatched: boolean,
): Promise<number> {
  const { cq, channel, qp } = side;
  const requests = Array.from({ length: scenario.listed ?? 1 }, () =>
    requestOf(side, scenario, length, isWatched),
  );
  const list = requests.reduceRight<IbvSendWr | undefined>(
    (next, request) => (next === undefined ? request : { ...request, next }),
    undefined,
  );
  if (channel !== undefined) reqNotifyCq(cq, 0);
  postSend(qp, list!);
  let status: number | undefined;
  for (const _ of requests) {
    const wc = await completion(side);
    status ??= wc.status;
  }
  return status!;
}

async function completion({ cq, channel }: Side): Promise<IbvWc> {
  const wc = [new IbvWc()];
  if (channel !== undefined) {
    await getCqEvent(channel);
    ackCqEvents(cq, 1);
  }
  await spinCq(cq, 1, wc);
  return wc[0]!;
}

/**
 * Host 0: has the bytes, and posts.
 * @param begins called before the watched operation
 */
export async function watchedClient(
  program: ProgramContext<WatchArgs>,
  begins: () => void,
): Promise<WatchResult> {
  const args = program.args;
  const { scenario, sizeBytes, warmUpCount } = args;
  const { cpu, exchange } = program;
  const side = await open(program, args);
  for (let count = 0; count < warmUpCount; count++) {
    await carriedOut(side, scenario, warmUpBytes(scenario, sizeBytes), false);
    await exchange.put('warm', true);
    await exchange.take('warm');
  }
  await exchange.put('watched', true);
  begins();
  await cpu.sleep(afterglowPs);
  await cpu.settle();
  const fromPs = cpu.localPs;
  const status = await carriedOut(side, scenario, sizeBytes, true);
  const toPs = cpu.localPs;
  await cpu.sleep(afterglowPs + (side.isOverTcp ? sizeBytes * tcpPsPerByte : 0));
  const shownToPs = side.isOverTcp ? cpu.localPs : toPs + afterPs;
  await exchange.put('done', true);
  const result: WatchResult = { fromPs, toPs, shownToPs, status };
  return result;
}

/** Host 1: is the target of WRITEs and READs, or receives. */
export async function watchedServer(program: ProgramContext<WatchArgs>): Promise<void> {
  const args = program.args;
  const { scenario, warmUpCount } = args;
  const { cpu, exchange } = program;
  const side = await open(program, args);
  const { cq, channel, qp, buffer } = side;
  const isReceiving = needsReceive(scenario);
  const arm = (): void => {
    if (isReceiving && channel !== undefined) reqNotifyCq(cq, 0);
  };
  arm();
  for (let count = 0; count < warmUpCount; count++) {
    if (isReceiving) await completion(side);
    arm();
    await exchange.put('warm', true);
    await exchange.take('warm');
  }
  await exchange.take('watched');
  if (isReceiving && scenario.receiveDelayPs !== undefined) {
    await cpu.sleep(afterglowPs + scenario.receiveDelayPs);
    receive(qp, buffer);
  }
  if (isReceiving) await completion(side);
  await exchange.take('done');
}
