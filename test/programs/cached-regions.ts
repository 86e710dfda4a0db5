/** Programs that change their memory under cached registrations, reach the pin limit, fork and exit. */

import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { postSend } from '../../userlib/index.ts';
import { RegistrationCache } from '../../userlib/messaging/index.ts';
import { failureOf, MessageSide } from './messages.ts';
import { take } from './outcomes.ts';
import { areEqual, patternOf, readOf, segment } from './requests.ts';
import { Side } from './side.ts';

const bufferBytes = 3 * 4096;
const microsecond = 1e6;

interface Offer {
  readonly address: number;
  readonly rkey: number;
}

/**
 * Replaces the pages of a region twice: of an unmonitored one, and of a cached one; by madvise, or by mapping other memory at
 * the same addresses (MAP_FIXED). After each change the peer reads the buffer through the latest key that it received.
 */
export async function replacer(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const { replaceBy } = program.args as { readonly replaceBy: 'madvise' | 'mmap' };
  const replace = (): void => {
    if (replaceBy === 'madvise') memory.advise(address, bufferBytes, 'dontNeed');
    else if (memory.mapFixed(address, bufferBytes) !== address) throw new Error('not mapped');
  };
  const side = await Side.open(program);
  const pair = await side.pair('reads', { bufferBytes });
  const { address, mr } = pair.buffer;
  const offer = async (rkey: number): Promise<void> => {
    await side.tell('offer', { address, rkey });
    await side.barrier('read');
  };
  memory.write(address, patternOf(1, bufferBytes));
  await offer(mr.rkey);
  replace();
  memory.write(address, patternOf(2, bufferBytes));
  await offer(mr.rkey);
  const limits = { regionCount: 4, pinnedBytes: 2 ** 20, lookupCycles: 100 };
  const cache = new RegistrationCache(side.pd, allAccess, limits);
  for (const seed of [3, 4]) {
    if (seed === 4) replace();
    memory.write(address, patternOf(seed, bufferBytes));
    const cached = await cache.acquire(address, bufferBytes);
    await offer(cached.region.rkey);
    await cache.release(cached);
  }
  const { hits, misses, invalidations } = cache.counts;
  await cache.close();
  return { hits, misses, invalidations };
}

/** Reads the offered buffer four times. @returns the pattern found each time, 0 for none */
export async function reader(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('reads', { bufferBytes });
  const seeds: number[] = [];
  for (let round = 0; round < 4; round++) {
    const from = await side.hear<Offer>('offer');
    postSend(pair.qp, readOf([segment(pair.buffer, 0, bufferBytes)], from));
    await take(pair.sendCq, 1);
    const bytes = side.read(pair.buffer, bufferBytes);
    seeds.push([1, 2, 3, 4].find((seed) => areEqual(bytes, patternOf(seed, bufferBytes))) ?? 0);
    await side.barrier('read');
  }
  return seeds;
}

/** Sends from a buffer whose memory it changes between messages, each time in another way. */
export async function changer(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const side = await MessageSide.open(program);
  const { channel } = side;
  let address = memory.map(bufferBytes);
  let seed = 0;
  const send = async (): Promise<void> => {
    memory.write(address, patternOf(seed++, bufferBytes));
    await channel.send(address, bufferBytes);
  };
  await send();
  await send();
  memory.advise(address, bufferBytes, 'dontNeed');
  await send();
  memory.mapFixed(address, bufferBytes);
  await send();
  const moved = memory.remap(address, bufferBytes, 4 * bufferBytes, true);
  // The range after it may be free or not: either way the range is registered again at its present address.
  if (typeof moved !== 'number') return moved;
  address = moved;
  await send();
  // One page of three was replaced: the region over all of them is useless.
  memory.advise(address + 4096, 4096, 'dontNeed');
  await send();
  const counts = { ...channel.cache.counts };
  memory.unmap(address, 4 * bufferBytes);
  const failure = await failureOf(() => channel.send(address, bufferBytes));
  address = memory.map(bufferBytes);
  await send();
  await side.leave();
  return { ...counts, failure, sizeAtEnd: channel.cache.size };
}

/** Receives as many messages as the changer sends, each into the same buffer. */
export async function follower(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const buffer = side.buffer(bufferBytes);
  const right: boolean[] = [];
  for (let seed = 0; seed < 7; seed++) {
    await side.channel.receive(buffer, bufferBytes);
    right.push(side.holds(buffer, seed, bufferBytes));
  }
  await side.leave();
  return right;
}

const longBytes = 1_000_000;

/** Replaces the buffer's pages while the peer reads it: that transfer moves the old bytes, the next one the new ones. */
export async function hasty(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const side = await MessageSide.open(program);
  const { channel } = side;
  const { space } = memory.process;
  const address = memory.map(longBytes);
  memory.write(address, patternOf(0, longBytes));
  const before = space.pinnedBytes;
  const request = await channel.startSend(address, longBytes);
  const during = space.pinnedBytes - before;
  await program.cpu.sleep(50 * microsecond);
  memory.advise(address, longBytes, 'dontNeed');
  memory.write(address, patternOf(1, longBytes));
  await channel.wait(request);
  const sizes = [channel.cache.size];
  const afterwards = space.pinnedBytes - before;
  await channel.send(address, longBytes);
  sizes.push(channel.cache.size);
  await side.leave();
  return { isPinned: during >= longBytes, afterwards, sizes };
}

export async function longReceiver(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const right: boolean[] = [];
  for (let seed = 0; seed < 2; seed++) {
    const buffer = side.buffer(longBytes);
    await side.channel.receive(buffer, longBytes);
    right.push(side.holds(buffer, seed, longBytes));
  }
  await side.leave();
  return right;
}

const thirdBytes = 200_000;

/** More buffers than it may pin at once; then a single one above the pin limit; then a small message. */
export async function limited(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { channel } = side;
  const buffers = [0, 1, 2].map((seed) => side.filled(seed, thirdBytes));
  for (let round = 0; round < 2; round++)
    for (const buffer of buffers) await channel.send(buffer, thirdBytes);
  const { evictions } = channel.cache.counts;
  const failure = await failureOf(() => channel.send(side.buffer(longBytes), longBytes));
  const small = side.filled(3, 10);
  await channel.send(small, 10);
  await side.leave();
  return { evictions, failure };
}

export async function limitedReceiver(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const buffer = side.buffer(thirdBytes);
  const right: boolean[] = [];
  for (let count = 0; count < 6; count++) {
    await side.channel.receive(buffer, thirdBytes);
    right.push(side.holds(buffer, count % 3, thirdBytes));
  }
  await side.channel.receive(buffer, 10);
  right.push(side.holds(buffer, 3, 10));
  await side.leave();
  return right;
}

/** Forks between two messages from one buffer: the region remains valid for the parent, whose frames it pins. */
export async function forking(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const side = await MessageSide.open(program);
  const address = memory.map(bufferBytes);
  memory.write(address, patternOf(0, bufferBytes));
  await side.channel.send(address, bufferBytes);
  const seen: boolean[] = [];
  const child = program.fork('child', async (context) => {
    await context.cpu.sleep(200 * microsecond);
    seen.push(areEqual(context.memory.read(address, bufferBytes), patternOf(0, bufferBytes)));
    context.memory.write(address, patternOf(9, bufferBytes));
    return null;
  });
  if (child === 'ENOMEM') return child;
  memory.write(address, patternOf(1, bufferBytes));
  await side.channel.send(address, bufferBytes);
  while (!child.isEnded) await cpu.sleep(20 * microsecond);
  memory.write(address, patternOf(2, bufferBytes));
  await side.channel.send(address, bufferBytes);
  const { hits, misses } = side.channel.cache.counts;
  await side.leave();
  return { hits, misses, seen };
}

export async function threeReceiver(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const buffer = side.buffer(bufferBytes);
  const right: boolean[] = [];
  for (let seed = 0; seed < 3; seed++) {
    await side.channel.receive(buffer, bufferBytes);
    right.push(side.holds(buffer, seed, bufferBytes));
  }
  await side.leave();
  return right;
}

/** Ends with its channel open and regions in the cache. */
export async function deserter(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const buffer = side.buffer(bufferBytes);
  if (program.node === 0) await side.channel.send(side.filled(0, bufferBytes), bufferBytes);
  else await side.channel.receive(buffer, bufferBytes);
  await side.channel.flush();
  return side.channel.cache.size;
}

/** Observes, from another process, pages being pinned and all of them released. */
export async function watcher({ host, cpu }: ProgramContext): Promise<JsonValue> {
  const pinned = (): number => host.mm.counts.pinnedPages - host.mm.counts.unpinnedPages;
  const before = pinned();
  let most = before;
  for (let looks = 0; looks < 20_000; looks++) {
    await cpu.sleep(5 * microsecond);
    most = Math.max(most, pinned());
    if (most > before && pinned() === before) return true;
  }
  return false;
}

const channelCount = 6;

/** Many channels of one process at once, with both kinds of messages in flight on all of them. */
export async function many(program: ProgramContext): Promise<JsonValue> {
  const lengths = [100, 30_000];
  const sides: MessageSide[] = [];
  for (let index = 0; index < channelCount; index++) sides.push(await MessageSide.open(program));
  const receives = [];
  for (const side of sides)
    for (const length of lengths)
      receives.push({ side, length, request: await side.channel.startReceive(side.buffer(length), length) });
  const sends = [];
  for (const [index, side] of sides.entries())
    for (const length of lengths)
      sends.push({ side, request: await side.channel.startSend(side.filled(index, length), length) });
  let right = 0;
  for (const [at, { side, length, request }] of receives.entries()) {
    await side.channel.wait(request);
    if (side.holds(request.address, Math.floor(at / lengths.length), length)) right++;
  }
  for (const { side, request } of sends) await side.channel.wait(request);
  for (const side of sides) await side.leave();
  return right;
}
