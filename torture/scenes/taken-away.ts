/**
 * Memory is taken away from the device while it works with it, and used for other things at once: what was there before the call
 * may still arrive, what is written after the call has returned may not, and no other owner writes over it (IBTA 10.6.7.2: a
 * deregistered region is not accessed any more; 10.2.4.4: nor the buffers of a destroyed QP's requests).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier, createBuffer } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { deregMr, destroyQp, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type IbvQp } from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  leave,
  type PeerSide,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly opcode: number;
  readonly how: 'deregister' | 'destroy';
  /** 0 asks, 1 answers: whose memory goes. */
  readonly side: number;
  readonly count: number;
  readonly lengthBytes: number;
  /** Every other request is of another region of each side, which stays. */
  readonly alternates: boolean;
  /** Between the last post and the call. */
  readonly delayNs: number;
}

/** What a side's bytes are before, and afterwards: the device may spread the first kind and never the second. */
const before = [0x11, 0x22] as const;
const after = [0x33, 0x44] as const;

const slow = [
  {},
  { 'dma.tagCount': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, 'hca.mptCacheEntries': 1, 'hca.mptCacheWays': 1 },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000, 'hca.mptCacheEntries': 1, 'hca.mptCacheWays': 1 },
];

/**
 * Regions that take the only MPT entry on chip from each other: the entry of the one that goes is being read most of the time, also
 * when it is forgotten.
 */
function drawSlowLookups(random: Random): SceneDraft {
  const count = 14 + random.below(16);
  const isRead = random.chance(0.5);
  const side = isRead === random.chance(0.7) ? 1 : 0;
  const readLatencyPs = 5_000_000 + random.below(15_000_000);
  const args: Args = {
    opcode: isRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
    how: 'deregister',
    side,
    count,
    lengthBytes: 64 << random.below(3),
    alternates: true,
    // Queues, contexts and requests are read first, each in its turn.
    delayNs: Math.floor(((6 + random.unit() * (count - 4)) * readLatencyPs) / psPerNs),
  };
  return {
    args: { ...args },
    set: {
      'pcie.rootComplex.readLatencyPs': readLatencyPs,
      // What the command writes is in memory when an entry that was read before it is on its way back.
      'pcie.rootComplex.writeLatencyPs': Math.floor(
        readLatencyPs * (random.chance(0.85) ? 0.5 + random.unit() / 2 : random.unit()),
      ),
      'hca.mptCacheEntries': 1,
      'hca.mptCacheWays': 1,
      ...(random.chance(0.6) ? { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 } : {}),
    },
    hasDrawnHardware: false,
    climate: 'flawed',
  };
}

/** Reads by one tag, in small pieces, of long requests: what has been looked up waits for many microseconds to be read. */
function drawQueuedAccesses(random: Random): SceneDraft {
  const isRead = random.chance(0.5);
  // Whose memory the device reads, four times of five.
  const reading = isRead ? 1 : 0;
  const args: Args = {
    opcode: isRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
    how: random.chance(0.85) ? 'deregister' : 'destroy',
    side: random.chance(0.8) ? reading : 1 - reading,
    count: 2 + random.below(4),
    lengthBytes: 4096 * (2 + random.below(4)),
    alternates: false,
    delayNs: 3000 + random.below(40_000),
  };
  return {
    args: { ...args },
    set: {
      'dma.tagCount': 1,
      'pcie.rootComplex.readLatencyPs': 500_000 + random.below(2_500_000),
      'pcie.enumeration.maxReadRequestBytes': 256 << random.below(3),
      ...(random.chance(0.3) ? { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 } : {}),
    },
    hasDrawnHardware: false,
    climate: 'flawed',
  };
}

function draw(random: Random): SceneDraft {
  const kind = random.unit();
  if (kind < 0.42) return drawSlowLookups(random);
  if (kind < 0.8) return drawQueuedAccesses(random);
  const alternates = random.chance(0.5);
  const args: Args = {
    opcode: random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    how: random.chance(0.6) ? 'deregister' : 'destroy',
    side: random.below(2),
    count: 1 + random.below(alternates ? 24 : 4),
    lengthBytes: alternates ? 64 << random.below(6) : 4096 * (1 + random.below(8)),
    alternates,
    delayNs: random.below(30_000),
  };
  return {
    args: { ...args },
    set: slow[random.below(slow.length)]!,
    hasDrawnHardware: random.chance(0.5),
    climate: 'flawed',
  };
}

/** Asks; its memory goes, or the peer's. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const begun = await begin(program, args, 0);
  const { side, other } = begun;
  const { count, lengthBytes, alternates, opcode } = args;
  for (let id = 0; id < count; id++) {
    const isOther = alternates && id % 2 === 1;
    post(
      side.qps[0]!,
      requestOf(isOther ? other : side, id, opcode, { offset: id * lengthBytes, lengthBytes }),
    );
  }
  return finish(program, args, begun, 0);
}

/** Answers. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  return finish(program, args, await begin(program, args, 1), 1);
}

interface Begun {
  readonly side: Side;
  /** The same with the region that stays. */
  readonly other: Side;
}

async function begin(program: ProgramContext, { count, lengthBytes }: Args, number: 0 | 1): Promise<Begun> {
  const side = await connectWithPeer(program, {
    areaBytes: count * lengthBytes,
    cap: { maxSendWr: 32 },
    attributes: { timeoutCode: 8, retryCount: 1 },
  });
  const area = await createBuffer(side.endpoint, count * lengthBytes);
  await program.exchange.put('other', { address: area.address, rkey: area.region.rkey });
  const peer = (await program.exchange.take('other')) as unknown as PeerSide;
  const other = { ...side, area, peer };
  fill(program, side, before[number]);
  fill(program, other, before[number]);
  await barrier(program, 'filled');
  return { side, other };
}

const fill = ({ memory }: ProgramContext, { area }: Side, value: number): void =>
  memory.write(area.address, new Uint8Array(area.lengthBytes).fill(value));

async function finish(
  program: ProgramContext,
  args: Args,
  { side, other }: Begun,
  number: 0 | 1,
): Promise<JsonValue> {
  const isOwn = args.side === number;
  let qps: readonly IbvQp[] = side.qps;
  let isAreaGone = false;
  if (isOwn) {
    await program.cpu.sleep(args.delayNs * psPerNs);
    if (args.how === 'destroy') {
      await destroyQp(side.qps[0]!);
      qps = [];
    } else {
      await deregMr(side.area.region);
      isAreaGone = true;
    }
    fill(program, side, after[number]);
  }
  // All retries of the other side are over by then, whatever the hardware.
  await program.cpu.sleep(20_000 * psPerUs);
  await barrier(program, 'over');
  const counts = countsOf(program.memory.read(side.area.address, side.area.lengthBytes));
  await deregMr(other.area.region);
  await leave(side, { qps, isAreaGone });
  return { counts };
}

function countsOf(bytes: Uint8Array): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const byte of bytes) counts[byte] = (counts[byte] ?? 0) + 1;
  return counts;
}

export const takenAway: Scene = {
  name: 'taken-away',
  about: 'a region or a QP goes while requests use its memory, which holds other bytes at once',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }) {
    const { side } = args as unknown as Args;
    return results.flatMap((result, number) => {
      const { counts } = result as { counts: Record<string, number> };
      const lawful = number === side ? [after[number]!] : before;
      return Object.entries(counts).flatMap(([byte, count]) =>
        lawful.includes(Number(byte) as never)
          ? []
          : [`program ${number} has ${count} bytes of ${Number(byte).toString(16)}, which may not be there`],
      );
    });
  },
};
