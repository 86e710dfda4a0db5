/**
 * Requests of every shape: short and long lists of buffers, in WQEs that held longer lists before, empty buffers, inline data, many requests in one
 * post or single ones with pauses, and among them requests with invalid numbers. Sent bytes lie in the buffers of the receive, piece by piece, and
 * nowhere else; a message that is too long fails there; an invalid request is refused before any of its list is posted
 * (userlib/numbers.ts).
 */
import { connectRc, type RcBuffer } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Ended, Stage } from './language/index.ts';
import { filled, SEND, scene, sumOf, times } from './language/index.ts';

type Piece = readonly [offset: number, lengthBytes: number];

/** Bytes for each message of a round. */
const areaBytes = 8192;
const longestQueue = 7;
const blank = 0xee;

const lengthOf = (pieces: readonly Piece[]): number => sumOf(pieces.map(([, length]) => length));

interface Limits {
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineBytes: number;
}

function draw(random: Draws) {
  // Each has a QP of its own, since a message that is too long ends it.
  const stages = times(1 + random.below(3), () => {
    const [maxSendSge, maxRecvSge] = [1 + random.below(6), 1 + random.below(6)];
    const maxInlineBytes = random.chance(0.3) ? 0 : random.below(400);
    const limits = { maxSendSge, maxRecvSge, maxInlineBytes };
    const queueLength = random.oneOf([1, 2, 4, longestQueue, longestQueue]);
    const roundCount = 3 + random.below(8);
    const rounds = times(roundCount, (round) => {
      const good = times(1 + random.below(queueLength), (at) => drawMessage(random, limits, at === 0, false));
      const hasFlaw = round === roundCount - 1 && random.chance(0.7);
      const flawed = hasFlaw ? [drawMessage(random, limits, false, true)] : [];
      return [...good, ...flawed].slice(-queueLength);
    });
    return { ...limits, queueLength, rounds };
  });
  // Few entries are read at once, and slowly: others are posted while a read is under way that finds nothing.
  const slow = () => ({
    'pcie.rootComplex.readLatencyPs': 100_000 * (2 + random.below(10)),
    'hca.wqePrefetchCount': 1,
  });
  const set = random.maybe(0.5, slow);
  return {
    args: { stages },
    set,
    hasDrawnHardware: random.chance(0.4),
    climate: 'flawed',
  } satisfies Draft<unknown>;
}

function drawMessage(random: Draws, limits: Limits, isFirst: boolean, isTooLong: boolean) {
  const { maxSendSge, maxRecvSge, maxInlineBytes } = limits;
  const isInline = !isTooLong && maxInlineBytes > 0 && random.chance(0.6);
  const into = drawPieces(random, isTooLong ? 1 + random.below(maxRecvSge) : random.below(maxRecvSge + 1));
  const room = lengthOf(into);
  const most = isInline ? Math.min(room, maxInlineBytes) : room;
  const some = (): number => (random.chance(0.2) ? most : random.below(most + 1));
  const wanted = isTooLong ? room + 1 + random.below(100) : some();
  const from = cut(random, wanted, maxSendSge);
  const isApart = isFirst || random.chance(0.5);
  return {
    from,
    into,
    isInline,
    // `list`: posted in one list with the previous request; otherwise the delay after it.
    afterNs: isApart ? random.below(random.chance(0.7) ? 2000 : 6000) : ('list' as const),
    // A request that is none, posted last; its place among {@link brokenRequests}.
    broken: random.chance(0.15) ? random.below(brokenRequests.length) : -1,
  };
}

type Args = ArgsOf<typeof draw>;
type Message = ReturnType<typeof drawMessage>;

/** Buffers that do not touch one another, in any order, some of them empty. */
function drawPieces(random: Draws, count: number): Piece[] {
  const strideBytes = Math.floor(areaBytes / Math.max(1, count));
  const places = times(count, (at): Piece => {
    const length = random.chance(0.2) ? 0 : 1 + random.below(random.chance(0.7) ? 200 : 1200);
    return [at * strideBytes + random.below(strideBytes - length - 8), length];
  });
  return random.chance(0.5) ? places : places.toReversed();
}

/** Cuts the bytes into at most `most` pieces. */
function cut(random: Draws, lengthBytes: number, most: number): Piece[] {
  const pieces: Piece[] = [];
  let rest = lengthBytes;
  for (let left = 1 + random.below(most); left > 0; left--) {
    const length = left === 1 ? rest : random.chance(0.2) ? 0 : random.below(rest + 1);
    pieces.push([random.below(areaBytes - length + 1), length]);
    rest -= length;
  }
  return pieces;
}

/** Contents of the sender's memory. */
const sourceByte = (offset: number): number => (offset * 7 + (offset >>> 8) * 13) % 0xed;

const listOf = ({ address, region }: RcBuffer, pieces: readonly Piece[], base = 0): ibv.IbvSge[] =>
  pieces.map(([offset, length]) => ({ addr: address + base + offset, length, lkey: region.lkey }));

/** Changes of a request of two buffers that leave none: lengths of 31 bits and more, fractions, negative numbers, no numbers. */
const brokenRequests: readonly ((good: ibv.IbvSge) => Partial<ibv.IbvSendWr>)[] = [
  ...[2 ** 31, 2 ** 32, 2 ** 32 + 8, Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY].map(
    (length) => (good: ibv.IbvSge) => ({ sgList: [good, { ...good, length }] }),
  ),
  ...[-1, 2 ** 32, Number.NaN, 0.5].map((lkey) => (good: ibv.IbvSge) => ({
    sgList: [good, { ...good, lkey }],
  })),
  ...[-8, Number.NaN, 2 ** 53, 0.5].map((addr) => (good: ibv.IbvSge) => ({
    sgList: [good, { ...good, addr }],
  })),
  ...[-1, 3, 1.5, Number.NaN, 1000].map((numSge) => () => ({ numSge })),
  ...[99, -1, Number.NaN, 2.5].map((opcode) => () => ({ opcode })),
  ...[-1, Number.NaN, 2 ** 32, 0.5].map((sendFlags) => () => ({ sendFlags })),
];

const isTooLong = ({ from, into }: Message): boolean => lengthOf(from) > lengthOf(into);
const statusOf = (message: Message, failure: string): string => (isTooLong(message) ? failure : 'SUCCESS');

async function player(stage: Stage<Args>): Promise<void> {
  const device = await stage.open();
  const area = await device.buffer(longestQueue * areaBytes);
  stage.memory.write(
    area.address,
    Uint8Array.from({ length: areaBytes }, (_, offset) => sourceByte(offset)),
  );
  for (const [number, plan] of stage.args.stages.entries()) {
    const { maxSendSge, maxRecvSge, maxInlineBytes, queueLength, rounds } = plan;
    const cq = await device.cq(31);
    // One more than a round posts; otherwise an invalid request would be refused for lack of room.
    const sizes = { maxSendWr: queueLength + 1, maxRecvWr: queueLength };
    const cap = { ...sizes, maxSendSge, maxRecvSge, maxInlineData: maxInlineBytes };
    const [qp] = await device.rcQps(1, cq, cap);
    await connectRc(device.endpoint, [qp!], `stage ${number}`);
    for (const [round, messages] of rounds.entries()) {
      const where = `stage ${number}, round ${round}`;
      if (stage.node === 1) receive(stage, where, qp!, area, messages);
      await stage.meet('receives are posted');
      if (stage.node === 0) await send(stage, where, qp!, area, messages);
      const ended = await stage.completions(cq, messages.length);
      judgeEnds(stage, where, messages, ended);
      for (const [at, message] of stage.node === 1 ? messages.entries() : [])
        judgeBytes(stage, `${where}: receive ${at}`, area.address + at * areaBytes, message);
      await stage.meet('round');
    }
    await stage.meet('stage is over');
    await device.destroyQp(qp!);
    await device.destroyCq(cq);
  }
}

function receive(
  stage: Stage<Args>,
  where: string,
  qp: ibv.IbvQp,
  area: RcBuffer,
  messages: readonly Message[],
): void {
  stage.memory.write(area.address, filled(longestQueue * areaBytes, blank));
  for (const [wrId, { into }] of messages.entries()) {
    const sgList = listOf(area, into, wrId * areaBytes);
    if (ibv.postRecv(qp, { wrId, sgList, numSge: into.length }) !== 0)
      stage.accuse(`${where}: receive ${wrId} was refused`);
  }
}

/** Posts a round: in lists, each followed by an invalid request if one of its messages demands it. */
async function send(
  stage: Stage<Args>,
  where: string,
  qp: ibv.IbvQp,
  area: RcBuffer,
  messages: readonly Message[],
): Promise<void> {
  const signalled = { opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED };
  const lists: { readonly afterNs: number; readonly requests: ibv.IbvSendWr[]; broken: number }[] = [];
  for (const [wrId, { from, isInline, afterNs, broken }] of messages.entries()) {
    if (afterNs !== 'list' || lists.length === 0)
      lists.push({ afterNs: afterNs === 'list' ? 0 : afterNs, requests: [], broken: -1 });
    const list = lists.at(-1)!;
    list.broken = Math.max(list.broken, broken);
    const sendFlags = ibv.IBV_SEND_SIGNALED | (isInline ? ibv.IBV_SEND_INLINE : 0);
    list.requests.push({ ...signalled, wrId, sgList: listOf(area, from), numSge: from.length, sendFlags });
  }
  const [good] = listOf(area, [[0, 8]]) as [ibv.IbvSge];
  for (const { afterNs, requests, broken } of lists) {
    if (afterNs > 0) await stage.sleepNs(afterNs);
    const none = {
      wrId: 99,
      sgList: [good, good],
      numSge: 2,
      ...signalled,
      ...brokenRequests[broken]?.(good),
    };
    const posted = broken < 0 ? requests : [...requests, none];
    for (const [at, request] of posted.entries()) request.next = posted[at + 1] ?? null;
    const bad = { wr: null, index: -1 };
    const error = ibv.postSend(qp, posted[0]!, bad);
    const isRight = broken < 0 ? error === 0 : error === ibv.EINVAL && bad.index === requests.length;
    const what = `${requests.length} requests and the broken ${broken}`;
    if (!isRight) stage.accuse(`${where}: a post of ${what} gave ${error} at ${bad.index}`);
  }
}

function judgeEnds(
  stage: Stage<Args>,
  where: string,
  messages: readonly Message[],
  ended: readonly Ended[],
): void {
  for (const [at, message] of messages.entries()) {
    const end = ended[at];
    const status = statusOf(message, stage.node === 0 ? 'REM_INV_REQ_ERR' : 'LOC_LEN_ERR');
    if (end?.id !== at || end.status !== status)
      stage.accuse(`${where}: request ${at} ended as ${JSON.stringify(end)}, not ${status}`);
    else if (stage.node === 1 && !isTooLong(message) && end.byteLen !== lengthOf(message.from))
      stage.accuse(`${where}: receive ${at} has ${end.byteLen} bytes, not ${lengthOf(message.from)}`);
  }
}

/** The payload lies in the buffers, piece by piece; if it is too long they may hold anything. */
function judgeBytes(stage: Stage<Args>, what: string, address: number, { from, into }: Message): void {
  const payload = from.flatMap(([offset, length]) => times(length, (at) => sourceByte(offset + at)));
  const seen = stage.memory.read(address, areaBytes).slice();
  const due = filled(areaBytes, blank);
  const isLong = payload.length > lengthOf(into);
  for (const [offset, length] of into)
    if (isLong) due.set(seen.subarray(offset, offset + length), offset);
    else due.set(payload.splice(0, length), offset);
  stage.expectBytes(what, seen, due);
}

export const requestLists = scene({
  about: 'requests of every shape, in lists and one by one, and among them such as are none',
  draw,
  programs: [player, player],
});
