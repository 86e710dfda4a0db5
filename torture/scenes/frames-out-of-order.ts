/**
 * Memory whose pages lie anywhere: touched in another order than they are mapped in, on a machine that hands out frames one
 * after another or at random. Regions over it are translated by pages as large as they fit, or smaller ones, and inline data
 * are gathered over page ends: whatever lies next to what, each byte goes where its address says (IBTA 10.6.3).
 *
 *     each region, in thirds:   own bytes, which the peer reads | the peer's WRITE | what the own READ brings
 */
import { psPerUs } from '../../base/index.ts';
import { allAccess, barrier, createBuffer } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { Random } from '../../sim/index.ts';
import {
  deregMr,
  IBV_ACCESS_REMOTE_READ,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvMr,
  type IbvSendWr,
  type IbvSge,
  regMr,
} from '../../userlib/index.ts';
import {
  completionsOf,
  connectWithPeer,
  failuresOf,
  leave,
  type PeerSide,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly seed: number;
  readonly regions: readonly RegionPlan[];
  readonly inlines: readonly number[];
  readonly inlineBytesMax: number;
  /** Lengths of regions that the process may only read when they are registered, and writes later. */
  readonly readOnly: readonly number[];
}

interface RegionPlan {
  /** Pages mapped in front of the region and behind it: they stay as they are. */
  readonly marginPages: number;
  /** Of its first byte in its first page. */
  readonly offset: number;
  readonly thirdBytes: number;
  /** Pages that are touched in order; such blocks come in any order. */
  readonly blockPages: number;
  /** Frames that go to others before the first page. */
  readonly skippedFrames: number;
  readonly isHuge: boolean;
}

interface Region {
  readonly plan: RegionPlan;
  readonly number: number;
  readonly mapped: number;
  readonly mappedBytes: number;
  readonly address: number;
  readonly mr: IbvMr;
}

const pageBytes = 4096;
const hugePageBytes = 2 ** 21;
const slotBytes = 1024;
const marginPattern = 77;

function draw(random: Random): SceneDraft {
  const inlineBytesMax = 16 + random.below(240);
  const isScattered = random.chance(0.5);
  const args: Args = {
    seed: random.below(1 << 30),
    regions: Array.from({ length: 2 + random.below(14) }, () => drawRegion(random, isScattered)),
    inlines: Array.from({ length: random.below(8) }, () => 1 + random.below(inlineBytesMax)),
    inlineBytesMax,
    readOnly: Array.from({ length: random.below(4) }, () => 1 + random.below(3 * pageBytes)),
  };
  return {
    args: args as never,
    set: { 'host.memory.framePlacement': isScattered ? 'scattered' : 'contiguous' },
    hasDrawnHardware: random.chance(0.4),
  };
}

function drawRegion(random: Random, isScattered: boolean): RegionPlan {
  // Where frames are scattered 512 in a row are hard to find.
  const isHuge = !isScattered && random.chance(0.03);
  const pages = random.chance(0.6) ? 2 + random.below(4) : 1 + random.below(24);
  return {
    marginPages: random.below(4),
    offset: random.chance(0.5) ? 0 : random.below(pageBytes),
    thirdBytes: Math.max(1, Math.floor((pages * pageBytes) / 3) - random.below(100)),
    blockPages: 2 ** random.below(4),
    skippedFrames: random.below(5),
    isHuge,
  };
}

const ownPattern = (node: number, number: number): number => 1000 * (node + 1) + number;
const readOnlyPattern = (node: number, number: number): number => 9000 * (node + 1) + number;
const inlinePattern = (node: number, number: number): number => 5000 * (node + 1) + number;

/** Maps the memory of a region, has its pages get frames in the drawn order, and registers it. */
async function place(side: Side, plan: RegionPlan, number: number, random: Random): Promise<Region> {
  const { program, pd } = side.endpoint;
  const { memory } = program;
  const { marginPages, offset, thirdBytes, blockPages, isHuge } = plan;
  const skipped = memory.map((1 + plan.skippedFrames) * pageBytes);
  for (let page = 0; page < plan.skippedFrames; page++)
    memory.write(skipped + page * pageBytes, Uint8Array.of(1));
  const inner = Math.ceil((offset + 3 * thirdBytes) / pageBytes);
  const mappedBytes = isHuge ? 2 * hugePageBytes : (inner + 2 * marginPages) * pageBytes;
  const mapped = memory.map(mappedBytes, isHuge ? { pageSize: hugePageBytes } : {});
  // In huge pages the region lies over their border.
  const first = isHuge ? hugePageBytes - pageBytes * Math.ceil(inner / 2) : marginPages * pageBytes;
  if (!isHuge) touchInBlocks(program, mapped, mappedBytes / pageBytes, blockPages, random);
  const address = mapped + first + offset;
  memory.write(mapped, patternOf(marginPattern, mappedBytes));
  memory.write(address, patternOf(ownPattern(program.node, number), thirdBytes));
  const mr = await regMr(pd, address, 3 * thirdBytes, allAccess);
  return { plan, number, mapped, mappedBytes, address, mr };
}

/** Touches the pages block by block, the blocks in any order. */
function touchInBlocks(
  { memory }: ProgramContext,
  address: number,
  pageCount: number,
  blockPages: number,
  random: Random,
): void {
  const blocks = Array.from({ length: Math.ceil(pageCount / blockPages) }, (_, block) => block);
  for (let left = blocks.length; left > 1; left--) {
    const taken = random.below(left);
    [blocks[left - 1], blocks[taken]] = [blocks[taken]!, blocks[left - 1]!];
  }
  for (const block of blocks)
    for (let page = block * blockPages; page < Math.min(pageCount, (block + 1) * blockPages); page++)
      memory.write(address + page * pageBytes, Uint8Array.of(1));
}

/** Buffers of a length cut into up to three. */
function cut(address: number, lengthBytes: number, lkey: number, random: Random): IbvSge[] {
  const edges = [0, random.below(lengthBytes + 1), random.below(lengthBytes + 1), lengthBytes];
  edges.sort((left, right) => left - right);
  return edges.slice(1).flatMap((end, index) => {
    const length = end - edges[index]!;
    return length === 0 ? [] : [{ addr: address + edges[index]!, length, lkey }];
  });
}

function moveOf(region: Region, there: PeerSide, opcode: number, random: Random): IbvSendWr {
  const { thirdBytes } = region.plan;
  const isRead = opcode === IBV_WR_RDMA_READ;
  const sgList = cut(region.address + (isRead ? 2 * thirdBytes : 0), thirdBytes, region.mr.lkey, random);
  const remoteAddr = there.address + (isRead ? 0 : thirdBytes);
  return {
    wrId: region.number,
    sgList,
    numSge: sgList.length,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr, rkey: there.rkey } },
  };
}

/**
 * Memory that is new, or was only read, and may not be written when it is registered: it is the process's own from then on, so
 * that the device finds what is written later, when it may be (Linux: gup_must_unshare).
 */
async function placeReadOnly(side: Side, lengthBytes: number, number: number): Promise<IbvMr> {
  const { program, pd } = side.endpoint;
  const { memory } = program;
  const mappedBytes = Math.ceil(lengthBytes / pageBytes) * pageBytes;
  const address = memory.map(mappedBytes);
  if (number % 2 === 0) memory.read(address, lengthBytes);
  memory.protect(address, mappedBytes, 'read');
  const mr = await regMr(pd, address, lengthBytes, IBV_ACCESS_REMOTE_READ);
  memory.protect(address, mappedBytes, 'readWrite');
  memory.write(address, patternOf(readOnlyPattern(program.node, number), lengthBytes));
  return mr;
}

/** Both hosts do the same to each other. */
export async function mover(program: ProgramContext): Promise<JsonValue> {
  const { memory, node } = program;
  const args = program.args as unknown as Args;
  const random = new Random(args.seed, `mover ${node}`);
  const { inlines, inlineBytesMax } = args;
  const side = await connectWithPeer(program, {
    areaBytes: Math.max(1, inlines.length) * slotBytes,
    cap: { maxSendWr: 16, maxSendSge: 3, maxInlineData: inlineBytesMax },
  });
  const regions: Region[] = [];
  for (const [number, plan] of args.regions.entries()) regions.push(await place(side, plan, number, random));
  const mrs: IbvMr[] = [];
  for (const [number, lengthBytes] of args.readOnly.entries())
    mrs.push(await placeReadOnly(side, lengthBytes, number));
  const told = [...regions.map(({ mr }) => mr), ...mrs].map(({ addr, rkey }) => ({ address: addr, rkey }));
  await program.exchange.put('regions', told as unknown as JsonValue);
  const there = (await program.exchange.take('regions')) as unknown as PeerSide[];
  const wrong: string[] = [];
  for (const region of regions) {
    const opcodes = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ];
    for (const opcode of opcodes) post(side.qps[0]!, moveOf(region, there[region.number]!, opcode, random));
    wrong.push(...failuresOf(await completionsOf(side, opcodes.length)));
  }
  for (const [number, lengthBytes] of args.readOnly.entries()) {
    const target = await createBuffer(side.endpoint, lengthBytes);
    const from = { ...side, area: target, peer: there[regions.length + number]! };
    post(side.qps[0]!, requestOf(from, number, IBV_WR_RDMA_READ, { offset: 0, lengthBytes }));
    wrong.push(
      ...failuresOf(await completionsOf(side, 1)),
      ...differencesOf(
        `region ${number} that was read-only`,
        memory.read(target.address, lengthBytes),
        patternOf(readOnlyPattern(1 - node, number), lengthBytes),
      ),
    );
    await deregMr(target.region);
  }
  const loose = memory.map(16 * pageBytes);
  touchInBlocks(program, loose, 16, 1, random);
  for (const [number, lengthBytes] of inlines.entries()) {
    const addr = loose + pageBytes * (1 + random.below(15)) - random.below(lengthBytes + 1);
    memory.write(addr, patternOf(inlinePattern(node, number), lengthBytes));
    const request: IbvSendWr = {
      wrId: number,
      sgList: [{ addr, length: lengthBytes, lkey: 0 }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED | IBV_SEND_INLINE,
      wr: { rdma: { remoteAddr: side.peer.address + number * slotBytes, rkey: side.peer.rkey } },
    };
    const errno = post(side.qps[0]!, request);
    if (errno !== 0) wrong.push(`inline of ${lengthBytes} bytes refused with ${errno}`);
    // From here on the buffer is the program's again.
    memory.write(addr, new Uint8Array(lengthBytes));
    wrong.push(...failuresOf(await completionsOf(side, 1)));
  }
  await barrier(program, 'moved');
  await program.cpu.sleep(100 * psPerUs);
  for (const region of regions) wrong.push(...lookAt(program, region));
  for (const [number, lengthBytes] of inlines.entries())
    wrong.push(
      ...differencesOf(
        `inline ${number} as it came`,
        memory.read(side.area.address + number * slotBytes, lengthBytes),
        patternOf(inlinePattern(1 - node, number), lengthBytes),
      ),
    );
  await barrier(program, 'looked');
  for (const mr of [...regions.map((region) => region.mr), ...mrs]) await deregMr(mr);
  await leave(side);
  return { wrong };
}

/** Every byte of the mapping, margins included. */
function lookAt({ memory, node }: ProgramContext, region: Region): string[] {
  const { plan, number, mapped, mappedBytes, address } = region;
  const { thirdBytes } = plan;
  const expected = patternOf(marginPattern, mappedBytes);
  const fromPeer = patternOf(ownPattern(1 - node, number), thirdBytes);
  const at = address - mapped;
  expected.set(patternOf(ownPattern(node, number), thirdBytes), at);
  expected.set(fromPeer, at + thirdBytes);
  expected.set(fromPeer, at + 2 * thirdBytes);
  return differencesOf(
    `region ${number} at ${at} of its mapping, in thirds of ${thirdBytes}`,
    memory.read(mapped, mappedBytes),
    expected,
  );
}

export const framesOutOfOrder: Scene = {
  name: 'frames-out-of-order',
  about: 'regions and inline data over pages whose frames lie anywhere',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'mover' },
    { node: 1, exportName: 'mover' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
