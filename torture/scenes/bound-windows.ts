/**
 * Windows of a region are bound, used and taken back in every way: by an unbinding, a binding elsewhere, a local invalidate, a SEND
 * with Invalidate, a deallocation, after the requests that use them or in the middle of these. Each request is answered by what its
 * key stands for at that instant, and once a window is taken back no access under way reaches its memory: the owner writes there at
 * once (IBTA vol 1, 9.4.1.1.3, 10.6.5, 10.6.7).
 *
 *     owner: fill ─► bind ──► key ────────► take back ─► fill the window anew ─► all bytes as they must be
 *     user:                     └► requests ─┴──────────► one more by the old key: refused
 */
import { psPerNs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  allocMw,
  bindMw,
  deallocMw,
  deregMr,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_ACCESS_ZERO_BASED,
  IBV_MW_TYPE_1,
  IBV_MW_TYPE_2,
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  IBV_WC_MW_BIND_ERR,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_REM_OP_ERR,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WITH_INV,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND_WITH_INV,
  type IbvMw,
  type IbvQp,
  type IbvSendWr,
  IbvWc,
  incRkey,
  pollCq,
  postRecv,
  VerbsError,
  wcStatusStr,
} from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, lastBytesIn, leave, post, type Side } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const rights = {
  [IBV_WR_RDMA_WRITE]: IBV_ACCESS_REMOTE_WRITE,
  [IBV_WR_RDMA_READ]: IBV_ACCESS_REMOTE_READ,
  [IBV_WR_ATOMIC_FETCH_AND_ADD]: IBV_ACCESS_REMOTE_ATOMIC,
} as const;
type Verb = keyof typeof rights;
const verbs = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD] as const;

interface Request {
  readonly verb: Verb;
  /** From the beginning of the window; outside of it where that is why it is refused. */
  readonly offset: number;
  readonly lengthBytes: number;
  /** By a variant of the key that is not the window's. */
  readonly hasOldKey: boolean;
  readonly isRefused: boolean;
}

const ends = ['unbind', 'elsewhere', 'localInvalidate', 'remoteInvalidate', 'deallocate'] as const;
type End = (typeof ends)[number];

interface Round {
  readonly isType2: boolean;
  readonly isZeroBased: boolean;
  readonly offset: number;
  readonly lengthBytes: number;
  readonly access: number;
  readonly requests: readonly Request[];
  readonly end: End;
  /** Taken back so long after the requests began; undefined: when all have ended. */
  readonly inTrafficNs: number | undefined;
  /** The binding reaches beyond the region, and is refused: nothing else happens then. */
  readonly isBindWrong: boolean;
  /** The owner tries to deregister the region under the window. */
  readonly triesToDeregister: boolean;
}

interface Args {
  readonly regionBytes: number;
  readonly isAtOnce: boolean;
  readonly isLossy: boolean;
  readonly rounds: readonly Round[];
}

const requestBytesMax = 6000;
const requestsMax = 6;

function draw(random: Random): SceneDraft {
  const isLossy = random.chance(0.25);
  const regionBytes = 4096 + random.below(5) * 4096 + random.below(300);
  const args: Args = {
    regionBytes,
    isAtOnce: random.chance(0.7),
    isLossy,
    rounds: Array.from({ length: 1 + random.below(5) }, () => drawRound(random, regionBytes, isLossy)),
  };
  const faults = Array.from(
    { length: isLossy ? 1 + random.below(3) : 0 },
    (): FaultEntry => ({
      packet: random.chance(0.5) ? 'corrupted' : 'lost',
      nth: 1 + random.below(30),
      node: random.below(2),
    }),
  );
  return {
    args: args as never,
    hasDrawnHardware: random.chance(0.6),
    climate: isLossy ? 'lossy' : 'flawed',
    faults,
  };
}

function drawRound(random: Random, regionBytes: number, isLossy: boolean): Round {
  const isType2 = random.chance(0.6);
  const offset = 8 * random.below((regionBytes >> 3) - 8);
  const lengthBytes = random.chance(0.3)
    ? regionBytes - offset
    : 16 + random.below(regionBytes - offset - 16);
  const access = random.chance(0.5)
    ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
    : verbs.reduce<number>((sum, verb) => sum | (random.chance(0.6) ? rights[verb] : 0), 0);
  const inTrafficNs = random.chance(0.4) ? random.below(20_000) : undefined;
  const isZeroBased = isType2 && random.chance(0.4);
  // Once it has refused a request a responder answers no more, also for earlier ones whose answers were lost.
  const isFlawed = inTrafficNs === undefined && !isLossy && random.chance(0.4);
  const shape = { isType2, isZeroBased, offset, lengthBytes, access };
  const count = random.below(requestsMax + 1);
  const good = Array.from({ length: count }, () => drawRequest(random, shape)).filter(
    (one) => one !== undefined,
  );
  const requests = isFlawed ? [...good, drawRefused(random, shape)] : good;
  const possible = ends.filter((end) =>
    end === 'deallocate' ? true : isFlawed ? false : (end === 'unbind' || end === 'elsewhere') !== isType2,
  );
  // A user that takes its key back itself does so behind its requests.
  const usable = inTrafficNs === undefined ? possible : possible.filter((end) => end !== 'remoteInvalidate');
  return {
    ...shape,
    requests,
    end: usable[random.below(usable.length)]!,
    inTrafficNs,
    isBindWrong: random.chance(0.08),
    triesToDeregister: random.chance(0.2),
  };
}

type Shape = Pick<Round, 'isType2' | 'isZeroBased' | 'offset' | 'lengthBytes' | 'access'>;

function drawRequest(random: Random, { access, lengthBytes }: Shape): Request | undefined {
  const allowed = verbs.filter((verb) => (rights[verb] & access) !== 0);
  if (allowed.length === 0) return undefined;
  const verb = allowed[random.below(allowed.length)]!;
  const good = { verb, hasOldKey: false, isRefused: false };
  if (verb === IBV_WR_ATOMIC_FETCH_AND_ADD)
    return { ...good, offset: 8 * random.below(lengthBytes >> 3), lengthBytes: 8 };
  const length = 1 + random.below(Math.min(lengthBytes, requestBytesMax));
  const room = lengthBytes - length;
  return { ...good, offset: random.chance(0.3) ? room : random.below(room + 1), lengthBytes: length };
}

/** One that a right, a bound or the key forbids. */
function drawRefused(random: Random, { access, isZeroBased, lengthBytes }: Shape): Request {
  const missing = verbs.filter((verb) => (rights[verb] & access) === 0);
  const verb = random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  const base = { verb, hasOldKey: false, isRefused: true };
  const way = random.below(4);
  if (way === 0 && missing.length > 0)
    return { ...base, verb: missing[random.below(missing.length)]!, offset: 0, lengthBytes: 8 };
  if (way === 1) return { ...base, offset: 0, lengthBytes: 8, hasOldKey: true };
  const length = 1 + random.below(Math.min(lengthBytes, requestBytesMax));
  if (way === 2 && !isZeroBased) return { ...base, offset: -1, lengthBytes: length };
  return { ...base, offset: lengthBytes - length + 1, lengthBytes: length };
}

const [ofRegion, ofUser, ofAfter] = [100, 2000, 50_000];
/** Of a request among those of all rounds: where its bytes lie in the user's area. */
const placeOf = (request: number): number => request * requestBytesMax;

const optionsOf = ({ rounds, regionBytes }: Args, isOwner: boolean) => ({
  areaBytes: isOwner ? regionBytes : placeOf(requestsMax + 2),
  access: isOwner ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND : IBV_ACCESS_LOCAL_WRITE,
  qpCount: rounds.length,
  attributes: { timeoutCode: 13, rnrTimerCode: 12 },
});

/** Told to the user when a window is bound. */
interface Bound {
  readonly rkey: number;
  /** Of the window's first byte. */
  readonly address: number;
}

const signalled = { sgList: [], numSge: 0, sendFlags: IBV_SEND_SIGNALED };

async function statusOf(side: Side): Promise<number> {
  const [ended] = await completionsOf(side, 1);
  return ended?.status ?? -1;
}

const expectEnd = (wrong: string[], what: string, status: number, ...expected: readonly number[]): void => {
  if (!expected.includes(status))
    wrong.push(
      `${what} ended in ${wcStatusStr(status)} instead of ${expected.map(wcStatusStr).join(' or ')}`,
    );
};

/** The bytes of the region after so many of the requests. */
function regionAfter(args: Args, number: number, doneCount: number): Uint8Array {
  const { offset, requests } = args.rounds[number]!;
  const region = patternOf(ofRegion + number, args.regionBytes);
  const user = userBytes(number);
  const view = new DataView(region.buffer);
  for (const [index, { verb, offset: within, lengthBytes }] of requests.slice(0, doneCount).entries()) {
    const at = offset + within;
    if (verb === IBV_WR_RDMA_WRITE)
      region.set(user.subarray(placeOf(index), placeOf(index) + lengthBytes), at);
    else if (verb === IBV_WR_ATOMIC_FETCH_AND_ADD)
      view.setBigUint64(at, view.getBigUint64(at, true) + addend, true);
  }
  return region;
}

const addend = 0x1_0000_0001n;
const userBytes = (number: number): Uint8Array<ArrayBuffer> =>
  patternOf(ofUser + number, placeOf(requestsMax + 2));

// The owner.

export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, optionsOf(args, true));
  const wrong: string[] = [];
  for (const [number, round] of args.rounds.entries())
    await ownRound({ program, args, side, wrong, number, round });
  await leave(side);
  return { wrong };
}

interface Playing {
  readonly program: ProgramContext;
  readonly args: Args;
  readonly side: Side;
  readonly wrong: string[];
  readonly number: number;
  readonly round: Round;
}

async function ownRound(playing: Playing): Promise<void> {
  const { program, args, side, wrong, number, round } = playing;
  const { area, endpoint, qps } = side;
  const qp = qps[number]!;
  program.memory.write(area.address, patternOf(ofRegion + number, args.regionBytes));
  const mw = await allocMw(endpoint.pd, round.isType2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
  const status = await bind(playing, qp, mw, round);
  expectEnd(wrong, `bind ${number}`, status, round.isBindWrong ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
  const isBound = status === IBV_WC_SUCCESS;
  if (isBound && round.end === 'remoteInvalidate') postRecv(qp, { wrId: 7, sgList: [], numSge: 0 });
  const address = round.isZeroBased ? 0 : area.address + round.offset;
  const bound: Bound | null = isBound ? { rkey: mw.rkey, address } : null;
  await program.exchange.put(`window ${number}`, bound as unknown as JsonValue);
  if (!isBound) return void (await deallocMw(mw));
  if (round.triesToDeregister) await refuseDeregistration(playing);
  if (round.inTrafficNs === undefined) await barrier(program, `used ${number}`);
  else await program.cpu.sleep(round.inTrafficNs * psPerNs);
  const taken = await takeBack(playing, qp, mw, bound!.rkey);
  const after = patternOf(ofAfter + number, round.lengthBytes);
  const seen = program.memory.read(area.address, args.regionBytes);
  program.memory.write(area.address + round.offset, after);
  const doneCount = Number(await afterUse(playing));
  // A request of the user that is refused while it is carried out brings the queue into error, and it is flushed (10.3.1).
  const isBroken = round.inTrafficNs !== undefined && doneCount < round.requests.length;
  const flushes = isBroken ? [IBV_WC_WR_FLUSH_ERR] : [];
  expectEnd(wrong, `${round.end} ${number}`, taken, IBV_WC_SUCCESS, ...flushes);
  await lastBytesIn(program);
  // What was there when the window was gone is what the requests that had ended well have made of it.
  const due = regionAfter(args, number, doneCount);
  if (round.inTrafficNs === undefined)
    wrong.push(...differencesOf(`region when ${number} was gone`, seen, due));
  due.set(after, round.offset);
  const last = program.memory.read(area.address, args.regionBytes);
  wrong.push(...differencesOf(`region after round ${number}`, last, due));
  if (round.end !== 'deallocate') await deallocMw(mw);
  await barrier(program, `round ${number}`);
}

/** The user has tried the old key. @returns how many of its requests ended well */
async function afterUse({ program, number }: Playing): Promise<JsonValue> {
  await program.exchange.put(`gone ${number}`, true);
  return program.exchange.take(`tried ${number}`);
}

async function bind({ args, side }: Playing, qp: IbvQp, mw: IbvMw, round: Round): Promise<number> {
  const { area } = side;
  const bindInfo = {
    mr: area.region,
    addr: area.address + round.offset,
    length: round.isBindWrong ? args.regionBytes - round.offset + 1 : round.lengthBytes,
    mwAccessFlags: round.access | (round.isZeroBased ? IBV_ACCESS_ZERO_BASED : 0),
  };
  if (!round.isType2) {
    bindMw(qp, mw, { wrId: 1, sendFlags: IBV_SEND_SIGNALED, bindInfo });
    return statusOf(side);
  }
  mw.rkey = incRkey(mw.rkey);
  post(qp, { ...signalled, wrId: 1, opcode: IBV_WR_BIND_MW, bindMw: { mw, rkey: mw.rkey, bindInfo } });
  return statusOf(side);
}

async function refuseDeregistration({ side, wrong, number }: Playing): Promise<void> {
  try {
    await deregMr(side.area.region);
    wrong.push(`the region was deregistered under window ${number}`);
  } catch (error) {
    if (!(error instanceof VerbsError)) throw error;
    if (error.code !== 'EBUSY') wrong.push(`deregistering under window ${number}: ${error.code}`);
  }
}

/** Ends when the window's memory is the owner's alone. @returns how what took it back ended */
async function takeBack(playing: Playing, qp: IbvQp, mw: IbvMw, rkey: number): Promise<number> {
  const { program, side, wrong, number, round } = playing;
  const { area } = side;
  if (round.end === 'deallocate') {
    await deallocMw(mw);
    return IBV_WC_SUCCESS;
  }
  if (round.end === 'remoteInvalidate') {
    const wc = await received(side);
    const isRight =
      wc?.status === IBV_WC_SUCCESS && wc.immData === rkey && (wc.wcFlags & IBV_WC_WITH_INV) !== 0;
    if (!isRight)
      wrong.push(
        `${round.end} ${number}: received with status ${wc?.status}, key ${wc?.immData}, flags ${wc?.wcFlags}`,
      );
    return IBV_WC_SUCCESS;
  }
  if (round.end === 'localInvalidate')
    post(qp, { ...signalled, wrId: 2, opcode: IBV_WR_LOCAL_INV, invalidateRkey: rkey });
  else {
    // Elsewhere: eight bytes at the other end of the region, which nobody uses.
    const isElsewhere = round.end === 'elsewhere';
    const addr = area.address + (round.offset > 8 ? 0 : area.lengthBytes - 8);
    const bindInfo = { mr: area.region, addr, length: isElsewhere ? 8 : 0, mwAccessFlags: round.access };
    bindMw(qp, mw, { wrId: 2, sendFlags: IBV_SEND_SIGNALED, bindInfo });
  }
  const status = await statusOf(side);
  await program.cpu.settle();
  return status;
}

async function received({ endpoint, cq }: Side): Promise<IbvWc | undefined> {
  const wcs = [new IbvWc()];
  for (let looks = 0; looks < 100_000; looks++) {
    if ((await pollCq(cq, 1, wcs)) === 1) return wcs[0];
    await endpoint.program.cpu.sleep(Math.min(looks * 100, 100_000) * psPerNs);
  }
  return undefined;
}

// The user.

export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, optionsOf(args, false));
  const wrong: string[] = [];
  for (const [number, round] of args.rounds.entries())
    await useRound({ program, args, side, wrong, number, round });
  await leave(side);
  return { wrong };
}

async function useRound(playing: Playing): Promise<void> {
  const { program, side, wrong, number, round } = playing;
  const { area, qps } = side;
  const qp = qps[number]!;
  const bytes = userBytes(number);
  program.memory.write(area.address, bytes);
  const bound = (await program.exchange.take(`window ${number}`)) as unknown as Bound | null;
  if (bound === null) return;
  const statuses = await use(playing, qp, bound);
  const doneCount = statuses.filter((status) => status === IBV_WC_SUCCESS).length;
  judgeStatuses(playing, statuses);
  judgeReads(playing, doneCount, bytes);
  if (round.inTrafficNs === undefined) await barrier(program, `used ${number}`);
  const isBroken = doneCount < round.requests.length;
  if (round.end === 'remoteInvalidate' && !isBroken) {
    post(qp, { ...signalled, wrId: 50, opcode: IBV_WR_SEND_WITH_INV, invalidateRkey: bound.rkey });
    expectEnd(wrong, `SEND with Invalidate ${number}`, await statusOf(side), IBV_WC_SUCCESS);
  }
  await program.exchange.take(`gone ${number}`);
  const last = { verb: IBV_WR_RDMA_WRITE, offset: 0, lengthBytes: 8, hasOldKey: false } as const;
  post(qp, requestTo(playing, bound, requestsMax + 1, { ...last, isRefused: true }));
  const refusals = playing.args.isLossy
    ? [IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR]
    : [IBV_WC_REM_ACCESS_ERR];
  const expected = isBroken ? [IBV_WC_WR_FLUSH_ERR] : refusals;
  expectEnd(wrong, `a WRITE by the key of window ${number}`, await statusOf(side), ...expected);
  await program.exchange.put(`tried ${number}`, doneCount);
  await barrier(program, `round ${number}`);
}

/** @returns how each request ended */
async function use({ args, side, round, ...rest }: Playing, qp: IbvQp, bound: Bound): Promise<number[]> {
  const playing = { args, side, round, ...rest };
  const statuses = new Map<number, number>();
  const note = async (count: number): Promise<void> => {
    for (const { id, status } of await completionsOf(side, count)) statuses.set(id, status);
  };
  for (const [index, request] of round.requests.entries()) {
    post(qp, requestTo(playing, bound, index, request));
    if (!args.isAtOnce) await note(1);
  }
  if (args.isAtOnce) await note(round.requests.length);
  return round.requests.map((_, index) => statuses.get(index) ?? -1);
}

function requestTo({ side }: Playing, bound: Bound, index: number, request: Request): IbvSendWr {
  const { area } = side;
  const { verb, offset, lengthBytes, hasOldKey } = request;
  const rkey = hasOldKey ? ((bound.rkey & ~0xff) | ((bound.rkey - 1) & 0xff)) >>> 0 : bound.rkey;
  const at = { remoteAddr: bound.address + offset, rkey };
  return {
    wrId: index,
    sgList: [{ addr: area.address + placeOf(index), length: lengthBytes, lkey: area.region.lkey }],
    numSge: 1,
    opcode: verb,
    // What changes bytes waits for READs and atomics of these bytes (10.8.3.3, table 79).
    sendFlags: IBV_SEND_SIGNALED | (verb === IBV_WR_RDMA_READ ? 0 : IBV_SEND_FENCE),
    wr:
      verb === IBV_WR_ATOMIC_FETCH_AND_ADD
        ? { atomic: { ...at, compareAdd: addend, swap: 0n } }
        : { rdma: at },
  };
}

/** SUCCESS up to the first that is refused; where the window goes in mid-traffic, that may be any. */
function judgeStatuses({ args, wrong, number, round }: Playing, statuses: readonly number[]): void {
  let hasFailed = false;
  for (const [index, status] of statuses.entries()) {
    const { isRefused } = round.requests[index]!;
    const what = `request ${index} of round ${number}`;
    const refusals = args.isLossy ? [IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR] : [IBV_WC_REM_ACCESS_ERR];
    if (hasFailed) expectEnd(wrong, what, status, IBV_WC_WR_FLUSH_ERR);
    else if (isRefused) expectEnd(wrong, what, status, ...refusals);
    else if (round.inTrafficNs === undefined) expectEnd(wrong, what, status, IBV_WC_SUCCESS);
    // The key of a READ that goes on, or is asked for again, may have been good before.
    else expectEnd(wrong, what, status, IBV_WC_SUCCESS, IBV_WC_REM_OP_ERR, ...refusals);
    hasFailed ||= status !== IBV_WC_SUCCESS;
  }
}

/** What READs and atomics have brought, and that nothing else has changed. */
function judgeReads(
  { program, args, side, wrong, number, round }: Playing,
  doneCount: number,
  bytes: Uint8Array,
): void {
  const due = bytes.slice();
  for (const [index, { verb, offset, lengthBytes }] of round.requests.slice(0, doneCount).entries()) {
    if (verb === IBV_WR_RDMA_WRITE) continue;
    const region = regionAfter(args, number, index);
    const from = round.offset + offset;
    due.set(region.subarray(from, from + lengthBytes), placeOf(index));
  }
  const seen = program.memory.read(side.area.address, due.length);
  // One that failed in mid-traffic may have brought a part.
  const failed = round.requests[doneCount];
  if (failed !== undefined && round.inTrafficNs !== undefined)
    seen.set(due.subarray(placeOf(doneCount), placeOf(doneCount + 1)), placeOf(doneCount));
  wrong.push(...differencesOf(`what the requests of round ${number} brought`, seen, due));
}

export const boundWindows: Scene = {
  name: 'bound-windows',
  about:
    'windows of a region are bound, used and taken back by either side, after requests that use them and among these',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'asker' },
    { node: 1, exportName: 'answerer' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
