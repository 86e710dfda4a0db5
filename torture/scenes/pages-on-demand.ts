/**
 * Memory that is registered on demand changes under its device: pages are discarded, remapped, protected and shared by a fork while the peer
 * reads and writes. A request that is posted after a change has returned finds the new contents, and no frame that another owner has
 * is touched (docs/explanation/memory.md; madvise(2), munmap(2), mremap(2)).
 *
 *     region:  pages that the owner writes and the peer reads ("told") | pages that the peer writes ("sink")
 *
 * Each page of the first kind carries its number and a version, so that a reader can tell how old it is.
 */

import { allAccess } from '../../experiments/workloads/index.ts';
import { Random } from '../../sim/index.ts';
import { IBV_ACCESS_ON_DEMAND } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Played, Reach, Stage } from './language/index.ts';
import { connect, filled, patternOf, psPerNs, READ, scene, times, topic, WRITE } from './language/index.ts';

const kinds = ['discard', 'discard', 'discard', 'remap', 'protect', 'fork', 'write', 'populate'] as const;
const pageBytes = 4096;
/** Requests that find a page absent are retransmitted after 10 µs. */
const attributes = { rnrTimerCode: 1 };

const oneLine = { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 };
const slow = [
  {},
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, ...oneLine },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, ...oneLine },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, 'pcie.rootComplex.outstandingReadCount': 1 },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000 },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000, ...oneLine },
];

function draw(random: Draws) {
  const toldPages = 1 + random.below(30);
  const sinkPages = 1 + random.below(12);
  const args = {
    seed: random.below(1 << 30),
    toldPages,
    sinkPages,
    changes: times(3 + random.below(25), () => {
      const isSink = random.chance(0.25);
      const page = random.below(isSink ? sinkPages : toldPages);
      const left = (isSink ? sinkPages : toldPages) - page;
      return {
        kind: random.oneOf(kinds),
        page,
        pages: random.chance(0.5) ? left : 1 + random.below(left),
        isSink,
        pauseNs: random.below(random.chance(0.5) ? 3000 : 100_000),
      };
    }),
    // Requests of the peer under way at a time, and its rest between rounds.
    window: 1 + random.below(8),
    requestPagesMax: 1 + random.below(8),
    restNs: random.chance(0.5) ? 0 : random.below(20_000),
    // Whether other owners get the returned frames at once; otherwise they stay free.
    hasVictims: random.chance(0.5),
  };
  const set = {
    ...random.oneOf(slow),
    'host.memory.framePlacement': random.chance(0.5) ? 'scattered' : 'contiguous',
  };
  return { args, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Returns a version of a told page: its reader finds both numbers in every pair of bytes. */
function toldPage(page: number, version: number): Uint8Array<ArrayBuffer> {
  const bytes = filled(pageBytes, 1 + page);
  for (let at = 0; at < pageBytes; at += 2) bytes[at] = version;
  return bytes;
}

/** When the owner had written a version, by page. */
type Told = readonly [page: number, version: number, atPs: number];
/** Versions that a READ found in a page; 0 is memory that was just mapped. */
type Found = readonly [page: number, least: number, greatest: number, postedPs: number, endedPs: number];

const regionTopic = topic<Reach>('region');
const lastBytes = (sinkPages: number) => patternOf(4242, sinkPages * pageBytes);

/** Owns the region, and changes its memory. */
async function owner(stage: Stage<Args>): Promise<Told[]> {
  const { memory, cpu, context } = stage;
  const { toldPages, sinkPages, changes, hasVictims } = stage.args;
  const { device } = await connect(stage, { areaBytes: 8, attributes });
  const lengthBytes = (toldPages + sinkPages) * pageBytes;
  const address = memory.map(lengthBytes);
  const versions = new Uint8Array(toldPages);
  const told: Told[] = [];
  const tell = async (first: number, count: number): Promise<void> => {
    for (let page = first; page < first + count; page++) {
      const version = ++versions[page]!;
      await memory.store(address + page * pageBytes, toldPage(page, version));
      await cpu.settle();
      told.push([page, version, stage.nowPs]);
    }
  };
  await tell(0, toldPages);
  const { rkey } = await device.region(address, lengthBytes, allAccess | IBV_ACCESS_ON_DEMAND);
  await stage.put(regionTopic, { address, rkey });
  const victims: { readonly address: number; readonly bytes: Uint8Array }[] = [];
  for (const [number, { kind, page, pages, isSink, pauseNs }] of changes.entries()) {
    await stage.sleepNs(pauseNs);
    const from = address + (isSink ? toldPages + page : page) * pageBytes;
    const bytes = pages * pageBytes;
    if (kind === 'discard') memory.advise(from, bytes, 'dontNeed');
    if (kind === 'remap') memory.mapFixed(from, bytes);
    if (kind === 'populate') memory.advise(from, bytes, 'populateWrite');
    if (kind === 'protect') {
      memory.protect(from, bytes, 'read');
      memory.protect(from, bytes, 'readWrite');
    }
    if (kind === 'fork') context.fork(`child ${number}`, async (child) => child.cpu.sleep(pauseNs * psPerNs));
    if (hasVictims && (kind === 'discard' || kind === 'remap')) {
      // The frames get another owner at once.
      const victim = { address: memory.map(bytes), bytes: patternOf(number, bytes) };
      memory.write(victim.address, victim.bytes);
      victims.push(victim);
    }
    await cpu.settle();
    if (!isSink) await tell(page, pages);
    // A child needs a core, and there are four.
    if (kind === 'fork') await stage.sleepNs(4 * pauseNs + 300_000);
  }
  await stage.meet('changed');
  await stage.meet('written');
  stage.expectAt('what the peer wrote last', address + toldPages * pageBytes, lastBytes(sinkPages));
  for (const [at, victim] of victims.entries())
    stage.expectAt(`memory ${at} that was mapped after a change`, victim.address, victim.bytes);
  return told;
}

/** Reads told pages and writes sink pages until the owner is done. */
async function peer(stage: Stage<Args>): Promise<Found[]> {
  const { seed, toldPages, sinkPages, changes, window, requestPagesMax, restNs } = stage.args;
  const random = new Random(seed, 'peer');
  const slotBytes = requestPagesMax * pageBytes;
  const areaBytes = Math.max(window * slotBytes, sinkPages * pageBytes);
  const side = await connect(stage, { areaBytes, cap: { maxSendWr: 16 }, attributes });
  const there = side.with({ peer: await stage.take(regionTopic) });
  const found: Found[] = [];
  for (let round = 0; round < 3 * changes.length && stage.wrong.length === 0; round++) {
    const reads: { readonly page: number; readonly pages: number; readonly slot: number }[] = [];
    const postedPs = stage.nowPs;
    for (let slot = 0; slot < window; slot++) {
      const isWrite = random.chance(0.3);
      const most = isWrite ? sinkPages : toldPages;
      const page = random.below(most);
      const pages = Math.min(most - page, 1 + random.below(requestPagesMax));
      const remoteOffset = (isWrite ? toldPages + page : page) * pageBytes;
      const span = { offset: slot * slotBytes, lengthBytes: pages * pageBytes, remoteOffset };
      there.post(slot, isWrite ? WRITE : READ, span);
      if (!isWrite) reads.push({ page, pages, slot });
    }
    await side.expectWell(window);
    if (stage.wrong.length > 0) break;
    const endedPs = stage.nowPs;
    for (const { page, pages, slot } of reads)
      for (let at = 0; at < pages; at++) {
        const bytes = side.bytes(slot * slotBytes + at * pageBytes, pageBytes);
        found.push([page + at, ...versionsIn(stage, bytes, page + at), postedPs, endedPs]);
      }
    if (restNs > 0) await stage.sleepNs(random.below(restNs));
  }
  await stage.meet('changed');
  side.fill(lastBytes(sinkPages));
  const sink = { offset: 0, remoteOffset: toldPages * pageBytes };
  there.post(0, WRITE, { ...sink, lengthBytes: sinkPages * pageBytes });
  // The ACK does not wait for the last bytes to be in memory; a READ after them does.
  there.post(1, READ, { ...sink, lengthBytes: 1 });
  await side.expectWell(2);
  await stage.meet('written');
  return found;
}

/** The least and the greatest version in a page that was read. */
function versionsIn(stage: Stage<Args>, bytes: Uint8Array, page: number): [number, number] {
  const versions = bytes.filter((_, at) => at % 2 === 0);
  if (bytes.some((number, at) => at % 2 === 1 && number !== 0 && number !== page + 1))
    stage.accuse(`page ${page} was read with bytes of another page`);
  return [
    versions.reduce((least, one) => Math.min(least, one)),
    versions.reduce((most, one) => Math.max(most, one)),
  ];
}

function judge({
  args: { changes },
  told: [told, found],
}: Played<Args, readonly [Told[], Found[]]>): string[] {
  // No page may look new unless a change discards pages.
  const isTaken = changes.some(({ kind, isSink }) => !isSink && (kind === 'discard' || kind === 'remap'));
  const wrong = found.flatMap(([page, least, greatest, postedPs, endedPs]) => {
    const ofPage = told.filter((one) => one[0] === page);
    const before = ofPage.findLast(([, , atPs]) => atPs <= postedPs)![1];
    const next = ofPage.find(([, , atPs]) => atPs > endedPs)?.[1] ?? 255;
    // Since it was posted the page may have been taken and written again, and may be being written now.
    const isChanging = ofPage.some(([, , atPs]) => atPs > postedPs);
    const isOld = least < before && !(least === 0 && isTaken && isChanging);
    if (!isOld && greatest <= next) return [];
    const when = `read from ${postedPs} to ${endedPs} ps`;
    return [`page ${page}, ${when}, has versions ${least} to ${greatest}: ${before} to ${next} were there`];
  });
  return wrong.slice(0, 5);
}

export const pagesOnDemand = scene({
  about:
    'pages of a region on demand are discarded, mapped again and protected while the peer reads and writes',
  draw,
  programs: [owner, peer],
  judge,
});
