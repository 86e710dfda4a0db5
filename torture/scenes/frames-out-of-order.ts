/**
 * Memory in scattered frames: its pages are touched in another order than they are mapped, and the machine hands out frames in order or at
 * random. Regions are translated by pages of several sizes, and inline data are gathered over page ends: each byte reaches its address (IBTA
 * 10.6.3).
 *
 *     each region, in thirds:   own bytes, which the peer reads | the peer's WRITE | what the own READ brings
 */
import { allAccess } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Reach, Side, Stage } from './language/index.ts';
import { connect, patternOf, Random, READ, scene, times, topic, WRITE } from './language/index.ts';

const pageBytes = 4096;
const hugePageBytes = 2 ** 21;
const slotBytes = 1024;
const marginPattern = 77;

function draw(random: Draws) {
  const inlineBytesMax = 16 + random.below(240);
  const isScattered = random.chance(0.5);
  const args = {
    seed: random.below(1 << 30),
    regions: times(2 + random.below(14), () => drawRegion(random, isScattered)),
    inlines: times(random.below(8), () => 1 + random.below(inlineBytesMax)),
    inlineBytesMax,
    // Lengths of regions that the process may only read when they are registered, and writes later.
    readOnly: times(random.below(4), () => 1 + random.below(3 * pageBytes)),
  };
  const set = { 'host.memory.framePlacement': isScattered ? 'scattered' : 'contiguous' };
  return { args, set, hasDrawnHardware: random.chance(0.4) } satisfies Draft<unknown>;
}

function drawRegion(random: Draws, isScattered: boolean) {
  // If frames are scattered, 512 adjacent ones are hard to find.
  const isHuge = !isScattered && random.chance(0.03);
  const pages = random.chance(0.6) ? 2 + random.below(4) : 1 + random.below(24);
  return {
    // Pages mapped before the region and after it: they stay as they are.
    marginPages: random.below(4),
    // Offset of the first byte in its first page.
    offset: random.chance(0.5) ? 0 : random.below(pageBytes),
    thirdBytes: Math.max(1, Math.floor((pages * pageBytes) / 3) - random.below(100)),
    // Pages that are touched in order; the blocks are touched in any order.
    blockPages: 2 ** random.below(4),
    // Frames that go to others before the first page.
    skippedFrames: random.below(5),
    isHuge,
  };
}

type Args = ArgsOf<typeof draw>;
type Plan = Args['regions'][number];

/** Memory of a region, and around it. */
interface Region {
  readonly thirdBytes: number;
  readonly mapped: number;
  readonly mappedBytes: number;
  readonly mr: ibv.IbvMr;
}

const ownBytes = (node: number, number: number, length: number) =>
  patternOf(1000 * (node + 1) + number, length);
const inlineBytes = (node: number, number: number, length: number) =>
  patternOf(5000 * (node + 1) + number, length);
const laterBytes = (node: number, number: number, length: number) =>
  patternOf(9000 * (node + 1) + number, length);

/** Maps the memory of a region, has its pages get frames in the drawn order, and registers it. */
async function place(side: Side, plan: Plan, number: number, random: Random): Promise<Region> {
  const { stage, device } = side;
  const { memory } = stage;
  const { marginPages, offset, thirdBytes, blockPages, isHuge, skippedFrames } = plan;
  const skipped = memory.map((1 + skippedFrames) * pageBytes);
  for (let page = 0; page < skippedFrames; page++) memory.write(skipped + page * pageBytes, Uint8Array.of(1));
  const inner = Math.ceil((offset + 3 * thirdBytes) / pageBytes);
  const mappedBytes = isHuge ? 2 * hugePageBytes : (inner + 2 * marginPages) * pageBytes;
  const mapped = memory.map(mappedBytes, isHuge ? { pageSize: hugePageBytes } : {});
  // With huge pages the region crosses their border.
  const first = isHuge ? hugePageBytes - pageBytes * Math.ceil(inner / 2) : marginPages * pageBytes;
  if (!isHuge) touchInBlocks(stage, mapped, mappedBytes / pageBytes, blockPages, random);
  const address = mapped + first + offset;
  memory.write(mapped, patternOf(marginPattern, mappedBytes));
  memory.write(address, ownBytes(stage.node, number, thirdBytes));
  const mr = await device.region(address, 3 * thirdBytes, allAccess);
  return { thirdBytes, mapped, mappedBytes, mr };
}

/** Touches the pages block by block, the blocks in any order. */
function touchInBlocks(
  { memory }: Stage<unknown>,
  address: number,
  pageCount: number,
  blockPages: number,
  random: Random,
): void {
  const blocks = times(Math.ceil(pageCount / blockPages), (block) => block);
  for (let left = blocks.length; left > 1; left--) {
    const taken = random.below(left);
    [blocks[left - 1], blocks[taken]] = [blocks[taken]!, blocks[left - 1]!];
  }
  for (const block of blocks)
    for (let page = block * blockPages; page < Math.min(pageCount, (block + 1) * blockPages); page++)
      memory.write(address + page * pageBytes, Uint8Array.of(1));
}

/** Buffers of a length cut into up to three. */
function cut(addr: number, lengthBytes: number, lkey: number, random: Random): ibv.IbvSge[] {
  const edges = [0, random.below(lengthBytes + 1), random.below(lengthBytes + 1), lengthBytes];
  edges.sort((left, right) => left - right);
  const pieces = edges
    .slice(1)
    .map((end, at) => ({ addr: addr + edges[at]!, length: end - edges[at]!, lkey }));
  return pieces.filter(({ length }) => length > 0);
}

/** Moves a third to the peer's region, and one of that here. */
async function move(
  side: Side,
  number: number,
  { thirdBytes, mr }: Region,
  there: Reach,
  random: Random,
): Promise<void> {
  for (const opcode of [WRITE, READ]) {
    const [here, far] = opcode === READ ? [2 * thirdBytes, 0] : [0, thirdBytes];
    const sgList = cut(mr.addr + here, thirdBytes, mr.lkey, random);
    const request = side.with({ peer: there }).request(number, opcode, { lengthBytes: 0, remoteOffset: far });
    ibv.postSend(side.qp, { ...request, sgList, numSge: sgList.length });
  }
  await side.expectWell(2);
}

/**
 * Makes memory that is new, or was only read, and is not writable when it is registered: the process owns it from then
 * on, so that the device finds what is written later, when that is allowed (Linux: gup_must_unshare).
 */
async function placeReadOnly(
  { stage, device }: Side,
  lengthBytes: number,
  number: number,
): Promise<ibv.IbvMr> {
  const { memory } = stage;
  const mappedBytes = Math.ceil(lengthBytes / pageBytes) * pageBytes;
  const address = memory.map(mappedBytes);
  if (number % 2 === 0) memory.read(address, lengthBytes);
  memory.protect(address, mappedBytes, 'read');
  const mr = await device.region(address, lengthBytes, ibv.IBV_ACCESS_REMOTE_READ);
  memory.protect(address, mappedBytes, 'readWrite');
  memory.write(address, laterBytes(stage.node, number, lengthBytes));
  return mr;
}

const regionsTopic = topic<readonly Reach[]>('regions');

async function mover(stage: Stage<Args>): Promise<void> {
  const { memory, node } = stage;
  const { seed, inlines, inlineBytesMax, regions: plans, readOnly } = stage.args;
  const random = new Random(seed, `mover ${node}`);
  const cap = { maxSendWr: 16, maxSendSge: 3, maxInlineData: inlineBytesMax };
  const side = await connect(stage, { areaBytes: Math.max(1, inlines.length) * slotBytes, cap });
  const regions: Region[] = [];
  for (const [number, plan] of plans.entries()) regions.push(await place(side, plan, number, random));
  const mrs = regions.map(({ mr }) => mr);
  for (const [number, length] of readOnly.entries()) mrs.push(await placeReadOnly(side, length, number));
  const own = mrs.map(({ addr, rkey }) => ({ address: addr, rkey }));
  const there = await stage.swap(regionsTopic, own);
  for (const [number, region] of regions.entries()) await move(side, number, region, there[number]!, random);
  for (const [number, lengthBytes] of readOnly.entries()) {
    const area = await side.device.buffer(lengthBytes);
    const from = side.with({ area, peer: there[regions.length + number]! });
    from.post(number, READ, { lengthBytes });
    await side.expectWell(1);
    from.expect(`region ${number} that was read-only`, 0, laterBytes(1 - node, number, lengthBytes));
    await side.device.deregister(area.region);
  }
  const loose = memory.map(16 * pageBytes);
  touchInBlocks(stage, loose, 16, 1, random);
  for (const [number, lengthBytes] of inlines.entries()) {
    const addr = loose + pageBytes * (1 + random.below(15)) - random.below(lengthBytes + 1);
    memory.write(addr, inlineBytes(node, number, lengthBytes));
    const span = { lengthBytes, remoteOffset: number * slotBytes, flags: ibv.IBV_SEND_INLINE };
    const request = {
      ...side.request(number, WRITE, span),
      sgList: [{ addr, length: lengthBytes, lkey: 0 }],
    };
    const errno = ibv.postSend(side.qp, request);
    if (errno !== 0) stage.accuse(`inline of ${lengthBytes} bytes refused with ${errno}`);
    // From here on the program owns the buffer again.
    memory.write(addr, new Uint8Array(lengthBytes));
    await side.expectWell(1);
  }
  await stage.meet('moved');
  await stage.sleepUs(100);
  for (const [number, region] of regions.entries()) expectRegion(stage, number, region);
  for (const [number, length] of inlines.entries())
    side.expect(`inline ${number} as it came`, number * slotBytes, inlineBytes(1 - node, number, length));
  await stage.meet('looked');
}

/** Every byte of the mapping, margins included. */
function expectRegion(
  stage: Stage<Args>,
  number: number,
  { thirdBytes, mapped, mappedBytes, mr }: Region,
): void {
  const due = patternOf(marginPattern, mappedBytes);
  const fromPeer = ownBytes(1 - stage.node, number, thirdBytes);
  const at = mr.addr - mapped;
  for (const [third, bytes] of [ownBytes(stage.node, number, thirdBytes), fromPeer, fromPeer].entries())
    due.set(bytes, at + third * thirdBytes);
  stage.expectAt(`region ${number} at ${at} of its mapping, in thirds of ${thirdBytes}`, mapped, due);
}

export const framesOutOfOrder = scene({
  about: 'regions and inline data over pages whose frames lie anywhere',
  draw,
  programs: [mover, mover],
});
