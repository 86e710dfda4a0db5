/**
 * Under the IOMMU the kernel changes the device's rights to pages of a region: it unmaps one, makes one read-only, maps one again. From the call's
 * return on the device follows the tables, whatever it has cached.
 *
 *     asker: WRITE to every page ─► owner: unmap, or read-only, or map again ─► asker: WRITE again ─► owner: which bytes are new?
 */
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { connect, filled, psPerUs, READ, scene, times, WRITE } from './language/index.ts';

/** Rights of the device to a page. */
const rightsOfPages = ['write', 'read', 'none'] as const;
type Rights = (typeof rightsOfPages)[number];

const pageBytes = 4096;

function draw(random: Draws) {
  const pageCount = 1 + random.below(6);
  // Each round changes the rights of some pages, and the asker writes to all of them.
  const rounds = times(1 + random.below(4), () =>
    times(1 + random.below(3), () => [random.below(pageCount), random.oneOf(rightsOfPages)] as const),
  );
  const args = { pageCount, rounds, lengthBytes: 1 + random.below(pageBytes) };
  const set = {
    'pcie.iommu.isEnabled': true,
    'pcie.iommu.iotlbEntries': 2 ** (2 + random.below(8)),
    'pcie.iommu.iotlbWays': 2 ** random.below(3),
    ...random.maybe(0.3, () => ({ 'pcie.iommu.walkLevelNs': random.below(2000) })),
    ...random.maybe(0.3, () => ({ 'pcie.rootComplex.writeLatencyPs': 0 })),
  };
  const hasDrawnHardware = random.chance(0.2);
  // The linter reports refused accesses, with their instants.
  const again = random.chance(0.4) && {
    partition: 'single' as const,
    shuffleSeed: undefined,
    epochPs: Math.round((10 + 200 * random.unit()) * psPerUs),
  };
  return {
    args,
    set,
    hasDrawnHardware,
    climate: 'flawed',
    ...(again ? { again } : {}),
  } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const open = (stage: Stage<Args>): Promise<Side> =>
  connect(stage, { areaBytes: stage.args.pageCount * pageBytes });

/** Rights of all pages after each round, the first before any. */
function rightsByRound({ pageCount, rounds }: Args): Rights[][] {
  const byRound = [times(pageCount, (): Rights => 'write')];
  for (const changes of rounds) {
    const rights = [...byRound.at(-1)!];
    for (const [page, right] of changes) rights[page] = right;
    byRound.push(rights);
  }
  return byRound;
}

/** Byte with which the asker fills all pages in a round. */
const byteOf = (round: number): number => 0x10 + round;

/** Writes to all pages in each round, and reads up to one that it may not read at the end. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { pageCount, lengthBytes } = stage.args;
  const side = await open(stage);
  const byRound = rightsByRound(stage.args);
  for (const round of byRound.keys()) {
    await stage.meet('changed');
    side.fill(filled(side.area.lengthBytes, byteOf(round)));
    for (let page = 0; page < pageCount; page++)
      side.post(page, WRITE, { offset: page * pageBytes, lengthBytes });
    // The device is not notified of a write that is refused on the way to memory.
    await side.expectWell(pageCount);
    await stage.meet('written');
  }
  for (const [page, right] of byRound.at(-1)!.entries()) {
    side.post(page, READ, { offset: page * pageBytes, lengthBytes });
    const status = (await side.next())?.status;
    if ((status === 'SUCCESS') !== (right !== 'none') || status === undefined)
      stage.accuse(`the READ of page ${page}, with the right to ${right}, ended in ${status}`);
    if (right === 'none') break;
  }
  await stage.meet('over');
}

/** Lets the kernel change rights, and checks the written bytes. */
async function owner(stage: Stage<Args>): Promise<void> {
  const { context, memory, cpu, args } = stage;
  const side = await open(stage);
  const byRound = rightsByRound(args);
  const domain = context.host.iommu!;
  let rights = byRound[0]!;
  const become = (next: readonly Rights[]): void => {
    for (const [page, right] of next.entries()) {
      const before = rights[page]!;
      if (right === before) continue;
      const physical = memory.process.space.translate(side.area.address + page * pageBytes);
      // Granted again before the old right is withdrawn, as a kernel does when it changes rights.
      if (right !== 'none') domain.map(physical, right === 'write');
      if (before !== 'none') domain.unmap([physical], before === 'write');
    }
    rights = [...next];
  };
  const held = rights.map(() => 0);
  for (const [round, next] of byRound.entries()) {
    become(next);
    await cpu.settle();
    await stage.meet('changed');
    await stage.meet('written');
    await stage.sleepUs(200);
    for (const [page, right] of rights.entries()) {
      if (right === 'write') held[page] = byteOf(round);
      const what = `round ${round}: page ${page}, which the device may ${right}`;
      side.expect(what, page * pageBytes, filled(args.lengthBytes, held[page]!));
    }
  }
  await stage.meet('over');
  become(byRound[0]!);
  await cpu.settle();
}

export const pagesTakenBack = scene({
  about: 'the kernel takes pages from a device under the IOMMU, or makes them read-only, and gives them back',
  breaksRules: ['dma-outside'],
  hasRefusedReads: true,
  draw,
  programs: [asker, owner],
});
