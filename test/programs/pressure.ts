/**
 * Programs that need more memory than exists, while RDMA continues in registered memory: both hosts fill four times their
 * physical memory, and meanwhile write to each other's pinned buffers and check the received data.
 */
import { pageBytes } from '../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { postSend } from '../../userlib/index.ts';
import { progressOf, roundsMore } from './bystander.ts';
import { statusesOf, take } from './outcomes.ts';
import { areEqual, patternOf, readOf, remoteAt, segment, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const mib = 2 ** 20;
const bufferBytes = 256 * 1024;
const chunkBytes = 4 * mib;

/** Page content that identifies its page and how often it was written. */
function fill(bytes: Uint8Array, page: number, version: number): Uint8Array {
  const words = new Uint32Array(bytes.buffer);
  for (let word = 0; word < words.length; word++)
    words[word] = Math.imul(page + 1, 0x9e37_79b1) ^ (word * 7 + version);
  return bytes;
}

const framesOf = ({ program }: Side, { buffer }: Pair): string =>
  Array.from({ length: bufferBytes / pageBytes }, (_, page) =>
    program.process.memory.space.translate(buffer.address + page * pageBytes),
  ).join();

/** WRITEs a pattern to the peer's buffer, READs it back. */
async function exchangeOnce(side: Side, pair: Pair, round: number): Promise<boolean> {
  const half = bufferBytes / 4;
  const pattern = patternOf(round + 1 + 100 * side.program.node, half);
  side.write(pair.buffer, pattern);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, half)], remoteAt(pair, 2 * half)));
  postSend(pair.qp, readOf([segment(pair.buffer, half, half)], remoteAt(pair, 2 * half)));
  const statuses = statusesOf(await take(pair.sendCq, 2));
  return statuses.join() === 'SUCCESS,SUCCESS' && areEqual(side.read(pair.buffer, half, half), pattern);
}

export async function squeeze(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu, host } = program;
  const totalBytes = Number(program.args) * host.memory.sizeBytes;
  const side = await Side.open(program);
  const pair = await side.pair('squeezed', { bufferBytes });
  const before = framesOf(side, pair);
  const address = memory.map(totalBytes);
  const bytes = new Uint8Array(pageBytes);
  let exchanges = 0;
  const wrong: string[] = [];
  for (let at = 0; at < totalBytes; at += pageBytes) {
    memory.write(address + at, fill(bytes, at / pageBytes, 0));
    if (at % chunkBytes === 0 && !(await exchangeOnce(side, pair, exchanges++)))
      wrong.push(`exchange ${exchanges}`);
  }
  const expected = new Uint8Array(pageBytes);
  const back = new Uint8Array(pageBytes);
  for (let at = 0; at < totalBytes; at += pageBytes) {
    await memory.load(address + at, back);
    if (!areEqual(back, fill(expected, at / pageBytes, 0))) wrong.push(`page ${at / pageBytes}`);
    if (at % chunkBytes === 0 && !(await exchangeOnce(side, pair, exchanges++)))
      wrong.push(`exchange ${exchanges}`);
  }
  await cpu.settle();
  const isStill = framesOf(side, pair) === before;
  await side.barrier('over');
  return { exchanges, wrong: wrong.slice(0, 5), isStill, pinnedBytes: memory.process.space.pinnedBytes > 0 };
}

/** A registered buffer through a fork: the device and the parent keep their frame, the child has a copy. */
export async function forker(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const side = await Side.open(program);
  const pair = await side.pair('forked', { bufferBytes });
  const before = framesOf(side, pair);
  side.write(pair.buffer, patternOf(7, 100));
  const seen: boolean[] = [];
  const child = program.fork(`child ${program.node}`, async (context) => {
    await context.cpu.sleep(1e9);
    seen.push(areEqual(context.memory.read(pair.buffer.address, 100), patternOf(7, 100)));
    return null;
  });
  if (child === 'ENOMEM') return 'ENOMEM';
  await cpu.settle();
  const isRight = await exchangeOnce(side, pair, 1);
  await side.barrier('exchanged');
  while (!child.isEnded) await cpu.sleep(1e8);
  const isStill = framesOf(side, pair) === before;
  const copied = memory.process.space.mm.counts.forkCopiedPages;
  return { isRight, isStill, seen, copied: copied >= bufferBytes / pageBytes };
}

/** Registers, moves data and releases everything: the device can then reach the same memory as before. */
export async function devicePages(program: ProgramContext): Promise<JsonValue> {
  const { host } = program;
  const side = await Side.open(program);
  const first = await side.pair('first', { bufferBytes });
  const before = host.iommu?.mappedPages;
  const pair = await side.pair('second', { bufferBytes });
  const isRight = await exchangeOnce(side, pair, 1);
  await side.barrier('exchanged');
  await side.closePair(pair);
  const areGivenBack = host.iommu?.mappedPages === before;
  await side.barrier('closed');
  await side.closePair(first);
  return before === undefined ? { isRight } : { isRight, areGivenBack };
}

/** Host 1 takes a registered page from its device without the driver's knowledge; host 0 writes to it. */
export async function trespass(program: ProgramContext): Promise<JsonValue> {
  const { host, node, memory } = program;
  const side = await Side.open(program);
  const pair = await side.pair('trespass', { bufferBytes: pageBytes });
  if (node === 1) host.iommu!.unmap([memory.process.space.translate(pair.buffer.address)], true);
  await side.barrier('taken away');
  const statuses: string[] = [];
  if (node === 0) {
    side.write(pair.buffer, patternOf(3, 64));
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 64)], remoteAt(pair, 0)));
    statuses.push(...statusesOf(await take(pair.sendCq, 1)));
  }
  await side.barrier('written');
  const faults = host.iommu!.faults.map(({ reason }) => reason);
  if (node === 1) host.iommu!.map(memory.process.space.translate(pair.buffer.address), true);
  if (node === 0) return { statuses, faults };
  return {
    isUntouched: areEqual(side.read(pair.buffer, 64), new Uint8Array(64)),
    reasons: [...new Set(faults)],
  };
}

/** Allocates and writes more and more memory, with a buffer pinned, until it is killed. */
export async function glutton(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  await side.area(bufferBytes);
  for (let chunk = 0; ; chunk++) {
    const address = program.memory.map(mib);
    for (let at = 0; at < mib; at += pageBytes) program.memory.write(address + at, Uint8Array.of(chunk));
    await program.cpu.sleep(1e6);
  }
}

/** Waits until memory and swap are exhausted and a process was killed. @returns the remaining memory, after others have continued */
export async function overseer(program: ProgramContext): Promise<JsonValue> {
  const { host, cpu, memory } = program;
  const { counts, frames } = host.mm;
  const own = memory.map(mib);
  memory.write(own, patternOf(5, mib));
  await roundsMore(program, 3);
  const freeBefore = frames.freeCount;
  while (counts.oomKills === 0) await cpu.sleep(100e6);
  await roundsMore(program, 3);
  const told = {
    kills: counts.oomKills,
    refusedBySwap: counts.swapFullRefusals > 0,
    swappedOut: counts.swappedOutPages > 0,
    isGivenBack: frames.freeCount >= freeBefore,
    isOwnRight: areEqual(memory.read(own, mib), patternOf(5, mib)),
  };
  progressOf(host).isStopping = true;
  return told;
}
