/**
 * Memory is taken away from the device in mid-traffic and reused at once: bytes from before the call may still arrive, bytes that are written after
 * its return may not, and the device does not overwrite them (IBTA 10.6.7.2: a deregistered region is not accessed any more; 10.2.4.4: nor the
 * buffers of a destroyed QP's requests).
 */
import type { Draft, Draws, Reach, Stage } from './language/index.ts';
import { connect, filled, psPerNs, READ, scene, topic, WRITE } from './language/index.ts';

interface Args {
  readonly opcode: number;
  readonly how: 'deregister' | 'destroy';
  /** Side whose memory is taken away: 0 sends requests, 1 responds. */
  readonly side: number;
  readonly count: number;
  readonly lengthBytes: number;
  /** Every other request is of another region of each side, which stays. */
  readonly alternates: boolean;
  /** Time between the last post and the call. */
  readonly delayNs: number;
}

/** Bytes of each side before the call and afterwards: the device may send the first kind, never the second. */
const before: readonly number[] = [0x11, 0x22];
const after: readonly number[] = [0x33, 0x44];

const oneMpt = { 'hca.mptCacheEntries': 1, 'hca.mptCacheWays': 1 };
const oneMtt = { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 };
const narrow = { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 };
const slow = [
  {},
  { 'dma.tagCount': 1 },
  narrow,
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
  { 'dma.tagCount': 2, ...oneMtt },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000, ...oneMpt },
  { 'pcie.rootComplex.readLatencyPs': 10_000_000, ...oneMpt },
];

/**
 * Regions that evict each other from the only MPT entry on chip: the entry of the disappearing one is being read most
 * of the time.
 */
function drawSlowLookups(random: Draws): Draft<Args> {
  const count = 14 + random.below(16);
  const isRead = random.chance(0.5);
  const side = isRead === random.chance(0.7) ? 1 : 0;
  const readLatencyPs = 5_000_000 + random.below(15_000_000);
  const lengthBytes = 64 << random.below(3);
  // Queues, contexts and requests are read first, each in its turn.
  const delayNs = Math.floor(((6 + random.unit() * (count - 4)) * readLatencyPs) / psPerNs);
  // The command's writes are in memory while an entry that was read before them is in flight.
  const share = random.chance(0.85) ? 0.5 + random.unit() / 2 : random.unit();
  const set = {
    'pcie.rootComplex.readLatencyPs': readLatencyPs,
    'pcie.rootComplex.writeLatencyPs': Math.floor(readLatencyPs * share),
    ...oneMpt,
    ...random.maybe(0.6, () => oneMtt),
  };
  const opcode = isRead ? READ : WRITE;
  const args = { opcode, how: 'deregister', side, count, lengthBytes, alternates: true, delayNs } as const;
  return { args, set, climate: 'flawed' };
}

/** Reads by one tag, in small pieces, of long requests: looked-up addresses wait for many microseconds to be read. */
function drawQueuedAccesses(random: Draws): Draft<Args> {
  const isRead = random.chance(0.5);
  // Whose memory the device reads, four times of five.
  const reading = isRead ? 1 : 0;
  const args: Args = {
    opcode: isRead ? READ : WRITE,
    how: random.chance(0.85) ? 'deregister' : 'destroy',
    side: random.chance(0.8) ? reading : 1 - reading,
    count: 2 + random.below(4),
    lengthBytes: 4096 * (2 + random.below(4)),
    alternates: false,
    delayNs: 3000 + random.below(40_000),
  };
  const set = {
    'dma.tagCount': 1,
    'pcie.rootComplex.readLatencyPs': 500_000 + random.below(2_500_000),
    'pcie.enumeration.maxReadRequestBytes': 256 << random.below(3),
    ...random.maybe(0.3, () => narrow),
  };
  return { args, set, climate: 'flawed' };
}

function draw(random: Draws): Draft<Args> {
  const kind = random.unit();
  if (kind < 0.42) return drawSlowLookups(random);
  if (kind < 0.8) return drawQueuedAccesses(random);
  const alternates = random.chance(0.5);
  const args: Args = {
    opcode: random.chance(0.5) ? WRITE : READ,
    how: random.chance(0.6) ? 'deregister' : 'destroy',
    side: random.below(2),
    count: 1 + random.below(alternates ? 24 : 4),
    lengthBytes: alternates ? 64 << random.below(6) : 4096 * (1 + random.below(8)),
    alternates,
    delayNs: random.below(30_000),
  };
  return { args, set: random.oneOf(slow), hasDrawnHardware: random.chance(0.5), climate: 'flawed' };
}

const otherTopic = topic<Reach>('other');

/** The first program sends requests, the second responds; the memory of one of them is taken away. */
async function player(stage: Stage<Args>): Promise<void> {
  const { node } = stage;
  const { opcode, how, side: goes, count, lengthBytes, alternates, delayNs } = stage.args;
  const side = await connect(stage, {
    ...{ areaBytes: count * lengthBytes, cap: { maxSendWr: 32 } },
    attributes: { timeoutCode: 8, retryCount: 1 },
  });
  const { device } = side;
  const area = await device.buffer(count * lengthBytes);
  const peer = await stage.swap(otherTopic, { address: area.address, rkey: area.region.rkey });
  const other = side.with({ area, peer });
  for (const one of [side, other]) one.fill(filled(area.lengthBytes, before[node]!));
  await stage.meet('filled');
  for (let id = 0; id < count && node === 0; id++)
    (alternates && id % 2 === 1 ? other : side).post(id, opcode, { offset: id * lengthBytes, lengthBytes });
  if (goes === node) {
    await stage.sleepNs(delayNs);
    if (how === 'destroy') await device.destroyQp(side.qp);
    else await device.deregister(side.area.region);
    side.fill(filled(area.lengthBytes, after[node]!));
  }
  // All retries of the other side are over by then, whatever the hardware.
  await stage.sleepMs(20);
  await stage.meet('over');
  const lawful = goes === node ? [after[node]!] : before;
  const foreign = side.bytes(0, area.lengthBytes).filter((byte) => !lawful.includes(byte));
  if (foreign.length > 0)
    stage.accuse(`${foreign.length} bytes may not be there, of ${[...new Set(foreign)]}`);
}

export const takenAway = scene({
  about: 'a region or a QP goes while requests use its memory, which holds other bytes at once',
  draw,
  programs: [player, player],
});
