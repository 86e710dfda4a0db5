/**
 * Requests over iWARP that the peer, or the own card, must refuse: by a wrong key, bounds, rights or protection domain, a receive that is too
 * short or missing, a window that was taken back. The card that finds the error sends the Terminate that RFC 5040, 4.8, and RFC 5041, 7, have
 * for it; what was sent before is placed, no byte of what is refused, and everything else is flushed.
 *
 *     asker: good requests ─► the flawed one ─► one more        owner: receives, regions ─► Terminate ─► all bytes as they must be
 */
import { toInit } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { drawEpochs, drawIwarp, drawLink, IwarpLinks, isPeerToPeer } from './iwarp-links.ts';
import type { ArgsOf, Draft, Draws, Played, Stage, Taken } from './language/index.ts';
import { isWell, patternOf, psPerMs, READ, SEND, scene, times, topic, WRITE } from './language/index.ts';
import { drawFault } from './lost-frames.ts';

const { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE } = ibv;

interface Flaw {
  readonly opcode: number;
  /** Layer, type and code of the Terminate, as four hexadecimal digits; undefined: the card sends RST instead. */
  readonly error: string | undefined;
  /** The asker finds the error; else the owner. */
  readonly isOwn?: true;
  /** Statuses of the flawed request. A WRITE or SEND is complete when TCP has it. */
  readonly ends: readonly string[];
  /** Status of the receive that the flawed request takes. */
  readonly receive?: string;
}

const sent = ['SUCCESS', 'WR_FLUSH_ERR'];
const flushed = ['WR_FLUSH_ERR'];
const flaws = {
  writeKey: { opcode: WRITE, error: '1100', ends: sent },
  writeBounds: { opcode: WRITE, error: '1101', ends: sent },
  writeRight: { opcode: WRITE, error: '0102', ends: sent },
  writeDomain: { opcode: WRITE, error: '1102', ends: sent },
  writeWindow: { opcode: WRITE, error: '1100', ends: sent },
  readKey: { opcode: READ, error: '0100', ends: flushed },
  readBounds: { opcode: READ, error: '0101', ends: flushed },
  readRight: { opcode: READ, error: '0102', ends: flushed },
  readDomain: { opcode: READ, error: '0103', ends: flushed },
  readSink: { opcode: READ, error: '0102', isOwn: true, ends: ['LOC_PROT_ERR'] },
  sendLong: { opcode: SEND, error: '1205', ends: sent, receive: 'LOC_LEN_ERR' },
  sendMissing: { opcode: SEND, error: '1202', ends: sent },
  sendKey: { opcode: SEND, error: undefined, isOwn: true, ends: ['LOC_PROT_ERR'] },
} as const satisfies Record<string, Flaw>;
type FlawName = keyof typeof flaws;
const flawNames = Object.keys(flaws) as FlawName[];

function draw(random: Draws) {
  const set = drawIwarp(random);
  const rounds = times(1 + random.below(3), () => {
    const most = random.oneOf([8, 2000, 20_000]);
    return {
      plan: drawLink(random),
      flaw: random.oneOf(flawNames),
      asker: random.below(2),
      lengthBytes: 8 + random.below(most),
      // Good ones before it; a responder may have to wait for a message of its initiator.
      good: times(1 + random.below(5), () => random.oneOf([WRITE, SEND, READ])),
    };
  });
  const plans = rounds.map((round) => ({
    ...round,
    placesEarly: Number(set['hca.iwarp.earlySegments'] ?? 0) > 0,
    ...(isPeerToPeer(set) ? {} : { plan: { ...round.plan, asker: round.asker } }),
    // RST overtakes what TCP has, but nothing that a READ has waited for.
    ...(round.flaw === 'sendKey' ? { good: [...round.good, READ] } : {}),
  }));
  const faults = random.chance(0.4) ? times(1 + random.below(2), () => drawFault(random)) : [];
  return {
    args: { rounds: plans },
    set,
    faults,
    climate: 'lossy',
    sleepsSeconds: 1000,
    ...drawEpochs(random),
  } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];

/** Keys and addresses of the owner's regions, by their purpose. */
interface Reach {
  readonly address: number;
  readonly good: number;
  readonly readOnly: number;
  readonly writeOnly: number;
  readonly foreign: number;
  readonly window: number;
}
const reachTopic = topic<Reach>('reach');

const slotBytes = 20_008;
const slots = 8;
const areaBytes = slots * slotBytes;
const receiveFrom = 100;
const askerBytes = (number: number): Uint8Array => patternOf(2 * number, areaBytes);
const ownerBytes = (number: number): Uint8Array => patternOf(2 * number + 1, areaBytes);

/** One side of a round: its device, QP, area and completions. */
class RoundSide {
  readonly stage: Stage<unknown>;
  readonly made: IwarpLinks;
  readonly round: Round;
  readonly number: number;
  readonly cq: ibv.IbvCq;
  readonly qp: ibv.IbvQp;
  readonly address: number;
  readonly region: ibv.IbvMr;
  ended: Taken[] = [];

  private constructor(
    parts: Pick<RoundSide, 'stage' | 'made' | 'round' | 'number' | 'cq' | 'qp' | 'address' | 'region'>,
  ) {
    this.stage = parts.stage;
    this.made = parts.made;
    this.round = parts.round;
    this.number = parts.number;
    this.cq = parts.cq;
    this.qp = parts.qp;
    this.address = parts.address;
    this.region = parts.region;
  }

  static async open(stage: Stage<Args>, made: IwarpLinks, number: number): Promise<RoundSide> {
    const round = stage.args.rounds[number]!;
    const { device } = made;
    const cq = await device.cq(64);
    const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await device.qp(cq, { qpType: ibv.IBV_QPT_RC, cap });
    const access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
    const { address, region } = await device.buffer(areaBytes, access);
    const isAsker = stage.node === round.asker;
    stage.memory.write(address, isAsker ? askerBytes(number) : ownerBytes(number));
    return new RoundSide({ stage, made, round, number, cq, qp, address, region });
  }

  get flaw(): Flaw {
    return flaws[this.round.flaw];
  }

  accuse(what: string): void {
    this.stage.accuse(`round ${this.number} (${this.round.flaw}): ${what}`);
  }

  sge(slot: number, length: number, lkey = this.region.lkey): ibv.IbvSge {
    return { addr: this.address + slot * slotBytes, length, lkey };
  }

  /** Takes completions until `count` have come. */
  async take(count: number): Promise<Taken[]> {
    const more = await this.stage.completions(this.cq, count - this.ended.length, 200_000 * psPerMs);
    this.ended.push(...more);
    if (this.ended.length < count) this.accuse(`${this.ended.length} of ${count} completions came`);
    return more;
  }
}

async function ask(side: RoundSide): Promise<void> {
  const { round, stage, made, qp, flaw } = side;
  const { good, lengthBytes } = round;
  await stage.meet(`round ${side.number}`);
  await made.make(round.plan, qp);
  const reach = await stage.take(reachTopic);
  const post = (
    id: number,
    opcode: number,
    slot: number,
    more: Partial<{ rkey: number; lkey: number; at: number; length: number }> = {},
  ): void => {
    const { rkey = reach.good, at = slot * slotBytes, length = lengthBytes, lkey } = more;
    const rdma = { remoteAddr: reach.address + at, rkey };
    const wr = {
      wrId: id,
      sgList: [side.sge(slot, length, lkey)],
      numSge: 1,
      sendFlags: ibv.IBV_SEND_SIGNALED,
    };
    ibv.postSend(qp, opcode === SEND ? { ...wr, opcode } : { ...wr, opcode, wr: { rdma } });
  };
  // The good requests complete before the flawed one is posted.
  for (const [id, opcode] of good.entries()) post(id, opcode, id);
  await side.take(good.length);
  for (const one of side.ended)
    if (!isWell(one)) side.accuse(`good request ${one.id} ended in ${one.status}`);
  const id = good.length;
  if (round.flaw === 'writeWindow') await takeWindowBack(side, reach, post);
  const before = side.ended.length;
  switch (round.flaw) {
    case 'writeKey':
    case 'readKey':
      post(id, flaw.opcode, id, { rkey: reach.good ^ 0x81 });
      break;
    case 'writeBounds':
    case 'readBounds':
      post(id, flaw.opcode, id, { at: areaBytes - lengthBytes + 1 });
      break;
    case 'writeRight':
      post(id, WRITE, id, { rkey: reach.readOnly });
      break;
    case 'readRight':
      post(id, READ, id, { rkey: reach.writeOnly });
      break;
    case 'writeDomain':
    case 'readDomain':
      post(id, flaw.opcode, id, { rkey: reach.foreign });
      break;
    case 'writeWindow':
      post(id, WRITE, id, { rkey: reach.window });
      break;
    case 'readSink': {
      const { lkey } = await made.device.region(side.address, areaBytes, IBV_ACCESS_LOCAL_WRITE);
      post(id, READ, id, { lkey });
      break;
    }
    case 'sendKey':
      post(id, SEND, id, { lkey: side.region.lkey ^ 0x81 });
      break;
    default:
      post(id, SEND, id);
  }
  post(id + 1, WRITE, id + 1);
  const [failed, next] = await side.take(before + 2);
  if (failed !== undefined && !flaw.ends.includes(failed.status))
    side.accuse(`the flawed request ended in ${failed.status}`);
  if (next !== undefined && !sent.includes(next.status))
    side.accuse(`the request after it ended in ${next.status}`);
  await stage.meet(`round ${side.number} over`);
  judgeReads(side);
}

/** A WRITE by the window, and a SEND that invalidates it: the owner's receive says so. */
async function takeWindowBack(
  side: RoundSide,
  { window }: Reach,
  post: (id: number, opcode: number, slot: number, more: { rkey: number }) => void,
): Promise<void> {
  post(50, WRITE, slots - 2, { rkey: window });
  const list = { sgList: [side.sge(slots - 2, 8)], numSge: 1 };
  const { IBV_SEND_SIGNALED, IBV_WR_SEND_WITH_INV } = ibv;
  ibv.postSend(side.qp, {
    wrId: 51,
    ...list,
    opcode: IBV_WR_SEND_WITH_INV,
    sendFlags: IBV_SEND_SIGNALED,
    invalidateRkey: window,
  });
  for (const one of await side.take(side.ended.length + 2))
    if (!isWell(one)) side.accuse(`request ${one.id} ended in ${one.status}`);
  await side.stage.meet(`window of round ${side.number}`);
}

/** READs have brought the owner's bytes. */
function judgeReads({ stage, round, number, address }: RoundSide): void {
  const owner = ownerBytes(number);
  const image = askerBytes(number);
  for (const [id, opcode] of round.good.entries())
    if (opcode === READ)
      image.set(owner.subarray(id * slotBytes, id * slotBytes + round.lengthBytes), id * slotBytes);
  stage.expectAt(`memory of the asker of round ${number}`, address, image);
}

async function own(side: RoundSide): Promise<void> {
  const { stage, made, round, qp, address, region } = side;
  const { device } = made;
  const { good, lengthBytes } = round;
  const flaw: Flaw = side.flaw;
  const sends = good.flatMap((opcode, id) => (opcode === SEND ? [id] : []));
  const flawedSlot = good.length;
  const receive = (id: number, slot: number, length: number): void =>
    void ibv.postRecv(qp, { wrId: receiveFrom + id, sgList: [side.sge(slot, length)], numSge: 1 });
  const keyOf = async (access: number, pd?: ibv.IbvPd): Promise<number> =>
    (await device.region(address, areaBytes, access, pd)).rkey;
  const all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const keys = {
    good: region.rkey,
    readOnly: await keyOf(IBV_ACCESS_REMOTE_READ),
    writeOnly: await keyOf(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
    foreign: await keyOf(all, await device.domain()),
  };
  await toInit(qp);
  for (const id of sends) receive(id, id, slotBytes);
  const isWindow = round.flaw === 'writeWindow';
  if (isWindow) receive(slots - 1, slots - 1, slotBytes);
  if (flaw.receive !== undefined) receive(flawedSlot, flawedSlot, lengthBytes - 1);
  // Receives that are left are flushed.
  if (round.flaw !== 'sendMissing') receive(slots, slots - 1, 8);
  const receives =
    sends.length +
    (isWindow ? 1 : 0) +
    (flaw.receive === undefined ? 0 : 1) +
    (round.flaw === 'sendMissing' ? 0 : 1);
  await stage.meet(`round ${side.number}`);
  await made.make(round.plan, qp);
  const mw = isWindow ? await bindWindow(side) : undefined;
  await stage.put(reachTopic, { address, ...keys, window: mw?.rkey ?? 0 });
  if (mw !== undefined) {
    await takeInvalidation(side, sends.length + 2, mw.rkey);
    await stage.meet(`window of round ${side.number}`);
  }
  await side.take(receives + (isWindow ? 1 : 0));
  judgeReceives(side, sends, flaw);
  await stage.meet(`round ${side.number} over`);
  await stage.lastBytesIn();
  judgeOwner(side, sends);
  if (mw !== undefined) await ibv.deallocMw(mw);
}

async function bindWindow(side: RoundSide): Promise<ibv.IbvMw> {
  const { qp, region, address, made } = side;
  const mw = await ibv.allocMw(made.device.pd, ibv.IBV_MW_TYPE_2);
  mw.rkey = ibv.incRkey(mw.rkey);
  const bindInfo = { mr: region, addr: address, length: areaBytes, mwAccessFlags: IBV_ACCESS_REMOTE_WRITE };
  const { IBV_SEND_SIGNALED, IBV_WR_BIND_MW } = ibv;
  const bindMw = { mw, rkey: mw.rkey, bindInfo };
  ibv.postSend(qp, {
    wrId: 1,
    sgList: [],
    numSge: 0,
    opcode: IBV_WR_BIND_MW,
    sendFlags: IBV_SEND_SIGNALED,
    bindMw,
  });
  const [bound] = await side.take(1);
  if (bound?.status !== 'SUCCESS') side.accuse(`the bind ended in ${bound?.status}`);
  return mw;
}

/** The receive whose SEND invalidates the window: its key is in the completion, and the WRITE before it is there. */
async function takeInvalidation(side: RoundSide, count: number, rkey: number): Promise<void> {
  const taken = await side.take(count);
  const last = taken.at(-1);
  if (last === undefined || (last.wcFlags & ibv.IBV_WC_WITH_INV) === 0 || last.immData >>> 0 !== rkey >>> 0)
    side.accuse(
      `the receive of the SEND with Invalidate has the flags ${last?.wcFlags} and the key ${last?.immData}`,
    );
  const from = (slots - 2) * slotBytes;
  const due = askerBytes(side.number).subarray(from, from + side.round.lengthBytes);
  side.stage.expectAt(`the WRITE by the window of round ${side.number}`, side.address + from, due);
}

function judgeReceives(side: RoundSide, sends: readonly number[], flaw: Flaw): void {
  for (const { id, status, byteLen, isReceive } of side.ended) {
    if (!isReceive && status === 'SUCCESS') continue;
    const number = id - receiveFrom;
    const isGood = sends.includes(number) || number === slots - 1;
    const due = isGood ? 'SUCCESS' : number === slots ? 'WR_FLUSH_ERR' : flaw.receive;
    if (status !== due) side.accuse(`receive ${number} ended in ${status}, ${due} was due`);
    if (sends.includes(number) && byteLen !== side.round.lengthBytes)
      side.accuse(`receive ${number} has ${byteLen} bytes`);
  }
}

/** Accuses if memory has bytes of the refused request; segments of it that pass the checks by themselves may be placed. */
function judgeOwner({ stage, round, number, address }: RoundSide, sends: readonly number[]): void {
  const { good, lengthBytes, flaw } = round;
  const asker = askerBytes(number);
  const image = ownerBytes(number);
  for (const [id, opcode] of good.entries())
    if (opcode === WRITE || sends.includes(id))
      image.set(asker.subarray(id * slotBytes, id * slotBytes + lengthBytes), id * slotBytes);
  if (flaw === 'writeWindow') {
    image.set(
      asker.subarray((slots - 2) * slotBytes, (slots - 2) * slotBytes + lengthBytes),
      (slots - 2) * slotBytes,
    );
    image.set(asker.subarray((slots - 2) * slotBytes, (slots - 2) * slotBytes + 8), (slots - 1) * slotBytes);
  }
  const seen = stage.memory.read(address, areaBytes);
  const flawedFrom = good.length * slotBytes;
  // Segments of a WRITE in bounds, and of a message before the one that is too long.
  if (flaw === 'sendLong') image.set(seen.subarray(flawedFrom, flawedFrom + lengthBytes - 1), flawedFrom);
  if (flaw === 'writeBounds')
    image.set(seen.subarray(areaBytes - lengthBytes + 1), areaBytes - lengthBytes + 1);
  // A WRITE may be placed before the READ ahead of it is served (RFC 5040, 5.5), and before a gap in front of it is closed (RFC 5041, 5.3).
  const nextFrom = flawedFrom + slotBytes;
  const next = seen.subarray(nextFrom, nextFrom + lengthBytes);
  const isThere = next.every((byte, at) => byte === asker[nextFrom + at] || byte === image[nextFrom + at]);
  if ((flaws[flaw].opcode === READ || round.placesEarly) && isThere) image.set(next, nextFrom);
  stage.expectBytes(`memory of the owner of round ${number}`, seen, image);
}

async function player(stage: Stage<Args>): Promise<void> {
  const made = await IwarpLinks.open(stage);
  for (const [number, { asker }] of stage.args.rounds.entries()) {
    const side = await RoundSide.open(stage, made, number);
    await (stage.node === asker ? ask(side) : own(side));
    const seen = await made.disconnected(1);
    if (seen < 1) side.accuse('it was not disconnected');
  }
  await stage.meet('over');
  await made.close();
}

/** Each error is in one Terminate of the card that finds it. */
function judge({ args, report }: Played<Args, readonly unknown[]>): string[] {
  return [0, 1].flatMap((node) => {
    const due: Record<string, number> = {};
    for (const { flaw, asker } of args.rounds) {
      const { error, isOwn }: Flaw = flaws[flaw];
      const finder = isOwn === true ? asker : 1 - asker;
      if (error !== undefined && finder === node) due[error] = (due[error] ?? 0) + 1;
    }
    const { terminatesSent = {} } = report.nodes[node]!.hca.iwarp ?? {};
    const [seen, wanted] = [terminatesSent, due].map((counts) =>
      JSON.stringify(Object.entries(counts).toSorted()),
    );
    return seen === wanted ? [] : [`node ${node} sent the Terminates ${seen}, due ${wanted}`];
  });
}

export const iwarpRefusals = scene({
  about:
    'requests over iWARP with a wrong key, range, right or receive are refused by a Terminate, and nothing else is',
  cable: 'ethernet',
  draw,
  programs: [player, player],
  judge,
});
