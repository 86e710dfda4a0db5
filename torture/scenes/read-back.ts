/**
 * What is written is read at once: a READ behind a WRITE brings what was written (IBTA 10.8.3.3), and a fenced request
 * behind READs and atomics sends what they brought (10.8.3.3).
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvSendWr,
} from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  failuresOf,
  lastBytesIn,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly how: 'read behind write' | 'fenced write';
  readonly rounds: number;
  readonly lengthBytes: number;
  /** READs of a round. */
  readonly reads: number;
  /** The fenced WRITE of each round is behind an atomic as well. */
  readonly hasAtomic: boolean;
  readonly qpCount: number;
}

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

function draw(random: Random): SceneDraft {
  const args: Args = {
    how: random.chance(0.5) ? 'read behind write' : 'fenced write',
    rounds: 2 + random.below(5),
    lengthBytes: 1 + random.below([64, 600, 5000, 20_000][random.below(4)]!),
    reads: 1 + random.below(3),
    hasAtomic: random.chance(0.2),
    qpCount: 1 + random.below(3),
  };
  return {
    args: { ...args },
    set: {
      ...slow[random.below(slow.length)]!,
      ...(random.chance(0.3) ? slow[random.below(slow.length)]! : {}),
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

const slotBytes = ({ lengthBytes }: Args): number => (lengthBytes + 63) & ~63;
/** Of each round here: what is sent first, and what is brought, and the word of an atomic. */
const roundBytes = (args: Args): number => (1 + args.reads) * slotBytes(args) + 64;
const areaBytes = (args: Args): number => args.qpCount * args.rounds * roundBytes(args);

/** All QPs do the same, each in its part of the areas. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { how, rounds, lengthBytes, reads, qpCount } = args;
  const perRound = (how === 'fenced write' ? 1 : 1 + reads) + (how === 'fenced write' ? reads : 0) + 1;
  const side = await connectWithPeer(program, {
    areaBytes: areaBytes(args),
    qpCount,
    cap: { maxSendWr: rounds * perRound },
  });
  const { memory } = program;
  const placeOf = (qp: number, round: number): number => (qp * rounds + round) * roundBytes(args);
  const each = (visit: (qp: number, round: number, place: number, message: number) => void): void => {
    for (let round = 0; round < rounds; round++)
      for (let qp = 0; qp < qpCount; qp++) visit(qp, round, placeOf(qp, round), qp * rounds + round);
  };
  if (how === 'read behind write')
    each((_qp, _round, place, message) =>
      memory.write(side.area.address + place, patternOf(message, lengthBytes)),
    );
  await barrier(program, 'filled');
  let count = 0;
  each((qp, _round, place) => {
    for (const request of how === 'fenced write' ? fenced(side, args, place) : behind(side, args, place)) {
      post(side.qps[qp]!, request);
      count++;
    }
  });
  const ended = await watchCompletions(side, count, { napPs: 500 * psPerNs, patiencePs: 1000 * psPerMs });
  const wrong: string[] = [];
  if (how === 'read behind write')
    each((qp, round, place, message) => {
      for (let read = 1; read <= reads; read++) {
        const brought = memory.read(side.area.address + place + read * slotBytes(args), lengthBytes);
        const at = firstDifference(brought, patternOf(message, lengthBytes));
        if (at !== -1) wrong.push(`QP ${qp}, round ${round}: READ ${read} brought an older byte ${at}`);
      }
    });
  await barrier(program, 'over');
  await leave(side);
  const missing = ended.length === count ? [] : [`${ended.length} of ${count} requests ended`];
  return { found: [...failuresOf(ended), ...missing, ...wrong] };
}

/** A WRITE, and READs of the same bytes into other places. */
function behind(side: Side, args: Args, place: number): IbvSendWr[] {
  const { lengthBytes, reads } = args;
  const at = (slot: number) => ({ offset: place + slot * slotBytes(args), lengthBytes, remoteOffset: place });
  return [
    requestOf(side, 0, IBV_WR_RDMA_WRITE, at(0)),
    ...Array.from({ length: reads }, (_, read) => requestOf(side, 1 + read, IBV_WR_RDMA_READ, at(1 + read))),
  ];
}

/** READs, the last of what the others leave undone, and a fenced WRITE of what the last one brings. */
function fenced(side: Side, args: Args, place: number): IbvSendWr[] {
  const { lengthBytes, reads, hasAtomic } = args;
  const { area, peer } = side;
  const requests = Array.from({ length: reads }, (_, read) =>
    requestOf(side, read, IBV_WR_RDMA_READ, {
      offset: place + read * slotBytes(args),
      lengthBytes,
      remoteOffset: place,
    }),
  );
  const word = place + roundBytes(args) - 64;
  if (hasAtomic)
    requests.unshift({
      wrId: reads,
      sgList: [{ addr: area.address + word, length: 8, lkey: area.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_ATOMIC_FETCH_AND_ADD,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { atomic: { remoteAddr: peer.address + word, compareAdd: 1n, swap: 0n, rkey: peer.rkey } },
    });
  const write = requestOf(side, reads + 1, IBV_WR_RDMA_WRITE, {
    offset: place + (reads - 1) * slotBytes(args),
    lengthBytes,
    remoteOffset: place + slotBytes(args),
  });
  return [...requests, { ...write, sendFlags: IBV_SEND_SIGNALED | IBV_SEND_FENCE }];
}

/** Has what is read, and looks at what has come back. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { how, rounds, lengthBytes, qpCount } = args;
  const side = await connectWithPeer(program, { areaBytes: areaBytes(args), qpCount });
  const { memory } = program;
  const places = Array.from({ length: qpCount * rounds }, (_, message) => message * roundBytes(args));
  if (how === 'fenced write')
    for (const [message, place] of places.entries())
      memory.write(side.area.address + place, patternOf(message, lengthBytes));
  await barrier(program, 'filled');
  await barrier(program, 'over');
  await lastBytesIn(program);
  const slot = how === 'fenced write' ? slotBytes(args) : 0;
  const wrong = places.flatMap((place, message) => {
    const came = memory.read(side.area.address + place + slot, lengthBytes);
    const at = firstDifference(came, patternOf(message, lengthBytes));
    return at === -1 ? [] : [`message ${message} came with another byte ${at}`];
  });
  await leave(side);
  return { found: wrong };
}

export const readBack: Scene = {
  name: 'read-back',
  about: 'READs right behind WRITEs of the same bytes, and fenced WRITEs of what READs bring',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }: ScenePlayed) =>
    results.flatMap((result) => (result as unknown as { found: string[] }).found.slice(0, 3)),
};
