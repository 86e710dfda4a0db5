/**
 * A region is registered again and again under the same key, with and without requests in flight: with other memory, another protection domain,
 * other rights, all of these, or arguments that are refused. Once the call has returned, the new registration alone answers requests, no access
 * of the old one reaches memory, which its owner refills at once, and only the new pages are pinned (IBTA volume 1, 11.2.8.8; ibv_rereg_mr(3)).
 * After a failure half-way no access succeeds until the region is created again.
 *
 *     owner: fill ─► register again ─► fill what the peer must not write any more ─────────────► all bytes as they must be
 *     user:     └► requests by the key (under way) ──► requests by the key, one by one ─┘
 *
 * Both sides compute the end of each request from tables of the region and of all bytes.
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import {
  codeOf,
  connect,
  filled,
  patternOf,
  READ,
  scene,
  statusesOf,
  sumOf,
  times,
  topic,
  WRITE,
} from './language/index.ts';

/** The region as the device must have it. */
interface Registration {
  readonly area: number;
  readonly offset: number;
  readonly lengthBytes: number;
  /** 0: that of the QPs. */
  readonly domain: number;
  readonly access: number;
}

type Change = Partial<Registration>;

/** Changes that are refused at once, and memory that does not exist, which is found half-way. */
const flaws = ['nothing', 'unknownRights', 'remoteRightsAlone', 'noMemory'] as const;
type Flaw = (typeof flaws)[number] | null;

const pageBytes = 4096;
const areaCount = 2;
const underWayMax = 8;
const requestBytesMax = 6000;
const unmapped = 2 ** 40;
const { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE } = ibv;
const rightOf = (opcode: number): number =>
  opcode === READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;

function draw(random: Draws) {
  const areaBytes = pageBytes * (1 + random.below(6));
  const place = () => {
    const isAligned = random.chance(0.4);
    const offset = isAligned ? pageBytes * random.below(areaBytes / pageBytes) : random.below(areaBytes);
    const left = areaBytes - offset;
    const area = random.below(areaCount);
    return { area, offset, lengthBytes: random.chance(0.4) ? left : 1 + random.below(left) };
  };
  const access = (): number => {
    const read = random.chance(0.7) ? IBV_ACCESS_REMOTE_READ : 0;
    if (random.chance(0.15)) return read;
    return IBV_ACCESS_LOCAL_WRITE | read | (random.chance(0.75) ? IBV_ACCESS_REMOTE_WRITE : 0);
  };
  const domain = (): number => (random.chance(0.7) ? 0 : 1);
  const opcode = (): number => (random.chance(0.5) ? READ : WRITE);
  const first: Registration = { ...place(), domain: domain(), access: access() };
  let now = first;
  const rounds = times(1 + random.below(5), () => {
    const flaw: Flaw = random.chance(0.2) ? random.oneOf(flaws) : null;
    const some: Change = {
      ...random.maybe(0.6, place),
      ...random.maybe(0.4, () => ({ domain: domain() })),
      ...random.maybe(0.5, () => ({ access: access() })),
    };
    // At least one change: otherwise the region would end as it began.
    const change: Change = Object.keys(some).length === 0 ? place() : some;
    const { lengthBytes: region } = flaw === null ? { ...now, ...change } : now;
    now = after(now, change, flaw) ?? first;
    const request = () => {
      const lengthBytes = 1 + random.below(Math.min(requestBytesMax, region));
      const within = random.below(region - lengthBytes + 1);
      const ends = [0, region - lengthBytes, region - lengthBytes + 1, -1];
      // Offset from the first byte of the region; some are outside.
      const offset = random.chance(0.6) ? within : random.oneOf(ends);
      return { opcode: opcode(), offset, lengthBytes };
    };
    return {
      change,
      flaw,
      // Requests with the key while it changes; only made if allowed.
      underWay: random.chance(0.5) ? 0 : 1 + random.below(underWayMax),
      underWayOpcode: opcode(),
      delayNs: random.below(random.chance(0.5) ? 3000 : 40_000),
      requests: times(1 + random.below(4), request),
    };
  });
  const args = { areaBytes, first, rounds };
  return { args, hasDrawnHardware: random.chance(0.3), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];
type Request = Round['requests'][number];

/** Returns the region after a call; undefined if it failed half-way. */
function after(region: Registration | undefined, change: Change, flaw: Flaw): Registration | undefined {
  if (flaw === 'noMemory') return undefined;
  return flaw === null ? { ...region!, ...change } : region;
}

/** The expected region, undefined while the device has none, and the bytes of all areas: both sides track them. */
class Books {
  areas: Uint8Array<ArrayBuffer>[] = [];
  region: Registration | undefined;
  readonly #areaBytes: number;

  constructor({ areaBytes, first }: Args) {
    this.#areaBytes = areaBytes;
    this.region = first;
    this.fill(0);
  }

  fill(round: number): void {
    this.areas = times(areaCount, (area) => patternOf(areaCount * round + area, this.#areaBytes));
  }

  /** Whether requests of the kind may be under way by the region as it is. */
  isUsable(opcode: number): boolean {
    return this.region?.domain === 0 && (this.region.access & rightOf(opcode)) !== 0;
  }

  /** Whether a request by the key, from an offset of a region on, ends well. */
  allows({ opcode, offset, lengthBytes }: Request, { area, offset: start }: Registration): boolean {
    if (this.region === undefined || !this.isUsable(opcode) || area !== this.region.area) return false;
    const from = start + offset - this.region.offset;
    return from >= 0 && from + lengthBytes <= this.region.lengthBytes;
  }
}

/** The bytes of a WRITE. */
const written = (round: number, id: number, lengthBytes: number): Uint8Array<ArrayBuffer> =>
  patternOf(1000 + underWayMax * round + id, lengthBytes);

/** A QP for each request, which may break it, and one for those under way. */
const open = (stage: Stage<Args>): Promise<Side> =>
  connect(stage, {
    areaBytes: requestBytesMax,
    qpCount: sumOf(stage.args.rounds.map(({ requests }) => 1 + requests.length)),
    cap: { maxSendWr: underWayMax, maxRecvWr: 1 },
  });

/** The owner's areas and key. */
const keyTopic = topic<{ readonly addresses: readonly number[]; readonly rkey: number }>('key');

/** Makes requests by the key, and judges their ends and the bytes of its READs. */
async function user(stage: Stage<Args>): Promise<void> {
  const side = await open(stage);
  const books = new Books(stage.args);
  let qp = 0;
  for (const [number, { underWay, underWayOpcode, requests, change, flaw }] of stage.args.rounds.entries()) {
    const where = `round ${number}`;
    const { addresses, rkey } = await stage.take(keyTopic);
    const ask = (
      id: number,
      { opcode, offset, lengthBytes }: Request,
      { area, offset: start }: Registration,
    ) =>
      side
        .with({ peer: { address: addresses[area]! + start + offset, rkey } })
        .post(id, opcode, { qp, lengthBytes });
    const before = books.region!;
    const count = books.isUsable(underWayOpcode) ? underWay : 0;
    if (underWayOpcode === WRITE) side.fill(filled(requestBytesMax, number + 1));
    const lengthBytes = Math.min(requestBytesMax, before.lengthBytes);
    for (let id = 0; id < count; id++) ask(id, { opcode: underWayOpcode, offset: 0, lengthBytes }, before);
    const ended = await side.completions(count);
    const failed = ended.findIndex(({ status }) => status !== 'SUCCESS');
    const lawful = [/^(REM_ACCESS_ERR|REM_OP_ERR)$/, /^WR_FLUSH_ERR$/] as const;
    const isLawful = ended.slice(failed).every(({ status }, at) => lawful[at === 0 ? 0 : 1].test(status));
    const isUntouched = flaw !== null && flaw !== 'noMemory';
    const isOrderly = ended.length === count && ended.every(({ id }, at) => id === at);
    if (!isOrderly || (failed >= 0 && (isUntouched || !isLawful)))
      stage.accuse(`${where}: requests under way ended in ${statusesOf(ended)}`);
    qp++;
    books.region = after(books.region, change, flaw);
    books.fill(number + 1);
    await stage.meet('quiet');
    await stage.meet('filled');
    const shown = books.region ?? before;
    for (const [id, request] of requests.entries()) {
      const bytes = written(number, id, request.lengthBytes);
      side.fill(request.opcode === WRITE ? bytes : new Uint8Array(request.lengthBytes));
      ask(id, request, shown);
      const end = await side.next();
      const isAllowed = books.allows(request, shown);
      const what = `${where}: ${JSON.stringify(request)} of ${JSON.stringify(books.region)}`;
      const at = shown.offset + request.offset;
      const held = books.areas[shown.area]!;
      if (end?.status !== (isAllowed ? 'SUCCESS' : 'REM_ACCESS_ERR'))
        stage.accuse(`${what} ended in ${end?.status}`);
      else if (isAllowed && request.opcode === READ)
        side.expect(what, 0, held.subarray(at, at + request.lengthBytes));
      if (isAllowed && request.opcode === WRITE) held.set(bytes, at);
      qp++;
    }
    await stage.meet('used');
    books.region ??= stage.args.first;
    await stage.meet('over');
  }
}

/** Registers again, and judges the results of the calls, the bytes of its areas and the number of pinned pages. */
async function owner(stage: Stage<Args>): Promise<void> {
  const { memory } = stage;
  const { first, areaBytes, rounds } = stage.args;
  const { device } = await open(stage);
  const domains = [device.pd, await device.domain()];
  const addresses = times(areaCount, () => memory.map(areaBytes));
  const books = new Books(stage.args);
  const fill = (round: number): void => {
    books.fill(round);
    for (const [area, bytes] of books.areas.entries()) memory.write(addresses[area]!, bytes);
  };
  const register = ({ area, offset, lengthBytes, domain, access }: Registration): Promise<ibv.IbvMr> =>
    device.region(addresses[area]! + offset, lengthBytes, access, domains[domain]!);
  fill(0);
  const { space } = memory.process;
  const unpinnedBytes = space.pinnedBytes;
  let region = await register(first);
  for (const [number, { change, flaw, underWay, underWayOpcode, delayNs, requests }] of rounds.entries()) {
    const accuse = (what: string): void => stage.accuse(`round ${number}: ${what}`);
    const before = books.region!;
    await stage.put(keyTopic, { addresses, rkey: region.rkey });
    const hasWrites = underWay > 0 && underWayOpcode === WRITE && books.isUsable(WRITE);
    await stage.sleepNs(delayNs);
    const keys = `${region.lkey} ${region.rkey}`;
    const code = await codeOf(again(region, domains, addresses, change, flaw));
    const due = flaw === null ? 'ok' : flaw === 'noMemory' ? 'EFAULT' : 'EINVAL';
    if (code !== due) accuse(`registering again (${flaw ?? 'rightly'}) came to ${code}`);
    if (`${region.lkey} ${region.rkey}` !== keys)
      accuse(`keys were ${keys}, now ${region.lkey} ${region.rkey}`);
    books.region = after(books.region, change, flaw);
    // No access of an old registration is in flight any more; those that the new one allows may still arrive.
    const mayWrite = hasWrites && books.isUsable(WRITE) && books.region!.area === before.area;
    if (!mayWrite) fill(number + 1);
    const pinned = space.pinnedBytes - unpinnedBytes;
    const pinnedDue = pinnedOf(books.region, addresses);
    if (pinned !== pinnedDue) accuse(`${pinned} bytes are pinned, ${pinnedDue} are of the region`);
    await stage.meet('quiet');
    await stage.lastBytesIn();
    if (mayWrite) fill(number + 1);
    await stage.meet('filled');
    await stage.meet('used');
    await stage.lastBytesIn();
    const { region: shown } = books;
    for (const [id, request] of shown === undefined ? [] : requests.entries())
      if (request.opcode === WRITE && books.allows(request, shown!))
        books.areas[shown!.area]!.set(
          written(number, id, request.lengthBytes),
          shown!.offset + request.offset,
        );
    for (const [area, bytes] of books.areas.entries())
      stage.expectAt(`round ${number}: area ${area}`, addresses[area]!, bytes);
    if (books.region === undefined) {
      const late = await codeOf(
        ibv.reregMr(region, ibv.IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, IBV_ACCESS_LOCAL_WRITE),
      );
      if (late !== 'EINVAL') accuse(`a region that failed half-way was registered again: ${late}`);
      await device.deregister(region);
      region = await register(first);
      books.region = first;
    }
    await stage.meet('over');
  }
  await device.deregister(region);
  const left = space.pinnedBytes - unpinnedBytes;
  if (left !== 0) stage.accuse(`${left} bytes stay pinned after deregistration`);
}

function again(
  region: ibv.IbvMr,
  domains: readonly ibv.IbvPd[],
  addresses: readonly number[],
  { area, offset, lengthBytes, domain, access }: Change,
  flaw: Flaw,
): Promise<void> {
  const { IBV_REREG_MR_CHANGE_ACCESS, IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD } = ibv;
  if (flaw === 'nothing') return ibv.reregMr(region, 0, null, 0, 0, 0);
  if (flaw === 'noMemory')
    return ibv.reregMr(region, IBV_REREG_MR_CHANGE_TRANSLATION, null, unmapped, pageBytes, 0);
  if (flaw !== null) {
    const rights = flaw === 'unknownRights' ? 0x4000_0000 : IBV_ACCESS_REMOTE_WRITE;
    return ibv.reregMr(region, IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, rights);
  }
  const flags =
    (area === undefined ? 0 : IBV_REREG_MR_CHANGE_TRANSLATION) |
    (domain === undefined ? 0 : IBV_REREG_MR_CHANGE_PD) |
    (access === undefined ? 0 : IBV_REREG_MR_CHANGE_ACCESS);
  const pd = domain === undefined ? null : domains[domain]!;
  const address = area === undefined ? 0 : addresses[area]! + offset!;
  return ibv.reregMr(region, flags, pd, address, lengthBytes ?? 0, access ?? 0);
}

/** Bytes of the pages that a region lies in. */
function pinnedOf(region: Registration | undefined, addresses: readonly number[]): number {
  if (region === undefined) return 0;
  const from = addresses[region.area]! + region.offset;
  const first = Math.floor(from / pageBytes);
  return (Math.ceil((from + region.lengthBytes) / pageBytes) - first) * pageBytes;
}

export const registeredAgain = scene({
  about: 'a region is registered again with other memory, domain or rights, also while its peer uses the key',
  draw,
  programs: [user, owner],
});
