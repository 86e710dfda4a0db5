/**
 * A region is registered again and again under the same key, while its peer has requests under way and while not: with other memory,
 * another protection domain, other rights, all of these or what is refused. Once the call has returned, each request is answered by
 * the new registration alone, no access of the old one reaches memory, which its owner fills again at once, and only the new pages
 * are pinned (IBTA volume 1, 11.2.8.8; ibv_rereg_mr(3)). After a failure half-way nothing can be reached until the region is made again.
 *
 *     owner: fill ─► register again ─► fill what the peer must not write any more ─────────────► all bytes as they must be
 *     user:     └► requests by the key (under way) ──► requests by the key, one by one ─┘
 *
 * Both sides keep tables of what the region is and of all bytes, and compute from them the end of each request.
 */
import { psPerNs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  allocPd,
  deallocPd,
  deregMr,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_REREG_MR_CHANGE_ACCESS,
  IBV_REREG_MR_CHANGE_PD,
  IBV_REREG_MR_CHANGE_TRANSLATION,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_REM_OP_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvMr,
  type IbvPd,
  regMr,
  reregMr,
} from '../../userlib/index.ts';
import {
  codeOf,
  completionsOf,
  connectWithPeer,
  lastBytesIn,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

/** What the device is to have of the region. */
interface Registration {
  readonly area: number;
  readonly offset: number;
  readonly lengthBytes: number;
  /** 0: that of the QPs. */
  readonly domain: number;
  readonly access: number;
}

type Change = Partial<Registration>;

/** What is refused before anything has happened, and memory that is not there, which is found half-way. */
const flaws = ['nothing', 'unknownRights', 'remoteRightsAlone', 'noMemory'] as const;
type Flaw = (typeof flaws)[number];

interface Request {
  readonly opcode: number;
  /** From the first byte of the region; some are not in it. */
  readonly offset: number;
  readonly lengthBytes: number;
}

interface Round {
  readonly change: Change;
  readonly flaw: Flaw | null;
  /** Requests by the key while it changes; not made where they may not be. */
  readonly underWay: number;
  readonly underWayOpcode: number;
  readonly delayNs: number;
  readonly requests: readonly Request[];
}

interface Args {
  readonly areaBytes: number;
  readonly first: Registration;
  readonly rounds: readonly Round[];
}

const pageBytes = 4096;
const areaCount = 2;
const underWayMax = 8;
const requestBytesMax = 6000;
const rightOf = (opcode: number): number =>
  opcode === IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
const unmapped = 2 ** 40;

function draw(random: Random): SceneDraft {
  const areaBytes = pageBytes * (1 + random.below(6));
  const place = (): Pick<Registration, 'area' | 'offset' | 'lengthBytes'> => {
    const offset = random.chance(0.4)
      ? pageBytes * random.below(areaBytes / pageBytes)
      : random.below(areaBytes);
    const left = areaBytes - offset;
    return {
      area: random.below(areaCount),
      offset,
      lengthBytes: random.chance(0.4) ? left : 1 + random.below(left),
    };
  };
  const access = (): number => {
    const read = random.chance(0.7) ? IBV_ACCESS_REMOTE_READ : 0;
    if (random.chance(0.15)) return read;
    return IBV_ACCESS_LOCAL_WRITE | read | (random.chance(0.75) ? IBV_ACCESS_REMOTE_WRITE : 0);
  };
  const domain = (): number => (random.chance(0.7) ? 0 : 1);
  const opcode = (): number => (random.chance(0.5) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
  const first: Registration = { ...place(), domain: domain(), access: access() };
  let now = first;
  const rounds = Array.from({ length: 1 + random.below(5) }, (): Round => {
    const flaw = random.chance(0.2) ? flaws[random.below(flaws.length)]! : null;
    const change: Change = {
      ...(random.chance(0.6) ? place() : {}),
      ...(random.chance(0.4) ? { domain: domain() } : {}),
      ...(random.chance(0.5) ? { access: access() } : {}),
    };
    // At least one change: all are to end as they began in any case.
    const made = Object.keys(change).length === 0 ? place() : change;
    const { lengthBytes: region } = flaw === null ? { ...now, ...made } : now;
    now = after(now, made, flaw) ?? first;
    const request = (): Request => {
      const lengthBytes = 1 + random.below(Math.min(requestBytesMax, region));
      const within = random.below(region - lengthBytes + 1);
      const ends = [0, region - lengthBytes, region - lengthBytes + 1, -1];
      const offset = random.chance(0.6) ? within : ends[random.below(ends.length)]!;
      return { opcode: opcode(), offset, lengthBytes };
    };
    return {
      change: made,
      flaw,
      underWay: random.chance(0.5) ? 0 : 1 + random.below(underWayMax),
      underWayOpcode: opcode(),
      delayNs: random.below(random.chance(0.5) ? 3000 : 40_000),
      requests: Array.from({ length: 1 + random.below(4) }, request),
    };
  });
  const args: Args = { areaBytes, first, rounds };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.3), climate: 'flawed' };
}

/** What both sides know: the region as it is to be, undefined where the device has none, and the bytes of all areas. */
class Books {
  readonly areas: Uint8Array<ArrayBuffer>[] = [];
  region: Registration | undefined;
  readonly #areaBytes: number;

  constructor({ areaBytes, first }: Args) {
    this.#areaBytes = areaBytes;
    this.region = first;
    this.fill(0);
  }

  fill(round: number): void {
    for (let area = 0; area < areaCount; area++)
      this.areas[area] = patternOf(areaCount * round + area, this.#areaBytes);
  }

  /** Whether a request by the key to bytes of an area ends well. */
  allows(opcode: number, area: number, offset: number, lengthBytes: number): boolean {
    const { region } = this;
    if (region === undefined || region.domain !== 0 || (region.access & rightOf(opcode)) === 0) return false;
    const from = offset - region.offset;
    return area === region.area && from >= 0 && from + lengthBytes <= region.lengthBytes;
  }
}

/** The part of the region that requests under way use. */
const underWayBytes = ({ lengthBytes }: Registration): number => Math.min(requestBytesMax, lengthBytes);

/** A QP for each request, which may break it, and one for those under way. */
const qpCountOf = ({ rounds }: Args): number =>
  rounds.reduce((sum, { requests }) => sum + 1 + requests.length, 0);

const connect = (program: ProgramContext, args: Args): Promise<Side> =>
  connectWithPeer(program, {
    areaBytes: requestBytesMax,
    qpCount: qpCountOf(args),
    cap: { maxSendWr: underWayMax, maxRecvWr: 1 },
  });

/** What the owner says of its areas and of the key. */
interface News {
  readonly addresses: readonly number[];
  readonly rkey: number;
}

/** Makes requests by the key, and judges their ends and the bytes of its READs. */
export async function user(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connect(program, args);
  const { memory, exchange } = program;
  const books = new Books(args);
  const wrong: string[] = [];
  let qp = 0;
  for (const [number, { underWay, underWayOpcode, requests, change, flaw }] of args.rounds.entries()) {
    const accuse = (what: string): unknown => wrong.push(`round ${number}: ${what}`);
    const news = (await exchange.take('key')) as unknown as News;
    const asks = (
      id: number,
      { opcode, offset, lengthBytes }: Request,
      { area, offset: start }: Registration,
    ): void => {
      const own = { offset: 0, lengthBytes, remoteOffset: 0 };
      const remoteAddr = news.addresses[area]! + start + offset;
      post(side.qps[qp]!, {
        ...requestOf(side, id, opcode, own),
        wr: { rdma: { remoteAddr, rkey: news.rkey } },
      });
    };
    const before = books.region!;
    const count = isUsable(books, underWayOpcode) ? underWay : 0;
    const whole = { opcode: underWayOpcode, offset: 0, lengthBytes: underWayBytes(before) };
    if (underWayOpcode === IBV_WR_RDMA_WRITE)
      memory.write(side.area.address, new Uint8Array(requestBytesMax).fill(number + 1));
    for (let id = 0; id < count; id++) asks(id, whole, before);
    const isUntouched = flaw !== null && flaw !== 'noMemory';
    const ended = await completionsOf(side, count);
    const failed = ended.findIndex(({ status }) => status !== IBV_WC_SUCCESS);
    const isOrderly = ended.length === count && ended.every(({ id }, at) => id === at);
    const isLawful = ended.slice(failed).every(({ status }, at) => {
      if (at > 0) return status === IBV_WC_WR_FLUSH_ERR;
      return status === IBV_WC_REM_ACCESS_ERR || status === IBV_WC_REM_OP_ERR;
    });
    if (!isOrderly || (failed >= 0 && (isUntouched || !isLawful)))
      accuse(`requests under way ended in ${ended.map(({ status }) => status)}`);
    qp++;
    books.region = after(books.region, change, flaw);
    books.fill(number + 1);
    await barrier(program, `round ${number} is quiet`);
    await barrier(program, `round ${number} is filled`);
    const shown = books.region ?? before;
    for (const [id, request] of requests.entries()) {
      const { opcode, offset, lengthBytes } = request;
      const at = shown.offset + offset;
      const bytes = written(number, id, lengthBytes);
      memory.write(side.area.address, opcode === IBV_WR_RDMA_WRITE ? bytes : new Uint8Array(lengthBytes));
      asks(id, request, shown);
      const [end] = await completionsOf(side, 1);
      const isAllowed = books.allows(opcode, shown.area, at, lengthBytes);
      const what = `request ${id} (opcode ${opcode}, ${lengthBytes} bytes from ${offset}) of ${JSON.stringify(books.region)}`;
      if (end?.status !== (isAllowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR))
        accuse(`${what} ended in ${end?.status}`);
      else if (isAllowed && opcode === IBV_WR_RDMA_READ)
        for (const difference of differencesOf(
          what,
          memory.read(side.area.address, lengthBytes),
          books.areas[shown.area]!.subarray(at, at + lengthBytes),
        ))
          accuse(difference);
      if (isAllowed && opcode === IBV_WR_RDMA_WRITE) books.areas[shown.area]!.set(bytes, at);
      qp++;
    }
    await barrier(program, `round ${number} is used`);
    books.region ??= args.first;
    await barrier(program, `round ${number} is over`);
  }
  await leave(side);
  return { wrong };
}

/** The bytes of a WRITE. */
const written = (round: number, id: number, lengthBytes: number): Uint8Array<ArrayBuffer> =>
  patternOf(1000 + underWayMax * round + id, lengthBytes);

/** Whether requests of the kind may be under way by the region as it is. */
const isUsable = ({ region }: Books, opcode: number): boolean =>
  region?.domain === 0 && (region.access & rightOf(opcode)) !== 0;

/** The region after a call; undefined where it failed half-way. */
function after(
  region: Registration | undefined,
  change: Change,
  flaw: Flaw | null,
): Registration | undefined {
  if (flaw === 'noMemory') return undefined;
  return flaw === null ? { ...region!, ...change } : region;
}

/** Registers again, and judges what the calls come to, the bytes of its areas and how many pages are pinned. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { first, areaBytes, rounds } = args;
  const side = await connect(program, args);
  const { memory, exchange, cpu } = program;
  const { context, pd } = side.endpoint;
  const domains = [pd, await allocPd(context)];
  const addresses = Array.from({ length: areaCount }, () => memory.map(areaBytes));
  const books = new Books(args);
  const wrong: string[] = [];
  const fill = (round: number): void => {
    books.fill(round);
    for (const [area, bytes] of books.areas.entries()) memory.write(addresses[area]!, bytes);
  };
  const register = ({ area, offset, lengthBytes, domain, access }: Registration): Promise<IbvMr> =>
    regMr(domains[domain]!, addresses[area]! + offset, lengthBytes, access);
  fill(0);
  const { space } = memory.process;
  const unpinnedBytes = space.pinnedBytes;
  let region = await register(first);
  for (const [number, { change, flaw, underWay, underWayOpcode, delayNs, requests }] of rounds.entries()) {
    const accuse = (what: string): unknown => wrong.push(`round ${number}: ${what}`);
    const before = books.region!;
    await exchange.put('key', { addresses, rkey: region.rkey } as unknown as JsonValue);
    const hasTraffic = underWay > 0 && isUsable(books, underWayOpcode);
    await cpu.sleep(delayNs * psPerNs);
    const keys = `${region.lkey} ${region.rkey}`;
    const code = await codeOf(again(region, domains, addresses, change, flaw));
    const due = flaw === null ? 'ok' : flaw === 'noMemory' ? 'EFAULT' : 'EINVAL';
    if (code !== due) accuse(`registering again (${flaw ?? 'rightly'}) came to ${code}`);
    if (`${region.lkey} ${region.rkey}` !== keys)
      accuse(`keys were ${keys}, now ${region.lkey} ${region.rkey}`);
    books.region = after(books.region, change, flaw);
    const mayWrite =
      hasTraffic &&
      underWayOpcode === IBV_WR_RDMA_WRITE &&
      books.region !== undefined &&
      books.region.domain === 0 &&
      (books.region.access & IBV_ACCESS_REMOTE_WRITE) !== 0 &&
      books.region.area === before.area;
    // Of an old registration nothing is under way any more; what the new one allows may still come.
    if (!mayWrite) fill(number + 1);
    const pinned = space.pinnedBytes - unpinnedBytes;
    const pinnedDue = pinnedOf(books.region, addresses);
    if (pinned !== pinnedDue) accuse(`${pinned} bytes are pinned, ${pinnedDue} are of the region`);
    await barrier(program, `round ${number} is quiet`);
    await lastBytesIn(program);
    if (mayWrite) fill(number + 1);
    await barrier(program, `round ${number} is filled`);
    await barrier(program, `round ${number} is used`);
    await lastBytesIn(program);
    const { region: shown } = books;
    for (const [id, { opcode, offset, lengthBytes }] of shown === undefined ? [] : requests.entries())
      if (
        opcode === IBV_WR_RDMA_WRITE &&
        books.allows(opcode, shown!.area, shown!.offset + offset, lengthBytes)
      )
        books.areas[shown!.area]!.set(written(number, id, lengthBytes), shown!.offset + offset);
    for (const [area, bytes] of books.areas.entries())
      for (const what of differencesOf(`area ${area}`, memory.read(addresses[area]!, areaBytes), bytes))
        accuse(what);
    if (books.region === undefined) {
      const late = await codeOf(
        reregMr(region, IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, IBV_ACCESS_LOCAL_WRITE),
      );
      if (late !== 'EINVAL') accuse(`a region that failed half-way was registered again: ${late}`);
      await deregMr(region);
      region = await register(first);
      books.region = first;
    }
    await barrier(program, `round ${number} is over`);
  }
  await deregMr(region);
  if (space.pinnedBytes !== unpinnedBytes)
    wrong.push(`${space.pinnedBytes - unpinnedBytes} bytes stay pinned after deregistration`);
  await deallocPd(domains[1]!);
  await leave(side);
  return { wrong };
}

function again(
  region: IbvMr,
  domains: readonly IbvPd[],
  addresses: readonly number[],
  { area, offset, lengthBytes, domain, access }: Change,
  flaw: Flaw | null,
): Promise<void> {
  switch (flaw) {
    case 'nothing':
      return reregMr(region, 0, null, 0, 0, 0);
    case 'unknownRights':
      return reregMr(region, IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, 0x4000_0000);
    case 'remoteRightsAlone':
      return reregMr(region, IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, IBV_ACCESS_REMOTE_WRITE);
    case 'noMemory':
      return reregMr(region, IBV_REREG_MR_CHANGE_TRANSLATION, null, unmapped, pageBytes, 0);
    default:
      return reregMr(
        region,
        (area === undefined ? 0 : IBV_REREG_MR_CHANGE_TRANSLATION) |
          (domain === undefined ? 0 : IBV_REREG_MR_CHANGE_PD) |
          (access === undefined ? 0 : IBV_REREG_MR_CHANGE_ACCESS),
        domain === undefined ? null : domains[domain]!,
        area === undefined ? 0 : addresses[area]! + offset!,
        lengthBytes ?? 0,
        access ?? 0,
      );
  }
}

/** Bytes of the pages that a region lies in. */
function pinnedOf(region: Registration | undefined, addresses: readonly number[]): number {
  if (region === undefined) return 0;
  const from = addresses[region.area]! + region.offset;
  const first = Math.floor(from / pageBytes);
  return (Math.ceil((from + region.lengthBytes) / pageBytes) - first) * pageBytes;
}

export const registeredAgain: Scene = {
  name: 'registered-again',
  about: 'a region is registered again with other memory, domain or rights, also while its peer uses the key',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'user' },
    { node: 1, exportName: 'owner' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
