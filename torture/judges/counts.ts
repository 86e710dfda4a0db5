/**
 * Counts of the report on a node against the actions of its programs: CQEs that were written and polled, requests started,
 * bytes that must have crossed the memory bus, and first touches, which no cache can have had.
 */
import { IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WR_RDMA_READ } from '../../userlib/index.ts';
import { framesOf } from '../ethernet-cable.ts';
import type { Observations } from '../observations.ts';
import type { Played } from '../run-story.ts';
import { flowsOf } from './traffic.ts';

export function judgeCounts(played: Played): string[] {
  const { seen, error } = played;
  if (error !== undefined || seen.some((observations) => observations === null)) return [];
  return played.report.nodes.flatMap((_, node) => [
    ...judgeCompletions(played, node),
    ...judgeRequests(played, node),
    ...judgeBytes(played, node),
    ...judgeTouches(played, node),
  ]);
}

const programsOf = ({ story, seen }: Played, node: number): Observations[] =>
  story.programs.flatMap((plan, index) => (plan.node === node ? [seen[index]!] : []));

const isWhole = (seen: Observations): boolean => seen.failure === null && seen.finals.length > 0;

/** Each completion that a program polled was written once; in a faultless story, each that was written was polled. */
function judgeCompletions(played: Played, node: number): string[] {
  const { report, story } = played;
  const { hca, pcie } = report.nodes[node]!;
  const programs = programsOf(played, node);
  const written = pcie.toHost.classes['cqe']?.tlps ?? 0;
  const taken = programs.reduce((sum, { completions }) => sum + completions.length, 0);
  if (written < taken)
    return [`node ${node}: ${written} CQEs written, the programs took ${taken} completions`];
  // A resize writes an entry of its own, which no program sees.
  const resizes = hca.commands['MODIFY_CQ'] ?? 0;
  // The driver posts the frames by which it finds neighbours.
  const { sent, received } = framesOf(report, node);
  const isJudged = story.climate === 'calm' && story.faults.length === 0 && programs.every(isWhole);
  return isJudged && written > taken + resizes + sent + received
    ? [`node ${node}: ${written} CQEs written, the programs took ${taken} completions`]
    : [];
}

/** Requests that a device has started were posted; in a faultless story, all of them are started. */
function judgeRequests(played: Played, node: number): string[] {
  const { wqe } = played.report.nodes[node]!.hca.caches;
  const hits = wqe?.hits ?? 0;
  const used = hits + (wqe?.misses ?? 0);
  const programs = programsOf(played, node);
  const posted = programs.reduce(
    (sum, { posts }) => sum + posts.filter(({ error }) => error === 0).length,
    0,
  );
  const isJudged =
    played.story.climate === 'calm' &&
    programs.every((seen) => isWhole(seen) && seen.unfinished.length === 0) &&
    programs.every(({ completions }) => completions.every(({ status }) => status !== IBV_WC_WR_FLUSH_ERR));
  // A read that finds no new request is a miss as well: without any hit there may be more reads than requests.
  const most = posted + framesOf(played.report, node).sent;
  return isJudged && (used < posted || (hits > 0 && used > most))
    ? [`node ${node}: the device took up ${used} requests, the programs posted ${posted}`]
    : [];
}

/** The memory bus carried at least the bytes read and written for successful requests. */
function judgeBytes(played: Played, node: number): string[] {
  let read = 0;
  let written = 0;
  const isHere = (program: number): boolean => played.story.programs[program]!.node === node;
  for (const { from, to, sends } of flowsOf(played)) {
    if (from.plan.transport !== 'RC') continue;
    for (const { plan, end, lengthBytes } of sends) {
      if (end?.status !== IBV_WC_SUCCESS) continue;
      const [source, sink] = plan.opcode === IBV_WR_RDMA_READ ? [to, from] : [from, to];
      if (isHere(source.program) && !plan.isInline) read += lengthBytes;
      if (isHere(sink.program)) written += lengthBytes;
    }
  }
  const { deviceReads, deviceWrites } = played.report.nodes[node]!.memoryBus;
  const found: string[] = [];
  if (deviceReads < read)
    found.push(`node ${node}: the device read ${deviceReads} bytes, requests that ended well are of ${read}`);
  if (deviceWrites < written)
    found.push(
      `node ${node}: the device wrote ${deviceWrites} bytes, requests that ended well are of ${written}`,
    );
  return found;
}

/** The first use of a region misses the cache of MPT entries. */
function judgeTouches(played: Played, node: number): string[] {
  const regions = new Set<string>();
  const isHere = (program: number): boolean => played.story.programs[program]!.node === node;
  for (const { from, to, sends } of flowsOf(played))
    for (const { plan, end, lengthBytes } of sends) {
      if (end?.status !== IBV_WC_SUCCESS || lengthBytes === 0 || from.plan.transport !== 'RC') continue;
      if (isHere(from.program) && !plan.isInline)
        for (const { area, length } of plan.sges) if (length > 0) regions.add(`${from.program}.${area}`);
      // A window has an entry of its own.
      const isOfRegion = plan.remote !== undefined && plan.through === undefined;
      if (isOfRegion && isHere(to.program)) regions.add(`${to.program}.${plan.remote!.area}`);
    }
  const misses = played.report.nodes[node]!.hca.caches['mpt']?.misses ?? 0;
  return misses < regions.size
    ? [`node ${node}: ${misses} misses of MPT entries, requests that ended well used ${regions.size} regions`]
    : [];
}
