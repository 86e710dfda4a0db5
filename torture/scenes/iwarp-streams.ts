/**
 * Connections of iWARP carry SENDs, WRITEs and READs of all sizes both ways, over cables that lose, damage, copy and delay frames, or go down,
 * with drawn parameters of TCP and MPA; some connections end in mid-traffic. By RFC 5040, 5.5: requests complete in the order of their posting,
 * messages arrive in that order, once, each WRITE before the SENDs after it; a source is free when its request is complete; and no byte is
 * written but those that were asked for.
 *
 *     own region:    sources of own SENDs and WRITEs │ receives          (no remote rights)
 *     shared region: sinks of own READs │ targets of WRITEs and sources of READs of the peer
 */
import * as ibv from '../../userlib/index.ts';
import { drawEpochs, drawIwarp, drawLink, IwarpLinks, isPeerToPeer } from './iwarp-links.ts';
import type {
  ArgsOf,
  Device,
  Draft,
  Draws,
  FaultEntry,
  ParameterValues,
  Stage,
  Taken,
} from './language/index.ts';
import { patternOf, psPerMs, READ, SEND, scene, sumOf, times, WRITE } from './language/index.ts';
import { drawFault } from './lost-frames.ts';

const kinds = { SEND, WRITE, READ } as const;
const inlineBytesMax = 128;

/** Bytes of one request. */
function drawLength(random: Draws): number {
  const most = random.oneOf([4, 100, 1500, 1500, 10_000, 10_000, 70_000]);
  return random.chance(0.03) ? 0 : 1 + random.below(most);
}

function drawRequest(random: Draws, mostBytes: number) {
  const kind = random.oneOf(['SEND', 'SEND', 'WRITE', 'WRITE', 'READ'] as const);
  const lengthBytes = Math.min(mostBytes, drawLength(random));
  const pieces = kind === 'READ' || lengthBytes < 8 ? 1 : 1 + random.below(3);
  return {
    kind,
    lengthBytes,
    pieces,
    isInline: kind !== 'READ' && lengthBytes <= inlineBytesMax && random.chance(0.5),
    isSignalled: random.chance(0.6),
    isSolicited: random.chance(0.2),
    isFenced: random.chance(0.15),
    gapBytes: random.below(random.chance(0.5) ? 9 : 100),
    // Bytes of the receive beyond its message.
    spareBytes: random.chance(0.5) ? 0 : random.below(200),
  };
}

function draw(random: Draws) {
  const set = drawIwarp(random);
  const isLong = random.chance(0.04);
  const mostBytes = isLong ? 2_000_000 : 70_000;
  const linkCount = isLong ? 1 : 1 + random.below(random.chance(0.3) ? 6 : 3);
  const sharesReceives = [random.chance(0.25), random.chance(0.25)];
  const drawSide = (isFirst: boolean) => {
    const requests = times(random.below(isLong ? 4 : 16), () => drawRequest(random, mostBytes));
    const all = isFirst && requests.length === 0 ? [drawRequest(random, mostBytes)] : requests;
    if (isLong && isFirst)
      all.push({
        ...drawRequest(random, 1),
        kind: random.oneOf(['SEND', 'WRITE', 'READ'] as const),
        lengthBytes: 500_000 + random.below(1_500_000),
        isInline: false,
      });
    return { requests: all, depth: 1 + random.below(random.chance(0.5) ? 3 : 30) };
  };
  const links = times(linkCount, () => {
    const plan = drawLink(random);
    // A responder may have to wait for a message of its initiator.
    const mustBegin = !isPeerToPeer(set);
    const cut = random.maybe(0.2, () => ({
      cut: {
        by: random.below(2),
        how: random.oneOf(['disconnect', 'destroy', 'error'] as const),
        after: random.below(12),
      },
    }));
    return { plan, sides: [0, 1].map((node) => drawSide(mustBegin && node === plan.asker)), ...cut };
  });
  const { set: cable, faults: drawn } = drawCable(random);
  // A frame of the first connection's beginning.
  const early = { packet: 'lost', node: random.below(2), nth: random.between(3, 8) };
  const faults: readonly FaultEntry[] = random.chance(0.2) ? [...drawn, early] : drawn;
  const args = { links, sharesReceives };
  return {
    args,
    hasDrawnHardware: random.chance(0.3),
    set: { ...set, ...cable },
    faults,
    climate: 'lossy',
    sleepsSeconds: 1000,
    ...drawEpochs(random),
  } satisfies Draft<unknown>;
}

/** Draws the faults of the cable. */
function drawCable(random: Draws): { readonly set: ParameterValues; readonly faults: readonly FaultEntry[] } {
  switch (random.below(5)) {
    case 0:
      return { set: {}, faults: [] };
    case 1: {
      // In mid-traffic, for less time than TCP tries.
      const after = {
        after: 'RTR2RTS_QP',
        delay: `${random.below(400)}us`,
        for: `${1 + random.below(20_000)}us`,
      };
      const fault = random.chance(0.5) ? { port: 'down' } : { cable: 'pulled' };
      return { set: {}, faults: [{ ...fault, ...after, node: random.below(2) }] };
    }
    case 2:
      return {
        set: { 'driver.usesPause': false, 'ethernet.receiveFifoFrames': 1 + random.below(8) },
        faults: [],
      };
    default:
      return { set: {}, faults: times(1 + random.below(4), () => drawFault(random)) };
  }
}

type Args = ArgsOf<typeof draw>;
type LinkOf = Args['links'][number];
type Request = LinkOf['sides'][number]['requests'][number];

interface Piece {
  readonly at: number;
  readonly bytes: number;
}

/** Places of a request's bytes. */
interface Places {
  readonly request: Request;
  /** Memory of its poster: for a SEND or WRITE in the poster's own region, for a READ in the shared one. */
  readonly near: readonly Piece[];
  /** Memory of the peer: for a SEND the receive, in the peer's own region; otherwise in the shared one. */
  readonly far: readonly Piece[];
}

const piecesOf = (at: number, bytes: number, count: number): Piece[] => {
  const each = Math.floor(bytes / count);
  // A byte between any two.
  return times(count, (index) => ({
    at: at + index * (each + 1),
    bytes: index === count - 1 ? bytes - (count - 1) * each : each,
  }));
};
const endOf = (pieces: readonly Piece[]): number => pieces.at(-1)!.at + pieces.at(-1)!.bytes;

/** Places of all requests of a link, the same at both nodes; and the bytes of each node's regions. */
class Layout {
  readonly places: readonly (readonly Places[])[];
  readonly ownBytes = [64, 64];
  readonly sharedBytes = [64, 64];

  constructor({ sides }: LinkOf) {
    this.places = sides.map(({ requests }, node) =>
      requests.map((request) => {
        const { kind, lengthBytes, pieces, gapBytes, spareBytes } = request;
        const take = (from: number[], whose: number, bytes: number): Piece[] => {
          const taken = piecesOf(from[whose]! + gapBytes, bytes, pieces);
          from[whose] = endOf(taken) + 1;
          return taken;
        };
        const isSend = kind === 'SEND';
        return {
          request,
          near: take(kind === 'READ' ? this.sharedBytes : this.ownBytes, node, lengthBytes),
          far: isSend
            ? take(this.ownBytes, 1 - node, lengthBytes + spareBytes)
            : piecesOf(take(this.sharedBytes, 1 - node, lengthBytes + pieces)[0]!.at, lengthBytes, 1),
        };
      }),
    );
  }
}

/** Memory as it must be, byte by byte; of some bytes two values are possible. */
class Image {
  readonly #expected: Uint8Array;
  readonly #possible: Uint8Array;

  constructor(initial: Uint8Array) {
    this.#expected = initial.slice();
    this.#possible = initial.slice();
  }

  read(pieces: readonly Piece[]): Uint8Array {
    return Buffer.concat(pieces.map(({ at, bytes }) => this.#expected.subarray(at, at + bytes)));
  }

  /** These bytes are there. */
  put(pieces: readonly Piece[], bytes: Uint8Array): void {
    this.maybe(pieces, bytes);
    this.#eachPiece(pieces, bytes, (at, part) => this.#expected.set(part, at));
  }

  /** Each of these bytes may be there. */
  maybe(pieces: readonly Piece[], bytes: Uint8Array): void {
    this.#eachPiece(pieces, bytes, (at, part) => this.#possible.set(part, at));
  }

  /** Returns the place of the first impossible byte, or -1. */
  firstWrong(seen: Uint8Array): number {
    return seen.findIndex((byte, at) => byte !== this.#expected[at] && byte !== this.#possible[at]);
  }

  #eachPiece(pieces: readonly Piece[], bytes: Uint8Array, put: (at: number, part: Uint8Array) => void): void {
    let done = 0;
    for (const { at, bytes: count } of pieces) {
      put(at, bytes.subarray(done, Math.min(bytes.length, done + count)));
      done += count;
    }
  }
}

const initialOf = (link: number, node: number, region: number, bytes: number): Uint8Array =>
  patternOf(4 * link + 2 * node + region, bytes);

/** Numbers of requests, of receives, and of receives of the shared queue. */
const receiveFrom = 1 << 16;
const sharedFrom = 1 << 17;

/** One end of a link. */
class LinkEnd {
  readonly #stage: Stage<Args>;
  readonly #number: number;
  readonly #link: LinkOf;
  readonly #qp: ibv.IbvQp;
  readonly #mine: readonly Places[];
  readonly #theirs: readonly Places[];
  readonly #own: Memory;
  readonly #shared: Memory;
  /** Regions of the peer as they were in the beginning. */
  readonly #theirOwn: Uint8Array;
  readonly #theirShared: Uint8Array;
  readonly #peer: { readonly address: number; readonly rkey: number };
  #posted = 0;
  /** Requests that are complete, and failures among all completions of each queue. */
  #ended = 0;
  #hasFailed = false;
  #receivesEnded = 0;
  #received = 0;
  #hasReceiveFailed = false;
  #isDestroyed = false;
  #isCut = false;
  readonly #pool: SharedReceives | undefined;
  readonly #device: Device;

  constructor(parts: {
    readonly stage: Stage<Args>;
    readonly device: Device;
    readonly number: number;
    readonly qp: ibv.IbvQp;
    readonly layout: Layout;
    readonly own: Memory;
    readonly shared: Memory;
    readonly peer: { readonly address: number; readonly rkey: number };
    readonly pool: SharedReceives | undefined;
  }) {
    const { stage, number, layout } = parts;
    const { node } = stage;
    this.#stage = stage;
    this.#number = number;
    this.#link = stage.args.links[number]!;
    this.#qp = parts.qp;
    this.#mine = layout.places[node]!;
    this.#theirs = layout.places[1 - node]!;
    this.#own = parts.own;
    this.#shared = parts.shared;
    this.#peer = parts.peer;
    this.#pool = parts.pool;
    this.#device = parts.device;
    this.#theirOwn = initialOf(number, 1 - node, 0, layout.ownBytes[1 - node]!);
    this.#theirShared = initialOf(number, 1 - node, 1, layout.sharedBytes[1 - node]!);
  }

  get qpNum(): number {
    return this.#qp.qpNum;
  }

  get isCut(): boolean {
    return this.#link.cut !== undefined;
  }

  /** Whether everything posted here has ended. */
  get isOver(): boolean {
    const isSent = this.#ended === this.#mine.length;
    const messages = this.#theirs.filter(({ request }) => request.kind === 'SEND').length;
    // The messages of a connection that was cut may never come to a shared queue.
    const isReceived = this.#receivesEnded === messages || (this.#pool !== undefined && this.isCut);
    return this.#isDestroyed || (isSent && isReceived);
  }

  accuse(what: string): void {
    const { plan, cut } = this.#link;
    const how = cut === undefined ? '' : `, cut by node ${cut.by}: ${cut.how}`;
    this.#stage.accuse(`link ${this.#number} (asked by ${plan.asker}${how}): ${what}`);
  }

  /** Posts receives for all messages of the peer. */
  postReceives(): void {
    if (this.#pool !== undefined) return;
    for (const [index, { far }] of this.#sends.entries())
      ibv.postRecv(this.#qp, { wrId: receiveFrom + index, ...this.#own.list(far) });
  }

  /** Posts as many requests as the queue takes. */
  post(): void {
    const { requests, depth } = this.#link.sides[this.#stage.node]!;
    while (!this.#isDestroyed && this.#posted < requests.length && this.#posted - this.#ended < depth) {
      const index = this.#posted++;
      const errno = ibv.postSend(this.#qp, this.#request(index));
      if (errno !== 0) this.accuse(`request ${index} is refused with ${JSON.stringify(errno)}`);
    }
  }

  /** Ends the connection when the story wants it. */
  async cut(id: ibv.RdmaCmId): Promise<void> {
    const { cut } = this.#link;
    if (cut === undefined || this.#isCut || cut.by !== this.#stage.node) return;
    const progress = this.#ended + this.#receivesEnded;
    if (progress < cut.after && !this.isOver) return;
    this.#isCut = true;
    if (cut.how === 'disconnect') await ibv.rdmaDisconnect(id);
    else if (cut.how === 'error')
      await ibv.modifyQp(this.#qp, { qpState: ibv.IBV_QPS_ERR }, ibv.IBV_QP_STATE);
    else {
      this.#isDestroyed = true;
      await this.#device.destroyQp(this.#qp);
      id.qp = null;
    }
  }

  take(taken: Taken): void {
    if (this.#isDestroyed) return;
    if (taken.id >= receiveFrom) this.#receiveEnded(taken);
    else this.#sendEnded(taken);
  }

  /** Compares all memory with what it must be. */
  judge(): void {
    const received = this.#sends.slice(0, this.#received).at(-1);
    const reached = received === undefined ? -1 : this.#theirs.indexOf(received);
    for (const [index, places] of this.#theirs.entries()) {
      const { request, near, far } = places;
      if (request.kind !== 'WRITE') continue;
      const bytes = piecesIn(this.#theirOwn, near);
      if (!this.isCut || index < reached) this.#shared.image.put(far, bytes);
      else this.#shared.image.maybe(far, bytes);
    }
    if (this.#pool === undefined)
      for (const { near, far } of this.#sends.slice(this.#received))
        this.#own.image.maybe(far, piecesIn(this.#theirOwn, near));
    for (const { request, near, far } of this.#mine.slice(
      this.#isDestroyed || this.#hasFailed ? 0 : this.#mine.length,
    ))
      if (request.kind === 'READ') this.#shared.image.maybe(near, piecesIn(this.#theirShared, far));
    for (const [name, memory] of [
      ['own', this.#own],
      ['shared', this.#shared],
    ] as const) {
      const wrong = memory.firstWrong();
      if (wrong !== undefined) this.accuse(`${name} region: ${wrong}`);
    }
  }

  get #sends(): Places[] {
    return this.#theirs.filter(({ request }) => request.kind === 'SEND');
  }

  #request(index: number): ibv.IbvSendWr {
    const { request, near, far } = this.#mine[index]!;
    const { depth } = this.#link.sides[this.#stage.node]!;
    const isSignalled =
      request.isSignalled || index === this.#mine.length - 1 || index % depth === depth - 1 || depth === 1;
    const { IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED } = ibv;
    const sendFlags =
      (isSignalled ? IBV_SEND_SIGNALED : 0) |
      (request.isInline ? IBV_SEND_INLINE : 0) |
      (request.isSolicited && request.kind === 'SEND' ? IBV_SEND_SOLICITED : 0) |
      (request.isFenced ? IBV_SEND_FENCE : 0);
    const memory = request.kind === 'READ' ? this.#shared : this.#own;
    const list = request.lengthBytes === 0 ? { sgList: [], numSge: 0 } : memory.list(near);
    const base = { wrId: index, ...list, opcode: kinds[request.kind], sendFlags };
    if (request.kind === 'SEND') return base;
    const { address, rkey } = this.#peer;
    return { ...base, wr: { rdma: { remoteAddr: address + far[0]!.at, rkey } } };
  }

  #sendEnded({ id, status }: Taken): void {
    const isWell = status === 'SUCCESS';
    if (id < this.#ended || id >= this.#posted)
      return this.accuse(`request ${id} completes after ${this.#ended - 1}`);
    if (isWell && this.#hasFailed) this.accuse(`request ${id} succeeds after one that failed`);
    if (!isWell && (!this.isCut || status !== 'WR_FLUSH_ERR'))
      this.accuse(`request ${id} ended in ${status}`);
    if (!isWell && this.#mine.slice(this.#ended, id).length > 0 && this.#hasFailed)
      this.accuse(`requests ${this.#ended} to ${id - 1} are not flushed`);
    this.#hasFailed ||= !isWell;
    for (const { request, near, far } of this.#mine.slice(this.#ended, isWell ? id + 1 : id))
      if (request.kind === 'READ') {
        const bytes = piecesIn(this.#theirShared, far);
        this.#shared.expect(`the result of READ ${id}`, near, bytes);
      } else this.#own.scribble(near);
    this.#ended = id + 1;
  }

  #receiveEnded({ id, status, byteLen }: Taken): void {
    const index = this.#receivesEnded++;
    if (status !== 'SUCCESS') {
      this.#hasReceiveFailed = true;
      if (!this.isCut || status !== 'WR_FLUSH_ERR') this.accuse(`receive ${index} ended in ${status}`);
      return;
    }
    if (this.#hasReceiveFailed) this.accuse(`receive ${index} succeeds after one that failed`);
    const message = this.#sends[index];
    if (message === undefined) return this.accuse(`receive ${index} of ${this.#sends.length} messages`);
    this.#received++;
    const { request, near, far } = message;
    if (byteLen !== request.lengthBytes)
      this.accuse(`message ${index} has ${byteLen} bytes of ${request.lengthBytes}`);
    const bytes = piecesIn(this.#theirOwn, near);
    if (this.#pool !== undefined) this.#pool.received(id - sharedFrom, bytes, (what) => this.accuse(what));
    else {
      if (id !== receiveFrom + index) this.accuse(`receive ${id - receiveFrom} completes as number ${index}`);
      this.#own.expect(`message ${index}`, far, bytes);
    }
    // Each WRITE that the peer posted before this SEND is placed.
    for (const earlier of this.#theirs.slice(0, this.#theirs.indexOf(message)))
      if (earlier.request.kind === 'WRITE')
        this.#shared.expect(
          `a WRITE before message ${index}`,
          earlier.far,
          piecesIn(this.#theirOwn, earlier.near),
        );
  }
}

const piecesIn = (bytes: Uint8Array, pieces: readonly Piece[]): Uint8Array =>
  Buffer.concat(pieces.map(({ at, bytes: count }) => bytes.subarray(at, at + count)));

/** A region and its image. */
class Memory {
  readonly image: Image;
  readonly region: ibv.IbvMr;
  readonly #stage: Stage<unknown>;
  readonly #address: number;
  readonly #bytes: number;

  private constructor(stage: Stage<unknown>, address: number, region: ibv.IbvMr, initial: Uint8Array) {
    this.#stage = stage;
    this.#address = address;
    this.region = region;
    this.#bytes = initial.length;
    this.image = new Image(initial);
  }

  static async of(
    links: IwarpLinks,
    stage: Stage<unknown>,
    initial: Uint8Array,
    access: number,
  ): Promise<Memory> {
    const { address, region } = await links.device.buffer(initial.length, access);
    stage.memory.write(address, initial);
    return new Memory(stage, address, region, initial);
  }

  get reach(): { address: number; rkey: number } {
    return { address: this.#address, rkey: this.region.rkey };
  }

  list(pieces: readonly Piece[]): { sgList: ibv.IbvSge[]; numSge: number } {
    const { lkey } = this.region;
    const sgList = pieces.map(({ at, bytes }) => ({ addr: this.#address + at, length: bytes, lkey }));
    return { sgList, numSge: sgList.length };
  }

  /** Accuses if memory does not hold these bytes now. */
  expect(what: string, pieces: readonly Piece[], bytes: Uint8Array): void {
    let done = 0;
    for (const { at, bytes: count } of pieces) {
      const due = bytes.subarray(done, done + count);
      this.#stage.expectAt(what, this.#address + at, due);
      done += count;
    }
    this.image.put(pieces, bytes);
  }

  /** Overwrites the source of a complete request, as programs may (RFC 5040, 5.5). */
  scribble(pieces: readonly Piece[]): void {
    const other = new Uint8Array(sumOf(pieces.map(({ bytes }) => bytes)));
    this.image.put(pieces, other);
    for (const { at, bytes } of pieces)
      this.#stage.memory.write(this.#address + at, other.subarray(0, bytes));
  }

  /** Returns words for the first impossible byte. */
  firstWrong(): string | undefined {
    const seen = this.#stage.memory.read(this.#address, this.#bytes);
    const at = this.image.firstWrong(seen);
    return at < 0
      ? undefined
      : `byte ${at} of ${this.#bytes} is ${seen[at]}, ${this.image.read([{ at, bytes: 1 }])} was due`;
  }
}

/** Receives of all links of a node, of equal length. */
class SharedReceives {
  readonly srq: ibv.IbvSrq;
  readonly #memory: Memory;
  readonly #slotBytes: number;

  private constructor(srq: ibv.IbvSrq, memory: Memory, slotBytes: number) {
    this.srq = srq;
    this.#memory = memory;
    this.#slotBytes = slotBytes;
  }

  static async of(links: IwarpLinks, stage: Stage<Args>): Promise<SharedReceives> {
    const messages = stage.args.links.flatMap(({ sides }) =>
      sides[1 - stage.node]!.requests.filter(({ kind }) => kind === 'SEND'),
    );
    const slotBytes = Math.max(1, ...messages.map(({ lengthBytes }) => lengthBytes));
    const count = Math.max(1, messages.length);
    const memory = await Memory.of(
      links,
      stage,
      new Uint8Array(count * slotBytes),
      ibv.IBV_ACCESS_LOCAL_WRITE,
    );
    const srq = await links.device.srq({ maxWr: count, maxSge: 1 });
    for (const slot of times(count, (at) => at))
      ibv.postSrqRecv(srq, {
        wrId: sharedFrom + slot,
        ...memory.list([{ at: slot * slotBytes, bytes: slotBytes }]),
      });
    return new SharedReceives(srq, memory, slotBytes);
  }

  received(slot: number, bytes: Uint8Array, accuse: (what: string) => void): void {
    if (bytes.length > this.#slotBytes) accuse(`a message of ${bytes.length} bytes in a shared receive`);
    this.#memory.expect(
      `the message in shared receive ${slot}`,
      [{ at: slot * this.#slotBytes, bytes: bytes.length }],
      bytes,
    );
  }

  /** @param isWhole whether all messages have come: nothing else is there then */
  judge(stage: Stage<unknown>, isWhole: boolean): void {
    const wrong = isWhole ? this.#memory.firstWrong() : undefined;
    if (wrong !== undefined) stage.accuse(`shared receives: ${wrong}`);
  }
}

const patiencePs = 300_000 * psPerMs;

async function player(stage: Stage<Args>): Promise<void> {
  const { args, node } = stage;
  const made = await IwarpLinks.open(stage);
  const cq = await made.device.cq(4000);
  const pool = args.sharesReceives[node] ? await SharedReceives.of(made, stage) : undefined;
  const ends: LinkEnd[] = [];
  for (const [number, link] of args.links.entries())
    ends.push(await makeEnd(stage, made, { number, link, cq, pool }));
  await stage.meet('connected');
  await exchange(stage, ends, made.ids, cq);
  await stage.meet('all has ended');
  const whole = args.links.flatMap(({ cut }, at) => (cut === undefined ? [at] : []));
  // Either side begins, or both at once. What was sent before arrives.
  for (const at of whole)
    if (args.links[at]!.plan.asker === node || at % 2 === 0) await ibv.rdmaDisconnect(made.ids[at]!);
  const seen = await made.disconnected(args.links.length);
  if (seen < args.links.length) stage.accuse(`${seen} of ${args.links.length} connections were disconnected`);
  await stage.meet('disconnected');
  await stage.lastBytesIn();
  for (const end of ends) end.judge();
  pool?.judge(
    stage,
    ends.every(({ isCut }) => !isCut),
  );
  await made.close();
}

async function makeEnd(
  stage: Stage<Args>,
  made: IwarpLinks,
  {
    number,
    link,
    cq,
    pool,
  }: { number: number; link: LinkOf; cq: ibv.IbvCq; pool: SharedReceives | undefined },
): Promise<LinkEnd> {
  const { node } = stage;
  const { depth } = link.sides[node]!;
  const cap = {
    maxSendWr: depth,
    maxRecvWr: pool === undefined ? 32 : 0,
    maxSendSge: 3,
    maxRecvSge: pool === undefined ? 3 : 0,
    maxInlineData: inlineBytesMax,
  };
  const srq = pool === undefined ? {} : { srq: pool.srq };
  const qp = await made.device.qp(cq, { qpType: ibv.IBV_QPT_RC, cap, ...srq });
  const layout = new Layout(link);
  const { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE } = ibv;
  const allRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const own = await Memory.of(
    made,
    stage,
    initialOf(number, node, 0, layout.ownBytes[node]!),
    IBV_ACCESS_LOCAL_WRITE,
  );
  const shared = await Memory.of(
    made,
    stage,
    initialOf(number, node, 1, layout.sharedBytes[node]!),
    allRights,
  );
  const peer = await stage.swap<{ address: number; rkey: number }>({ name: `reach ${number}` }, shared.reach);
  const end = new LinkEnd({ stage, device: made.device, number, qp, layout, own, shared, peer, pool });
  await stage.meet(`link ${number}`);
  await made.make(link.plan, qp, () => end.postReceives());
  return end;
}

/** Posts and polls until everything has ended. */
async function exchange(
  stage: Stage<Args>,
  ends: readonly LinkEnd[],
  ids: readonly ibv.RdmaCmId[],
  cq: ibv.IbvCq,
): Promise<void> {
  const byQp = new Map(ends.map((end) => [end.qpNum, end]));
  let movedPs = stage.nowPs;
  let napPs = 0;
  while (!ends.every(({ isOver }) => isOver) && stage.nowPs - movedPs < patiencePs) {
    for (const [at, end] of ends.entries()) {
      end.post();
      await end.cut(ids[at]!);
    }
    const taken = await stage.drain(cq);
    for (const one of taken) byQp.get(one.qpNum)!.take(one);
    if (taken.length > 0) movedPs = stage.nowPs;
    napPs = taken.length > 0 ? psPerMs / 1000 : Math.min(2 * napPs, 100 * psPerMs);
    await stage.cpu.sleep(napPs + 1000);
  }
  for (const [at, end] of ends.entries()) {
    if (!end.isOver) end.accuse('not everything has ended');
    await end.cut(ids[at]!);
  }
}

export const iwarpStreams = scene({
  about:
    'connections of iWARP carry messages of all kinds and sizes both ways, on cables that lose, damage and delay frames',
  cable: 'ethernet',
  draw,
  programs: [player, player],
});
