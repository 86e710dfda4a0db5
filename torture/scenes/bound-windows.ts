/**
 * Windows of a region are bound, used and taken back by an unbinding, a binding elsewhere, a local invalidate, a SEND with Invalidate or a
 * deallocation, after the requests that use them or among them. The key's validity at that instant decides each answer, and once a window is
 * taken back no access in flight reaches its memory, where the owner writes at once (IBTA vol 1, 9.4.1.1.3, 10.6.5, 10.6.7).
 *
 *     owner: fill ─► bind ──► key ────────► take back ─► fill the window again ─► all bytes as they must be
 *     user:                     └► requests ─┴──────────► one more by the old key: refused
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Ended, FaultEntry, Reach, Side, Stage } from './language/index.ts';
import {
  ADD,
  codeOf,
  connect,
  patternOf,
  psPerUs,
  READ,
  scene,
  times,
  topic,
  WRITE,
} from './language/index.ts';

const rights = {
  [WRITE]: ibv.IBV_ACCESS_REMOTE_WRITE,
  [READ]: ibv.IBV_ACCESS_REMOTE_READ,
  [ADD]: ibv.IBV_ACCESS_REMOTE_ATOMIC,
} as const;
type Verb = keyof typeof rights;
const verbs: readonly Verb[] = [WRITE, READ, ADD];

interface Request {
  readonly verb: Verb;
  /** Offset from the beginning of the window; outside of it if that is the reason for the refusal. */
  readonly offset: number;
  readonly lengthBytes: number;
  /** Whether the request uses another variant of the window's key. */
  readonly hasOldKey: boolean;
  readonly isRefused: boolean;
}

/** Attributes of a window. */
interface Shape {
  readonly isType2: boolean;
  readonly isZeroBased: boolean;
  readonly offset: number;
  readonly lengthBytes: number;
  readonly access: number;
}

const ends = ['unbind', 'elsewhere', 'localInvalidate', 'remoteInvalidate', 'deallocate'] as const;
const requestBytesMax = 6000;
const requestsMax = 6;

function draw(random: Draws) {
  const isLossy = random.chance(0.25);
  const regionBytes = 4096 + random.below(5) * 4096 + random.below(300);
  const isAtOnce = random.chance(0.7);
  const rounds = times(1 + random.below(5), () => drawRound(random, regionBytes, isLossy));
  const faults = times(isLossy ? 1 + random.below(3) : 0, (): FaultEntry => {
    const packet = random.chance(0.5) ? 'corrupted' : 'lost';
    return { packet, nth: 1 + random.below(30), node: random.below(2) };
  });
  const climate = isLossy ? 'lossy' : 'flawed';
  const args = { regionBytes, isAtOnce, isLossy, rounds };
  return { args, hasDrawnHardware: random.chance(0.6), climate, faults } satisfies Draft<unknown>;
}

function drawRound(random: Draws, regionBytes: number, isLossy: boolean) {
  const isType2 = random.chance(0.6);
  const offset = 8 * random.below((regionBytes >> 3) - 8);
  const isToEnd = random.chance(0.3);
  const lengthBytes = isToEnd ? regionBytes - offset : 16 + random.below(regionBytes - offset - 16);
  const isAll = random.chance(0.5);
  const access = verbs.reduce<number>(
    (sum, verb) => sum | (isAll || random.chance(0.6) ? rights[verb] : 0),
    0,
  );
  // Delay of the invalidation after the requests began; undefined: after all have ended.
  const inTrafficNs = random.chance(0.4) ? random.below(20_000) : undefined;
  const isZeroBased = isType2 && random.chance(0.4);
  // Once it has refused a request a responder answers no more, not even earlier ones whose responses were lost.
  const isFlawed = inTrafficNs === undefined && !isLossy && random.chance(0.4);
  const shape: Shape = { isType2, isZeroBased, offset, lengthBytes, access };
  const good = times(random.below(requestsMax + 1), () => drawRequest(random, shape)).flat();
  const requests = isFlawed ? [...good, drawRefused(random, shape)] : good;
  const possible = ends.filter((end) => {
    if (end === 'deallocate') return true;
    // A user that invalidates its key itself does so after its requests.
    if (isFlawed || (end === 'remoteInvalidate' && inTrafficNs !== undefined)) return false;
    return (end === 'unbind' || end === 'elsewhere') !== isType2;
  });
  const end = random.oneOf(possible);
  // The binding reaches beyond the region, and is refused: nothing else happens then.
  const isBindWrong = random.chance(0.08);
  // The owner tries to deregister the region under the window.
  return { ...shape, requests, end, inTrafficNs, isBindWrong, triesToDeregister: random.chance(0.2) };
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];

/** Draws a request that is allowed, if any is. */
function drawRequest(random: Draws, { access, lengthBytes }: Shape): Request[] {
  const allowed = verbs.filter((verb) => (rights[verb] & access) !== 0);
  if (allowed.length === 0) return [];
  const good = { verb: random.oneOf(allowed), hasOldKey: false, isRefused: false };
  if (good.verb === ADD) return [{ ...good, offset: 8 * random.below(lengthBytes >> 3), lengthBytes: 8 }];
  const length = 1 + random.below(Math.min(lengthBytes, requestBytesMax));
  const room = lengthBytes - length;
  return [{ ...good, offset: random.chance(0.3) ? room : random.below(room + 1), lengthBytes: length }];
}

/** Draws a request that a right, a bound or the key forbids. */
function drawRefused(random: Draws, { access, isZeroBased, lengthBytes }: Shape): Request {
  const missing = verbs.filter((verb) => (rights[verb] & access) === 0);
  const base = { verb: random.chance(0.5) ? WRITE : READ, hasOldKey: false, isRefused: true } as const;
  const way = random.below(4);
  if (way === 0 && missing.length > 0)
    return { ...base, verb: random.oneOf(missing), offset: 0, lengthBytes: 8 };
  if (way === 1) return { ...base, offset: 0, lengthBytes: 8, hasOldKey: true };
  const length = 1 + random.below(Math.min(lengthBytes, requestBytesMax));
  if (way === 2 && !isZeroBased) return { ...base, offset: -1, lengthBytes: length };
  return { ...base, offset: lengthBytes - length + 1, lengthBytes: length };
}

const addend = 0x1_0000_0001n;
/** Offset in the user's area of the bytes of a request, numbered over all rounds. */
const placeOf = (request: number): number => request * requestBytesMax;
const userBytes = (round: number) => patternOf(2000 + round, placeOf(requestsMax + 2));
const regionBytesOf = (round: number, { regionBytes }: Args) => patternOf(100 + round, regionBytes);

/** Returns the bytes of the region after the first `doneCount` requests. */
function regionAfter(args: Args, round: number, doneCount: number): Uint8Array {
  const { offset, requests } = args.rounds[round]!;
  const region = regionBytesOf(round, args);
  const user = userBytes(round);
  const view = new DataView(region.buffer);
  for (const [id, { verb, offset: within, lengthBytes }] of requests.slice(0, doneCount).entries()) {
    const at = offset + within;
    if (verb === WRITE) region.set(user.subarray(placeOf(id), placeOf(id) + lengthBytes), at);
    if (verb === ADD) view.setBigUint64(at, view.getBigUint64(at, true) + addend, true);
  }
  return region;
}

const open = (stage: Stage<Args>, areaBytes: number, more: number): Promise<Side> =>
  connect(stage, {
    ...{ areaBytes, access: ibv.IBV_ACCESS_LOCAL_WRITE | more, qpCount: stage.args.rounds.length },
    attributes: { timeoutCode: 13, rnrTimerCode: 12 },
  });

/** Context of a round at either side. */
interface Playing {
  readonly args: Args;
  readonly side: Side;
  readonly stage: Stage<Args>;
  readonly number: number;
  readonly round: Round;
  readonly qp: ibv.IbvQp;
}

const signalled = { sgList: [], numSge: 0, sendFlags: ibv.IBV_SEND_SIGNALED };

/** Waits for the end of a request, and accuses if it is another. @returns it */
async function expectEnd({ side }: Playing, what: string, ...due: readonly string[]): Promise<string> {
  const status = (await side.next())?.status ?? 'nothing';
  judgeEnd(side, what, status, due);
  return status;
}

const judgeEnd = ({ stage }: Side, what: string, status: string, due: readonly string[]): void => {
  if (!due.includes(status)) stage.accuse(`${what} ended in ${status} instead of ${due.join(' or ')}`);
};

/**
 * Topics: key and first byte of a bound window, null if it is not bound; then its end, and the number of requests that
 * had succeeded.
 */
const windowTopic = topic<Reach | null>('window');
const goneTopic = topic<true>('gone');
const triedTopic = topic<number>('tried');

async function answerer(stage: Stage<Args>): Promise<void> {
  const side = await open(stage, stage.args.regionBytes, ibv.IBV_ACCESS_MW_BIND);
  for (const [number, round] of stage.args.rounds.entries())
    await ownRound({ args: stage.args, side, stage, number, round, qp: side.qps[number]! });
}

async function ownRound(playing: Playing): Promise<void> {
  const { args, side, stage, number, round, qp } = playing;
  const { end, inTrafficNs } = round;
  const { area, device } = side;
  side.fill(regionBytesOf(number, args));
  const mw = await ibv.allocMw(device.pd, round.isType2 ? ibv.IBV_MW_TYPE_2 : ibv.IBV_MW_TYPE_1);
  bind(playing, mw);
  const isBound =
    (await expectEnd(playing, `bind ${number}`, round.isBindWrong ? 'MW_BIND_ERR' : 'SUCCESS')) === 'SUCCESS';
  if (isBound && end === 'remoteInvalidate') ibv.postRecv(qp, { wrId: 7, sgList: [], numSge: 0 });
  const address = round.isZeroBased ? 0 : area.address + round.offset;
  await stage.put(windowTopic, isBound ? { rkey: mw.rkey, address } : null);
  if (!isBound) return void (await ibv.deallocMw(mw));
  if (round.triesToDeregister) {
    const code = await codeOf(ibv.deregMr(area.region));
    if (code !== 'EBUSY') stage.accuse(`deregistering under window ${number}: ${code}`);
  }
  if (inTrafficNs === undefined) await stage.meet('used');
  else await stage.sleepNs(inTrafficNs);
  const taken = await takeBack(playing, mw);
  const last = patternOf(50_000 + number, round.lengthBytes);
  const seen = side.bytes(0, args.regionBytes);
  side.fill(last, round.offset);
  await stage.put(goneTopic, true);
  const doneCount = await stage.take(triedTopic);
  // A request of the user that is refused while it is carried out brings the queue into error, and it is flushed (10.3.1).
  const isBroken = inTrafficNs !== undefined && doneCount < round.requests.length;
  judgeEnd(side, `${end} ${number}`, taken, isBroken ? ['SUCCESS', 'WR_FLUSH_ERR'] : ['SUCCESS']);
  await stage.lastBytesIn();
  // When the window no longer existed, the region had the effects of the successful requests and no others.
  const due = regionAfter(args, number, doneCount);
  if (inTrafficNs === undefined) stage.expectBytes(`region when ${number} was gone`, seen, due);
  due.set(last, round.offset);
  side.expect(`region after round ${number}`, 0, due);
  if (end !== 'deallocate') await ibv.deallocMw(mw);
  await stage.meet('round');
}

function bind({ args, side: { area }, round, qp }: Playing, mw: ibv.IbvMw): void {
  const bindInfo = {
    mr: area.region,
    addr: area.address + round.offset,
    length: round.isBindWrong ? args.regionBytes - round.offset + 1 : round.lengthBytes,
    mwAccessFlags: round.access | (round.isZeroBased ? ibv.IBV_ACCESS_ZERO_BASED : 0),
  };
  if (!round.isType2) return void ibv.bindMw(qp, mw, { wrId: 1, sendFlags: ibv.IBV_SEND_SIGNALED, bindInfo });
  mw.rkey = ibv.incRkey(mw.rkey);
  const bindMw = { mw, rkey: mw.rkey, bindInfo };
  ibv.postSend(qp, { ...signalled, wrId: 1, opcode: ibv.IBV_WR_BIND_MW, bindMw });
}

/**
 * Returns when only the owner can reach the window's memory. @returns the end of the request that invalidated it
 */
async function takeBack({ side, stage, number, round, qp }: Playing, mw: ibv.IbvMw): Promise<string> {
  const { area } = side;
  const { end, offset, access } = round;
  const { rkey } = mw;
  if (end === 'deallocate') {
    await ibv.deallocMw(mw);
    return 'SUCCESS';
  }
  if (end === 'remoteInvalidate') {
    const [wc] = await side.watch(1, { napPs: psPerUs, patiencePs: 10_000_000 * psPerUs });
    if (wc?.immData !== rkey || (wc.wcFlags & ibv.IBV_WC_WITH_INV) === 0)
      stage.accuse(`${end} ${number}: received with key ${wc?.immData}, flags ${wc?.wcFlags}`);
    return wc?.status ?? 'nothing';
  }
  if (end === 'localInvalidate')
    ibv.postSend(qp, { ...signalled, wrId: 2, opcode: ibv.IBV_WR_LOCAL_INV, invalidateRkey: rkey });
  else {
    // Another place: eight bytes at the other end of the region, which no request uses.
    const addr = area.address + (offset > 8 ? 0 : area.lengthBytes - 8);
    const bindInfo = { mr: area.region, addr, length: end === 'elsewhere' ? 8 : 0, mwAccessFlags: access };
    ibv.bindMw(qp, mw, { wrId: 2, sendFlags: ibv.IBV_SEND_SIGNALED, bindInfo });
  }
  const status = (await side.next())?.status ?? 'nothing';
  await stage.cpu.settle();
  return status;
}

async function asker(stage: Stage<Args>): Promise<void> {
  const side = await open(stage, placeOf(requestsMax + 2), 0);
  for (const [number, round] of stage.args.rounds.entries())
    await useRound({ args: stage.args, side, stage, number, round, qp: side.qps[number]! });
}

const refusalsOf = ({ isLossy }: Args): string[] => ['REM_ACCESS_ERR', ...(isLossy ? ['RETRY_EXC_ERR'] : [])];

async function useRound(playing: Playing): Promise<void> {
  const { args, side, stage, number, round, qp } = playing;
  side.fill(userBytes(number));
  const bound = await stage.take(windowTopic);
  if (bound === null) return;
  const statuses = await use(playing, bound);
  const doneCount = statuses.filter((status) => status === 'SUCCESS').length;
  judgeStatuses(playing, statuses);
  judgeReads(playing, doneCount);
  if (round.inTrafficNs === undefined) await stage.meet('used');
  const isBroken = doneCount < round.requests.length;
  if (round.end === 'remoteInvalidate' && !isBroken) {
    const opcode = ibv.IBV_WR_SEND_WITH_INV;
    ibv.postSend(qp, { ...signalled, wrId: 50, opcode, invalidateRkey: bound.rkey });
    await expectEnd(playing, `SEND with Invalidate ${number}`, 'SUCCESS');
  }
  await stage.take(goneTopic);
  const last = { verb: WRITE, offset: 0, lengthBytes: 8, hasOldKey: false, isRefused: true } as const;
  ask(playing, bound, requestsMax + 1, last);
  const due = isBroken ? ['WR_FLUSH_ERR'] : refusalsOf(args);
  await expectEnd(playing, `a WRITE by the key of window ${number}`, ...due);
  await stage.put(triedTopic, doneCount);
  await stage.meet('round');
}

/** @returns how each request ended */
async function use(playing: Playing, bound: Reach): Promise<string[]> {
  const { args, side, round } = playing;
  const ended: Ended[] = [];
  for (const [id, request] of round.requests.entries()) {
    ask(playing, bound, id, request);
    if (!args.isAtOnce) ended.push(...(await side.completions(1)));
  }
  if (args.isAtOnce) ended.push(...(await side.completions(round.requests.length)));
  return round.requests.map((_, id) => ended.find((one) => one.id === id)?.status ?? 'nothing');
}

function ask({ side, number }: Playing, bound: Reach, id: number, request: Request): void {
  const { verb, offset, lengthBytes, hasOldKey } = request;
  const rkey = hasOldKey ? ((bound.rkey & ~0xff) | ((bound.rkey - 1) & 0xff)) >>> 0 : bound.rkey;
  // A request that changes bytes waits for READs and atomics of these bytes (10.8.3.3, table 79).
  const flags = verb === READ ? 0 : ibv.IBV_SEND_FENCE;
  const span = { offset: placeOf(id), remoteOffset: offset, lengthBytes };
  side
    .with({ peer: { address: bound.address, rkey } })
    .post(id, verb, { qp: number, ...span, flags, addend });
}

/**
 * Judges the statuses: SUCCESS up to the first that is refused; if the window is invalidated in mid-traffic, any may be
 * refused.
 */
function judgeStatuses({ args, side, number, round }: Playing, statuses: readonly string[]): void {
  let hasFailed = false;
  for (const [id, status] of statuses.entries()) {
    const refusals = refusalsOf(args);
    // The key of a READ that continues, or is requested again, may have been valid before.
    const open = round.inTrafficNs === undefined ? ['SUCCESS'] : ['SUCCESS', 'REM_OP_ERR', ...refusals];
    const due = hasFailed ? ['WR_FLUSH_ERR'] : round.requests[id]!.isRefused ? refusals : open;
    judgeEnd(side, `request ${id} of round ${number}`, status, due);
    hasFailed ||= status !== 'SUCCESS';
  }
}

/** Results of READs and atomics; nothing else may have changed. */
function judgeReads({ args, side, stage, number, round }: Playing, doneCount: number): void {
  const due = userBytes(number);
  for (const [id, { verb, offset, lengthBytes }] of round.requests.slice(0, doneCount).entries()) {
    if (verb === WRITE) continue;
    const from = round.offset + offset;
    due.set(regionAfter(args, number, id).subarray(from, from + lengthBytes), placeOf(id));
  }
  const seen = side.bytes(0, due.length);
  // A request that failed in mid-traffic may have moved a part of its bytes.
  if (round.requests[doneCount] !== undefined && round.inTrafficNs !== undefined)
    seen.set(due.subarray(placeOf(doneCount), placeOf(doneCount + 1)), placeOf(doneCount));
  stage.expectBytes(`what the requests of round ${number} brought`, seen, due);
}

export const boundWindows = scene({
  about:
    'windows of a region are bound, used and taken back by either side, after requests that use them and among these',
  draw,
  programs: [asker, answerer],
});
