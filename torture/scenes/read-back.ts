/**
 * A READ right after a WRITE returns the written bytes (IBTA 10.8.3.3), and a fenced request after READs and atomics sends their results
 * (10.8.3.3).
 */

import { IBV_SEND_FENCE } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { ADD, connect, patternOf, psPerMs, psPerNs, READ, scene, times, WRITE } from './language/index.ts';

const slow = [
  {},
  {},
  { 'pcie.rootPort.postedHeaders': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.endpointPort.postedFifoTlps': 1 },
  { 'dma.tagCount': 1 },
  { 'pcie.iommu.isEnabled': true, 'pcie.iommu.iotlbEntries': 1, 'pcie.iommu.iotlbWays': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
  { 'dma.writeIssueCycles': 200 },
  { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1, 'hca.mptCacheEntries': 1, 'hca.mptCacheWays': 1 },
];

function draw(random: Draws) {
  const args = {
    how: random.chance(0.5) ? 'read behind write' : 'fenced write',
    rounds: 2 + random.below(5),
    lengthBytes: 1 + random.below(random.oneOf([64, 600, 5000, 20_000])),
    // READs of a round.
    reads: 1 + random.below(3),
    // The fenced WRITE of each round follows an atomic as well.
    hasAtomic: random.chance(0.2),
    qpCount: 1 + random.below(3),
  };
  const set = { ...random.oneOf(slow), ...(random.chance(0.3) ? random.oneOf(slow) : {}) };
  return { args, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const slotBytes = ({ lengthBytes }: Args): number => (lengthBytes + 63) & ~63;
/** Bytes of each round: the data sent first, the data read, and the word of an atomic. */
const roundBytes = (args: Args): number => (1 + args.reads) * slotBytes(args) + 64;
const isFenced = ({ how }: Args): boolean => how === 'fenced write';
/** Begins of rounds, by message: those of the first QP, then of the next. */
const placesOf = (args: Args): number[] =>
  times(args.qpCount * args.rounds, (message) => message * roundBytes(args));

const open = (stage: Stage<Args>): Promise<Side> => {
  const { qpCount, rounds, reads } = stage.args;
  const areaBytes = qpCount * rounds * roundBytes(stage.args);
  return connect(stage, { areaBytes, qpCount, cap: { maxSendWr: rounds * (2 + reads) } });
};

/** All QPs do the same, each in its part of the areas. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { args } = stage;
  const { rounds, lengthBytes, reads, qpCount } = args;
  const side = await open(stage);
  const places = placesOf(args);
  for (const [message, place] of isFenced(args) ? [] : places.entries())
    side.fill(patternOf(message, lengthBytes), place);
  await stage.meet('filled');
  let count = 0;
  for (let round = 0; round < rounds; round++)
    for (let qp = 0; qp < qpCount; qp++)
      count += (isFenced(args) ? postFenced : postBehind)(side, args, qp, places[qp * rounds + round]!);
  const ended = await side.watch(count, { napPs: 500 * psPerNs, patiencePs: 1000 * psPerMs });
  for (const [message, place] of isFenced(args) ? [] : places.entries())
    for (let read = 1; read <= reads; read++)
      side.expect(
        `READ ${read} of message ${message}`,
        place + read * slotBytes(args),
        patternOf(message, lengthBytes),
      );
  await stage.meet('over');
  stage.judgeWell(ended, count);
}

/** Posts a WRITE, and READs of the same bytes into other places. @returns how many requests */
function postBehind(side: Side, args: Args, qp: number, place: number): number {
  const { lengthBytes, reads } = args;
  for (let slot = 0; slot <= reads; slot++) {
    const offset = place + slot * slotBytes(args);
    side.post(slot, slot === 0 ? WRITE : READ, { qp, offset, lengthBytes, remoteOffset: place });
  }
  return 1 + reads;
}

/**
 * Posts READs, perhaps after an atomic, and a fenced WRITE of the last one's data. @returns the number of requests
 */
function postFenced(side: Side, args: Args, qp: number, place: number): number {
  const { lengthBytes, reads, hasAtomic } = args;
  const slotAt = (slot: number): number => place + slot * slotBytes(args);
  if (hasAtomic) side.post(reads, ADD, { qp, offset: place + roundBytes(args) - 64, lengthBytes: 8 });
  for (let read = 0; read < reads; read++)
    side.post(read, READ, { qp, offset: slotAt(read), lengthBytes, remoteOffset: place });
  const span = { offset: slotAt(reads - 1), remoteOffset: slotAt(1), lengthBytes };
  side.post(reads + 1, WRITE, { qp, ...span, flags: IBV_SEND_FENCE });
  return reads + 1 + (hasAtomic ? 1 : 0);
}

/** Owns the memory that is read, and checks the data written back. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { args } = stage;
  const side = await open(stage);
  for (const [message, place] of isFenced(args) ? placesOf(args).entries() : [])
    side.fill(patternOf(message, args.lengthBytes), place);
  await stage.meet('filled');
  await stage.meet('over');
  await stage.lastBytesIn();
  const slot = isFenced(args) ? slotBytes(args) : 0;
  for (const [message, place] of placesOf(args).entries())
    side.expect(`message ${message}`, place + slot, patternOf(message, args.lengthBytes));
}

export const readBack = scene({
  about: 'READs right after WRITEs of the same bytes, and fenced WRITEs of what READs bring',
  draw,
  programs: [asker, answerer],
});
