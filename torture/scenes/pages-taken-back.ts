/**
 * The kernel changes under the IOMMU what a device may do with pages of a region: takes one from it, makes one read-only, gives
 * one back. What the device has cached of the page does not matter: from the call's return on it keeps to the tables.
 *
 *     asker: WRITE to every page ─► owner: unmap, or read-only, or map again ─► asker: WRITE again ─► owner: which bytes are new?
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE } from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf, type Side } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

/** What the device may do with a page. */
type Rights = 'write' | 'read' | 'none';

interface Args {
  readonly pageCount: number;
  /** Each round changes the rights of some pages, and the asker writes to all of them. */
  readonly rounds: readonly (readonly (readonly [page: number, rights: Rights])[])[];
  readonly lengthBytes: number;
}

const pageBytes = 4096;
const settlingPs = 200 * psPerUs;

function draw(random: Random): SceneDraft {
  const pageCount = 1 + random.below(6);
  const all: readonly Rights[] = ['write', 'read', 'none'];
  const args: Args = {
    pageCount,
    rounds: Array.from({ length: 1 + random.below(4) }, () =>
      Array.from(
        { length: 1 + random.below(3) },
        () => [random.below(pageCount), all[random.below(3)]!] as const,
      ),
    ),
    lengthBytes: 1 + random.below(pageBytes),
  };
  const entries = 2 ** (2 + random.below(8));
  return {
    args: args as unknown as JsonValue,
    set: {
      'pcie.iommu.isEnabled': true,
      'pcie.iommu.iotlbEntries': entries,
      'pcie.iommu.iotlbWays': 2 ** random.below(3),
      ...(random.chance(0.3) ? { 'pcie.iommu.walkLevelNs': random.below(2000) } : {}),
      ...(random.chance(0.3) ? { 'pcie.rootComplex.writeLatencyPs': 0 } : {}),
    },
    hasDrawnHardware: random.chance(0.2),
    climate: 'flawed',
    // The linter reports refused accesses, with their instants.
    ...(random.chance(0.4)
      ? {
          again: {
            partition: 'single' as const,
            shuffleSeed: undefined,
            epochPs: Math.round((10 + 200 * random.unit()) * psPerUs),
          },
        }
      : {}),
  };
}

const connectSides = (program: ProgramContext, { pageCount }: Args): Promise<Side> =>
  connectWithPeer(program, { areaBytes: pageCount * pageBytes });

/** Rights of all pages after each round, the first before any. */
function rightsByRound({ pageCount, rounds }: Args): Rights[][] {
  const byRound: Rights[][] = [Array.from({ length: pageCount }, () => 'write')];
  for (const changes of rounds) {
    const rights = [...byRound.at(-1)!];
    for (const [page, right] of changes) rights[page] = right;
    byRound.push(rights);
  }
  return byRound;
}

/** Byte with which the asker fills all pages in a round. */
const byteOf = (round: number): number => 0x10 + round;

/** Writes to all pages in each round, and reads one that it may not read at the end. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectSides(program, args);
  const byRound = rightsByRound(args);
  const wrong: string[] = [];
  for (const round of byRound.keys()) {
    await barrier(program, `changed ${round}`);
    program.memory.write(side.area.address, new Uint8Array(side.area.lengthBytes).fill(byteOf(round)));
    for (let page = 0; page < args.pageCount; page++)
      post(
        side.qps[0]!,
        requestOf(side, page, IBV_WR_RDMA_WRITE, {
          offset: page * pageBytes,
          lengthBytes: args.lengthBytes,
        }),
      );
    // The device is not notified of a write that is refused on the way to memory.
    wrong.push(...failuresOf(await completionsOf(side, args.pageCount)));
    await barrier(program, `written ${round}`);
  }
  for (const page of byRound.at(-1)!.keys()) {
    const isReadable = byRound.at(-1)![page] !== 'none';
    const range = { offset: page * pageBytes, lengthBytes: args.lengthBytes };
    post(side.qps[0]!, requestOf(side, page, IBV_WR_RDMA_READ, range));
    const [ended] = await completionsOf(side, 1);
    if (ended === undefined) wrong.push(`the READ of page ${page} did not end`);
    else if (ended.status === 0 && !isReadable) wrong.push(`page ${page} was read without the right to it`);
    else if (ended.status !== 0 && isReadable)
      wrong.push(`page ${page} could not be read: status ${ended.status}`);
    if (!isReadable) break;
  }
  await barrier(program, 'over');
  await leave(side);
  return wrong;
}

/** Has the kernel change rights, and looks at what was written. */
export async function owner(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { host, memory, process, cpu } = program;
  const side = await connectSides(program, args);
  const byRound = rightsByRound(args);
  const domain = host.iommu!;
  const wrong: string[] = [];
  const physicalOf = (page: number): number =>
    process.memory.space.translate(side.area.address + page * pageBytes);
  const change = (page: number, before: Rights, after: Rights): void => {
    const physical = physicalOf(page);
    // Granted again before the old right is withdrawn, as a kernel does when it changes rights.
    if (after !== 'none') domain.map(physical, after === 'write');
    if (before !== 'none') domain.unmap([physical], before === 'write');
  };
  const expected = Array.from({ length: args.pageCount }, () => 0);
  let rights = byRound[0]!;
  const become = (next: readonly Rights[]): void => {
    for (const [page, right] of next.entries())
      if (right !== rights[page]) change(page, rights[page]!, right);
    rights = [...next];
  };
  for (const [round, next] of byRound.entries()) {
    become(next);
    await cpu.settle();
    await barrier(program, `changed ${round}`);
    await barrier(program, `written ${round}`);
    await cpu.sleep(settlingPs);
    for (const [page, right] of rights.entries()) {
      if (right === 'write') expected[page] = byteOf(round);
      const bytes = memory.read(side.area.address + page * pageBytes, args.lengthBytes);
      const at = bytes.findIndex((byte) => byte !== expected[page]);
      if (at >= 0)
        wrong.push(
          `round ${round}: byte ${at} of page ${page}, which the device may ${right}, is ${bytes[at]}, and not ${expected[page]}`,
        );
    }
  }
  await barrier(program, 'over');
  become(byRound[0]!);
  await cpu.settle();
  await leave(side);
  return wrong;
}

export const pagesTakenBack: Scene = {
  name: 'pages-taken-back',
  about: 'the kernel takes pages from a device under the IOMMU, or makes them read-only, and gives them back',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'asker' },
    { node: 1, exportName: 'owner' },
  ],
  draw,
  breaksRules: ['dma-outside'],
  hasRefusedReads: true,
  judge: ({ results }) =>
    results.flatMap((wrong, number) => (wrong as string[]).map((what) => `program ${number}: ${what}`)),
};
