/**
 * Memory that is registered on demand changes under its device: pages are discarded, unmapped and mapped anew, moved, protected
 * and taken by reclaim while the peer reads and writes. What a request finds after a change has returned is what is there
 * then, and frames that went to others are not touched (docs/explanation/memory.md; madvise(2), munmap(2), mremap(2)).
 *
 *     region:  pages that the owner writes and the peer reads ("told") | pages that the peer writes ("sink")
 *
 * Each page of the first kind carries its number and a version, so that a reader can tell how old it is.
 */
import { psPerNs } from '../../base/index.ts';
import { allAccess, barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { Random } from '../../sim/index.ts';
import {
  deregMr,
  IBV_ACCESS_ON_DEMAND,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  regMr,
} from '../../userlib/index.ts';
import {
  completionsOf,
  connectWithPeer,
  failuresOf,
  leave,
  nowPs,
  type PeerSide,
  post,
  requestOf,
} from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const kinds = ['discard', 'discard', 'discard', 'remap', 'protect', 'fork', 'write', 'populate'] as const;

interface Change {
  readonly kind: (typeof kinds)[number];
  readonly page: number;
  readonly pages: number;
  readonly isSink: boolean;
  readonly pauseNs: number;
}

interface Args {
  readonly seed: number;
  readonly toldPages: number;
  readonly sinkPages: number;
  readonly changes: readonly Change[];
  /** Requests of the peer under way at a time. */
  readonly window: number;
  readonly requestPagesMax: number;
  /** Between rounds of the peer. */
  readonly restNs: number;
  /** Frames that are given back go to others at once; else they stay free. */
  readonly hasVictims: boolean;
}

const pageBytes = 4096;

/** Requests that find a page absent come again after 10 µs. */
const shortRnr = { rnrTimerCode: 1 };

const slow = [
  {},
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, 'pcie.rootComplex.outstandingReadCount': 1 },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000 },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
];

function draw(random: Random): SceneDraft {
  const toldPages = 1 + random.below(30);
  const sinkPages = 1 + random.below(12);
  const args: Args = {
    seed: random.below(1 << 30),
    toldPages,
    sinkPages,
    changes: Array.from({ length: 3 + random.below(25) }, (): Change => {
      const isSink = random.chance(0.25);
      const page = random.below(isSink ? sinkPages : toldPages);
      const left = (isSink ? sinkPages : toldPages) - page;
      return {
        kind: kinds[random.below(kinds.length)]!,
        page,
        pages: random.chance(0.5) ? left : 1 + random.below(left),
        isSink,
        pauseNs: random.below(random.chance(0.5) ? 3000 : 100_000),
      };
    }),
    window: 1 + random.below(8),
    requestPagesMax: 1 + random.below(8),
    restNs: random.chance(0.5) ? 0 : random.below(20_000),
    hasVictims: random.chance(0.5),
  };
  return {
    args: args as never,
    set: {
      ...slow[random.below(slow.length)],
      'host.memory.framePlacement': random.chance(0.5) ? 'scattered' : 'contiguous',
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

/** A version of a told page: its reader finds both numbers in every pair of bytes. */
function toldPage(page: number, version: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pageBytes).fill(1 + page);
  for (let at = 0; at < pageBytes; at += 2) bytes[at] = version;
  return bytes;
}

/** When the owner had written a version, by page: [page, version, atPs]. */
type Told = readonly [number, number, number];

/** Owns the region, and changes its memory. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const { toldPages, sinkPages, changes, hasVictims } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 8, attributes: shortRnr });
  const lengthBytes = (toldPages + sinkPages) * pageBytes;
  const address = memory.map(lengthBytes);
  const versions = new Uint8Array(toldPages);
  const told: Told[] = [];
  const tell = async (first: number, count: number): Promise<void> => {
    for (let page = first; page < first + count; page++) {
      versions[page]!++;
      await memory.store(address + page * pageBytes, toldPage(page, versions[page]!));
      await cpu.settle();
      told.push([page, versions[page]!, nowPs(program)]);
    }
  };
  await tell(0, toldPages);
  const mr = await regMr(side.endpoint.pd, address, lengthBytes, allAccess | IBV_ACCESS_ON_DEMAND);
  await program.exchange.put('region', { address, rkey: mr.rkey });
  const victims: { readonly address: number; readonly pages: number; readonly number: number }[] = [];
  const wrong: string[] = [];
  for (const [number, { kind, page, pages, isSink, pauseNs }] of changes.entries()) {
    await cpu.sleep(pauseNs * psPerNs);
    const from = address + (isSink ? toldPages + page : page) * pageBytes;
    const bytes = pages * pageBytes;
    if (kind === 'discard') memory.advise(from, bytes, 'dontNeed');
    if (kind === 'remap') memory.mapFixed(from, bytes);
    if (kind === 'populate') memory.advise(from, bytes, 'populateWrite');
    if (kind === 'protect') {
      memory.protect(from, bytes, 'read');
      memory.protect(from, bytes, 'readWrite');
    }
    if (kind === 'fork')
      program.fork(`child ${number}`, async (context) => context.cpu.sleep(pauseNs * psPerNs));
    if (hasVictims && (kind === 'discard' || kind === 'remap')) {
      // The frames get another owner at once.
      const victim = { address: memory.map(bytes), pages, number };
      memory.write(victim.address, patternOf(number, bytes));
      victims.push(victim);
    }
    await cpu.settle();
    if (!isSink) await tell(page, pages);
    // A child needs a core, and there are four.
    if (kind === 'fork') await cpu.sleep(4 * pauseNs * psPerNs + 300_000 * psPerNs);
  }
  await barrier(program, 'changed');
  await barrier(program, 'written');
  wrong.push(
    ...differencesOf(
      'what the peer wrote last',
      memory.read(address + toldPages * pageBytes, sinkPages * pageBytes),
      patternOf(lastPattern, sinkPages * pageBytes),
    ),
  );
  for (const victim of victims)
    wrong.push(
      ...differencesOf(
        `memory mapped after change ${victim.number}`,
        memory.read(victim.address, victim.pages * pageBytes),
        patternOf(victim.number, victim.pages * pageBytes),
      ),
    );
  await deregMr(mr);
  await leave(side);
  return { wrong, told: told as unknown as JsonValue };
}

const lastPattern = 4242;

/** What a READ found of a page: [page, least version, greatest version, posted, ended]; 0 is memory that was just mapped. */
type Found = readonly [number, number, number, number, number];

/** Reads told pages and writes sink pages until the owner has done. */
export async function peer(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu, exchange } = program;
  const args = program.args as unknown as Args;
  const { seed, toldPages, sinkPages, changes, window, requestPagesMax, restNs } = args;
  const random = new Random(seed, 'peer');
  const slotBytes = requestPagesMax * pageBytes;
  const areaBytes = Math.max(window * slotBytes, sinkPages * pageBytes);
  const side = await connectWithPeer(program, { areaBytes, cap: { maxSendWr: 16 }, attributes: shortRnr });
  const region = (await exchange.take('region')) as unknown as PeerSide;
  const there = { ...side, peer: region };
  const wrong: string[] = [];
  const found: Found[] = [];
  const roundCount = 3 * changes.length;
  for (let round = 0; round < roundCount; round++) {
    const reads: { readonly page: number; readonly pages: number; readonly slot: number }[] = [];
    const postedPs = nowPs(program);
    for (let slot = 0; slot < window; slot++) {
      const isWrite = random.chance(0.3);
      const most = isWrite ? sinkPages : toldPages;
      const page = random.below(most);
      const pages = Math.min(most - page, 1 + random.below(requestPagesMax));
      const remoteOffset = (isWrite ? toldPages + page : page) * pageBytes;
      const opcode = isWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
      const lengthBytes = pages * pageBytes;
      post(
        side.qps[0]!,
        requestOf(there, slot, opcode, { offset: slot * slotBytes, lengthBytes, remoteOffset }),
      );
      if (!isWrite) reads.push({ page, pages, slot });
    }
    wrong.push(...failuresOf(await completionsOf(side, window)));
    if (wrong.length > 0) break;
    const endedPs = nowPs(program);
    for (const { page, pages, slot } of reads) {
      const bytes = memory.read(side.area.address + slot * slotBytes, pages * pageBytes);
      for (let at = 0; at < pages; at++)
        found.push([page + at, ...versionsIn(bytes, at, page + at, wrong), postedPs, endedPs]);
    }
    if (restNs > 0) await cpu.sleep(random.below(restNs) * psPerNs);
  }
  await barrier(program, 'changed');
  memory.write(side.area.address, patternOf(lastPattern, sinkPages * pageBytes));
  post(
    side.qps[0]!,
    requestOf(there, 0, IBV_WR_RDMA_WRITE, {
      offset: 0,
      lengthBytes: sinkPages * pageBytes,
      remoteOffset: toldPages * pageBytes,
    }),
  );
  // The ACK does not wait for the last bytes to be in memory; a READ after them does.
  const last = { offset: 0, lengthBytes: 1, remoteOffset: toldPages * pageBytes };
  post(side.qps[0]!, requestOf(there, 1, IBV_WR_RDMA_READ, last));
  wrong.push(...failuresOf(await completionsOf(side, 2)));
  await barrier(program, 'written');
  await leave(side);
  return { wrong, found: found as unknown as JsonValue };
}

/** The least and the greatest version in a page that was read. */
function versionsIn(bytes: Uint8Array, at: number, page: number, wrong: string[]): [number, number] {
  let [least, greatest] = [255, 0];
  let isStrange = false;
  for (let byte = at * pageBytes; byte < (at + 1) * pageBytes; byte += 2) {
    const version = bytes[byte]!;
    if (version < least) least = version;
    if (version > greatest) greatest = version;
    const number = bytes[byte + 1]!;
    if (number !== 0 && number !== page + 1) isStrange = true;
  }
  if (isStrange) wrong.push(`page ${page} was read with bytes of another page`);
  return [least, greatest];
}

export const pagesOnDemand: Scene = {
  name: 'pages-on-demand',
  about:
    'pages of a region on demand are discarded, mapped anew and protected while the peer reads and writes',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'owner' },
    { node: 1, exportName: 'peer' },
  ],
  draw,
  judge({ args, results }) {
    const { changes } = args as unknown as Args;
    const [{ told }, { found }] = results as unknown as [{ told: Told[] }, { found: Found[] }];
    // Without any change that takes a page away, none may look new.
    const isTaken = changes.some(({ kind, isSink }) => !isSink && (kind === 'discard' || kind === 'remap'));
    const wrong = wrongOf(results);
    for (const [page, least, greatest, postedPs, endedPs] of found) {
      const ofPage = told.filter((one) => one[0] === page);
      const before = ofPage.findLast(([, , atPs]) => atPs <= postedPs)![1];
      const next = ofPage.find(([, , atPs]) => atPs > endedPs)?.[1] ?? 255;
      // Since it was posted the page may have been taken and written again, and may be being written now.
      const isChanging = ofPage.some(([, , atPs]) => atPs > postedPs);
      const isOld = least < before && !(least === 0 && isTaken && isChanging);
      if (isOld || greatest > next)
        wrong.push(
          `page ${page}, read from ${postedPs} to ${endedPs} ps, has versions ${least} to ${greatest}: ${before} to ${next} were there`,
        );
    }
    return wrong.slice(0, 5);
  },
};
