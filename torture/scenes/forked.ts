/**
 * A process forks while its device works in pinned memory: the device keeps the parent's frames, the child has the contents of the fork and no
 * later ones, and no other process sees the child's writes (fork(2); madvise(2), MADV_DONTFORK; Linux 5.12: copy_page_range copies pages that
 * may be pinned).
 *
 *     area of the parent:  source (the peer gets it) | sink (the peer writes it) | quiet
 */

import { createBuffer, openEndpoint } from '../../experiments/workloads/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { connect, differencesOf, patternOf, psPerNs, READ, scene, WRITE } from './language/index.ts';

/** Numbers of patterns. */
const [atFork, ofParent, ofChild, ofPeer, lastOfPeer, ordinary] = [1, 2, 3, 4, 100, 200] as const;

function draw(random: Draws) {
  const args = {
    // Bytes of each third of the area.
    partBytes: 1 + random.below(5 * 4096),
    // Rounds of the peer, some before and some after the fork.
    rounds: random.below(6),
    forkNs: random.below(40_000),
    childNs: random.below(400_000),
    // The area is kept from the child.
    isDontFork: random.chance(0.2),
    // The child registers memory at a device that it opens itself.
    opensDevice: random.chance(0.3),
    isKilled: random.chance(0.2),
  };
  const set = random.maybe(0.3, () => ({ 'host.memory.framePlacement': 'scattered' }));
  return { args, set, hasDrawnHardware: random.chance(0.4) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Forks, and continues with its device. */
async function parent(stage: Stage<Args>): Promise<void> {
  const { memory, cpu, args } = stage;
  const { partBytes, isDontFork, forkNs, isKilled } = args;
  const areaBytes = 3 * partBytes;
  const side = await connect(stage, { areaBytes });
  const { address } = side.area;
  const before = patternOf(atFork, areaBytes);
  side.fill(before);
  const plain = memory.map(2 * partBytes);
  memory.write(plain, patternOf(ordinary, partBytes));
  if (isDontFork) memory.advise(address, Math.ceil(areaBytes / 4096) * 4096, 'dontFork');
  await stage.meet('filled');
  await stage.sleepNs(forkNs);
  const child = stage.context.fork(`child of ${stage.node}`, (context) =>
    live(context, args, { area: address, plain }, stage.wrong),
  );
  if (child === 'ENOMEM') return stage.accuse('fork: ENOMEM');
  await cpu.settle();
  side.fill(patternOf(ofParent, partBytes));
  memory.write(plain, patternOf(ofParent, 2 * partBytes));
  side.post(0, WRITE, { lengthBytes: partBytes });
  // The ACK does not wait for the last bytes to be in memory; a READ after them does.
  side.post(1, READ, { lengthBytes: 1 });
  await side.expectWell(2);
  await stage.meet('forked');
  await stage.meet('written');
  if (isKilled) child.kill('no longer wanted');
  while (!child.isEnded) await stage.sleepUs(10);
  side.expect('source of the parent', 0, patternOf(ofParent, partBytes));
  side.expect('sink of the parent', partBytes, patternOf(lastOfPeer, partBytes));
  side.expect('quiet part of the parent', 2 * partBytes, before.subarray(2 * partBytes));
  stage.expectAt('unpinned memory of the parent', plain, patternOf(ofParent, 2 * partBytes));
}

async function live(
  program: ProgramContext,
  { partBytes, childNs, isDontFork, opensDevice }: Args,
  at: { readonly area: number; readonly plain: number },
  wrong: string[],
): Promise<void> {
  const { memory, cpu } = program;
  await cpu.sleep(childNs * psPerNs);
  const lookAndWrite = (what: string, address: number, due: Uint8Array): void => {
    wrong.push(...differencesOf(`${what} of the child`, memory.read(address, due.length), due));
    const own = patternOf(ofChild, due.length);
    memory.write(address, own);
    wrong.push(...differencesOf(`${what} that the child wrote`, memory.read(address, due.length), own));
  };
  const before = patternOf(atFork, 3 * partBytes);
  lookAndWrite('unpinned memory', at.plain, patternOf(ordinary, partBytes));
  lookAndWrite('untouched memory', at.plain + partBytes, new Uint8Array(partBytes));
  if (!isDontFork) {
    lookAndWrite('source', at.area, before.subarray(0, partBytes));
    lookAndWrite('quiet part', at.area + 2 * partBytes, before.subarray(2 * partBytes));
    // The peer was writing there at the fork: anything may have been copied.
    memory.write(at.area + partBytes, patternOf(ofChild, partBytes));
  } else if (memory.process.space.isMapped(at.area, 1))
    wrong.push('the child has memory that was advised MADV_DONTFORK');
  if (opensDevice) await createBuffer(await openEndpoint(program), partBytes);
  await cpu.sleep(childNs * psPerNs);
}

/** Writes to the sink and reads from the quiet part, all the time. */
async function peer(stage: Stage<Args>): Promise<void> {
  const { partBytes, rounds } = stage.args;
  const side = await connect(stage, { areaBytes: 3 * partBytes });
  await stage.meet('filled');
  for (let round = 0; round < rounds; round++) await writeAndRead(side, partBytes, ofPeer + round);
  await stage.meet('forked');
  const due = patternOf(ofParent, partBytes);
  side.expect('what the parent wrote after the fork', 0, due);
  side.post(0, READ, { lengthBytes: partBytes });
  await side.expectWell(1);
  side.expect('what was read of the parent after the fork', 0, due);
  await writeAndRead(side, partBytes, lastOfPeer);
  await stage.meet('written');
}

async function writeAndRead(side: Side, partBytes: number, number: number): Promise<void> {
  side.fill(patternOf(number, partBytes), partBytes);
  side.post(1, WRITE, { offset: partBytes, lengthBytes: partBytes });
  side.post(2, READ, { offset: 2 * partBytes, lengthBytes: partBytes });
  await side.expectWell(2);
  const before = patternOf(atFork, 3 * partBytes);
  side.expect('quiet part as read', 2 * partBytes, before.subarray(2 * partBytes));
}

export const forked = scene({
  about: 'a process forks while its device works in pinned memory, and both write',
  draw,
  programs: [parent, peer],
});
