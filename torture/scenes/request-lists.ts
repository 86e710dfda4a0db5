/**
 * Requests of every shape: lists of buffers short and long, in work queue entries that held longer lists before, empty
 * buffers between others, inline data, many requests in one post or each by itself so long after the one before, and among
 * them requests whose numbers are none. What was sent lies in the buffers of the receive, piece by piece, and nowhere else;
 * a message that is too long fails there; what is no request is refused before anything is posted (userlib/numbers.ts).
 */
import { psPerNs } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  closeDevice,
  createCq,
  deallocPd,
  deregMr,
  destroyCq,
  destroyQp,
  EINVAL,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_LOC_LEN_ERR,
  IBV_WC_REM_INV_REQ_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  type IbvSendWr,
  type IbvSge,
  postRecv,
  postSend,
} from '../../userlib/index.ts';
import { askerAndAnswerer, completionsOf, type Ended } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly stages: readonly Stage[];
}

/** Each has a QP of its own, since a message that is too long ends it. */
interface Stage {
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineBytes: number;
  readonly queueLength: number;
  readonly rounds: readonly (readonly Message[])[];
}

interface Message {
  readonly from: readonly Piece[];
  readonly into: readonly Piece[];
  readonly isInline: boolean;
  /** Posted in one list with the one before it, or so long after that. */
  readonly afterNs: number | 'list';
  /** A request that is none, posted first; its place among {@link brokenRequests}. */
  readonly broken: number;
}

type Piece = readonly [offset: number, lengthBytes: number];

/** Of each message of a round. */
const areaBytes = 8192;
const longestQueue = 7;
const blank = 0xee;

const lengthOf = (pieces: readonly Piece[]): number => pieces.reduce((sum, [, length]) => sum + length, 0);

function draw(random: Random): SceneDraft {
  const stages = Array.from({ length: 1 + random.below(3) }, (): Stage => {
    const maxSendSge = 1 + random.below(6);
    const maxRecvSge = 1 + random.below(6);
    const maxInlineBytes = random.chance(0.3) ? 0 : random.below(400);
    const limits = { maxSendSge, maxRecvSge, maxInlineBytes };
    const queueLength = [1, 2, 4, longestQueue, longestQueue][random.below(5)]!;
    const roundCount = 3 + random.below(8);
    const rounds = Array.from({ length: roundCount }, (_, round) =>
      Array.from({ length: 1 + random.below(queueLength) }, (_, at) =>
        drawMessage(random, { ...limits, isFirst: at === 0, isTooLong: false }),
      )
        .concat(
          round === roundCount - 1 && random.chance(0.7)
            ? [drawMessage(random, { ...limits, isFirst: false, isTooLong: true })]
            : [],
        )
        .slice(-queueLength),
    );
    return { ...limits, queueLength, rounds };
  });
  const args: Args = { stages };
  const isSlow = random.chance(0.5);
  return {
    args: args as unknown as JsonValue,
    // Few entries are read at once, and slowly: others are posted while a read is under way that finds nothing.
    set: isSlow
      ? {
          'pcie.rootComplex.readLatencyPs': 100_000 * (2 + random.below(10)),
          'hca.wqePrefetchCount': 1,
        }
      : {},
    hasDrawnHardware: random.chance(0.4),
    climate: 'flawed',
  };
}

interface Shape {
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineBytes: number;
  readonly isFirst: boolean;
  readonly isTooLong: boolean;
}

function drawMessage(
  random: Random,
  { maxSendSge, maxRecvSge, maxInlineBytes, isFirst, isTooLong }: Shape,
): Message {
  const isInline = !isTooLong && maxInlineBytes > 0 && random.chance(0.6);
  const into = drawPieces(random, isTooLong ? 1 + random.below(maxRecvSge) : random.below(maxRecvSge + 1));
  const room = lengthOf(into);
  const most = isInline ? Math.min(room, maxInlineBytes) : room;
  const wanted = isTooLong
    ? room + 1 + random.below(100)
    : random.chance(0.2)
      ? most
      : random.below(most + 1);
  return {
    from: cut(random, wanted, maxSendSge),
    into,
    isInline,
    afterNs: isFirst || random.chance(0.5) ? random.below(random.chance(0.7) ? 2000 : 6000) : 'list',
    broken: random.chance(0.15) ? random.below(brokenRequests.length) : -1,
  };
}

/** Buffers that do not touch one another, in any order, some of them empty. */
function drawPieces(random: Random, count: number): Piece[] {
  const strideBytes = Math.floor(areaBytes / Math.max(1, count));
  const places = Array.from({ length: count }, (_, at): Piece => {
    const length = random.chance(0.2) ? 0 : 1 + random.below(random.chance(0.7) ? 200 : 1200);
    const offset = at * strideBytes + random.below(strideBytes - length - 8);
    return [offset, length];
  });
  return random.chance(0.5) ? places : places.toReversed();
}

/** So many bytes in up to so many pieces. */
function cut(random: Random, lengthBytes: number, most: number): Piece[] {
  const pieces: Piece[] = [];
  let rest = lengthBytes;
  for (let left = 1 + random.below(most); left > 0; left--) {
    const length = left === 1 ? rest : random.chance(0.2) ? 0 : random.below(rest + 1);
    pieces.push([random.below(areaBytes - length + 1), length]);
    rest -= length;
  }
  return pieces;
}

/** What the sender's memory holds. */
const sourceByte = (offset: number): number => (offset * 7 + (offset >>> 8) * 13) % 0xed;

const sgeOf = ({ address, region }: RcBuffer, [offset, length]: Piece): IbvSge => ({
  addr: address + offset,
  length,
  lkey: region.lkey,
});

/** Changes of a request of two buffers that leave none: lengths of 31 bits and more, fractions, negative numbers, no numbers. */
const brokenRequests: readonly ((request: IbvSendWr, good: IbvSge) => Partial<IbvSendWr>)[] = [
  ...[2 ** 31, 2 ** 32, 2 ** 32 + 8, Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY].map(
    (length) => (_: IbvSendWr, good: IbvSge) => ({ sgList: [good, { ...good, length }] }),
  ),
  ...[-1, 2 ** 32, Number.NaN, 0.5].map((lkey) => (_: IbvSendWr, good: IbvSge) => ({
    sgList: [good, { ...good, lkey }],
  })),
  ...[-8, Number.NaN, 2 ** 53, 0.5].map((addr) => (_: IbvSendWr, good: IbvSge) => ({
    sgList: [good, { ...good, addr }],
  })),
  ...[-1, 3, 1.5, Number.NaN, 1000].map((numSge) => () => ({ numSge })),
  ...[99, -1, Number.NaN, 2.5].map((opcode) => () => ({ opcode })),
  ...[-1, Number.NaN, 2 ** 32, 0.5].map((sendFlags) => () => ({ sendFlags })),
];

/** Sends. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { stages } = program.args as unknown as Args;
  return play(
    program,
    async (stage, number, side, found) => {
      for (const [round, messages] of stage.rounds.entries()) {
        await barrier(program, 'receives are posted');
        found.push(
          ...(await send(program, side, messages)).map((what) => `stage ${number}, round ${round}: ${what}`),
        );
        const ended = await completionsOf(side, messages.length);
        for (const [at, message] of messages.entries()) {
          const status = isTooLong(message) ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS;
          if (ended[at]?.id !== at || ended[at].status !== status)
            found.push(
              `stage ${number}, round ${round}: send ${at} ended as ${JSON.stringify(ended[at])}, not ${status}`,
            );
        }
        await barrier(program, 'round');
      }
    },
    stages,
  );
}

/** Receives. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { stages } = program.args as unknown as Args;
  return play(
    program,
    async (stage, number, side, found) => {
      const { area, qp } = side;
      for (const [round, messages] of stage.rounds.entries()) {
        program.memory.write(area.address, new Uint8Array(longestQueue * areaBytes).fill(blank));
        for (const [wrId, { into }] of messages.entries())
          if (
            postRecv(qp, {
              wrId,
              sgList: into.map(([offset, length]) => sgeOf(area, [wrId * areaBytes + offset, length])),
              numSge: into.length,
            }) !== 0
          )
            found.push(`stage ${number}, round ${round}: receive ${wrId} was refused`);
        await barrier(program, 'receives are posted');
        const ended = await completionsOf(side, messages.length);
        const bytes = program.memory.read(area.address, longestQueue * areaBytes);
        found.push(
          ...wrongOf(messages, ended, bytes).map((what) => `stage ${number}, round ${round}: ${what}`),
        );
        await barrier(program, 'round');
      }
    },
    stages,
  );
}

const isTooLong = ({ from, into }: Message): boolean => lengthOf(from) > lengthOf(into);

/** What one end of a stage has. */
interface End {
  readonly endpoint: RcEndpoint;
  readonly cq: IbvCq;
  readonly qp: IbvQp;
  readonly area: RcBuffer;
}

async function play(
  program: ProgramContext,
  playStage: (stage: Stage, number: number, end: End, found: string[]) => Promise<void>,
  stages: readonly Stage[],
): Promise<JsonValue> {
  const endpoint = await openEndpoint(program);
  const area = await createBuffer(endpoint, longestQueue * areaBytes);
  program.memory.write(
    area.address,
    Uint8Array.from({ length: areaBytes }, (_, offset) => sourceByte(offset)),
  );
  const found: string[] = [];
  for (const [number, stage] of stages.entries()) {
    const { maxSendSge, maxRecvSge, maxInlineBytes, queueLength } = stage;
    const cq = await createCq(endpoint.context, 31);
    const [qp] = await createRcQps(
      endpoint,
      1,
      { send: cq, receive: cq },
      {
        // One more than a round posts, or what is none would be refused for want of room.
        maxSendWr: queueLength + 1,
        maxRecvWr: queueLength,
        maxSendSge,
        maxRecvSge,
        maxInlineData: maxInlineBytes,
      },
    );
    await connectRc(endpoint, [qp!], `stage ${number}`);
    await playStage(stage, number, { endpoint, cq, qp: qp!, area }, found);
    await barrier(program, `stage ${number} is over`);
    await destroyQp(qp!);
    await destroyCq(cq);
  }
  await deregMr(area.region);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
  return found;
}

/** Posts a round: in lists, each followed by a request that is none if one of its messages says so. */
async function send(
  { cpu }: ProgramContext,
  { qp, area }: End,
  messages: readonly Message[],
): Promise<string[]> {
  const lists: { readonly afterNs: number; readonly requests: IbvSendWr[]; broken: number }[] = [];
  for (const [wrId, { from, isInline, afterNs, broken }] of messages.entries()) {
    if (afterNs !== 'list' || lists.length === 0)
      lists.push({ afterNs: afterNs === 'list' ? 0 : afterNs, requests: [], broken: -1 });
    const list = lists.at(-1)!;
    list.broken = Math.max(list.broken, broken);
    list.requests.push({
      wrId,
      sgList: from.map((piece) => sgeOf(area, piece)),
      numSge: from.length,
      opcode: IBV_WR_SEND,
      sendFlags: IBV_SEND_SIGNALED | (isInline ? IBV_SEND_INLINE : 0),
    });
  }
  const found: string[] = [];
  for (const { afterNs, requests, broken } of lists) {
    if (afterNs > 0) await cpu.sleep(afterNs * psPerNs);
    const isBroken = broken >= 0;
    const posted = isBroken ? [...requests, brokenRequest(broken, area)] : requests;
    for (const [at, request] of posted.entries()) request.next = posted[at + 1] ?? null;
    const bad = { wr: null, index: -1 };
    const error = postSend(qp, posted[0]!, bad);
    if (error !== (isBroken ? EINVAL : 0) || (isBroken && bad.index !== requests.length))
      found.push(
        `a post of ${requests.length} requests${isBroken ? ` and the broken ${broken}` : ''} gave ${error} at ${bad.index}`,
      );
  }
  return found;
}

function brokenRequest(number: number, area: RcBuffer): IbvSendWr {
  const good = sgeOf(area, [0, 8]);
  const request = {
    wrId: 99,
    sgList: [good, good],
    numSge: 2,
    opcode: IBV_WR_SEND,
    sendFlags: IBV_SEND_SIGNALED,
  };
  return { ...request, ...brokenRequests[number]!(request, good) };
}

/** What the receiver's memory ought not to hold, and what its completions ought not to say. */
function wrongOf(messages: readonly Message[], ended: readonly Ended[], bytes: Uint8Array): string[] {
  return messages.flatMap((message, at) => {
    const seen = ended[at];
    const status = isTooLong(message) ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
    if (seen?.id !== at || seen.status !== status)
      return [`receive ${at} ended as ${JSON.stringify(seen)}, not ${status}`];
    if (!isTooLong(message) && seen.byteLen !== lengthOf(message.from))
      return [`receive ${at} has ${seen.byteLen} bytes, not ${lengthOf(message.from)}`];
    const expected = expectedOf(message);
    const place = expected.findIndex((byte, offset) => byte >= 0 && byte !== bytes[at * areaBytes + offset]);
    return place < 0
      ? []
      : [`receive ${at} has ${bytes[at * areaBytes + place]} at ${place}, not ${expected[place]}`];
  });
}

/** Byte by byte; -1 for what may be anything. */
function expectedOf(message: Message): Int16Array {
  const { from, into } = message;
  const expected = new Int16Array(areaBytes).fill(blank);
  const payload = from.flatMap(([offset, length]) =>
    Array.from({ length }, (_, at) => sourceByte(offset + at)),
  );
  let done = 0;
  for (const [offset, length] of into) {
    for (let at = 0; at < length; at++) {
      const isOfMessage = done < payload.length;
      if (isTooLong(message)) expected[offset + at] = -1;
      else if (isOfMessage) expected[offset + at] = payload[done]!;
      done++;
    }
  }
  return expected;
}

export const requestLists: Scene = {
  name: 'request-lists',
  about: 'requests of every shape, in lists and one by one, and among them such as are none',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
