/**
 * A process forks while its device works in pinned memory: the device stays in the parent's frames, the child has what was there
 * at the fork and nothing that comes later, and no other process sees what the child writes (fork(2); madvise(2), MADV_DONTFORK;
 * Linux 5.12: copy_page_range copies pages that may be pinned).
 *
 *     area of the parent:  source (the peer gets it) | sink (the peer writes it) | quiet
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier, createBuffer, openEndpoint } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE } from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf, type Side } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** Of each third of the area. */
  readonly partBytes: number;
  /** Rounds of the peer, some before and some after the fork. */
  readonly rounds: number;
  readonly forkNs: number;
  readonly childNs: number;
  /** The area is kept from the child. */
  readonly isDontFork: boolean;
  /** The child registers memory at a device that it opens itself. */
  readonly opensDevice: boolean;
  readonly isKilled: boolean;
}

/** Numbers of patterns. */
const [atFork, ofParent, ofChild, ofPeer, lastOfPeer, ordinary] = [1, 2, 3, 4, 100, 200];

function draw(random: Random): SceneDraft {
  const args: Args = {
    partBytes: 1 + random.below(5 * 4096),
    rounds: random.below(6),
    forkNs: random.below(40_000),
    childNs: random.below(400_000),
    isDontFork: random.chance(0.2),
    opensDevice: random.chance(0.3),
    isKilled: random.chance(0.2),
  };
  return {
    args: { ...args },
    set: random.chance(0.3) ? { 'host.memory.framePlacement': 'scattered' } : {},
    hasDrawnHardware: random.chance(0.4),
  };
}

/** Of three parts of an area. */
const offsetOf = ({ partBytes }: Args, part: number): number => part * partBytes;

/** Forks, and goes on with its device. */
export async function parent(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const args = program.args as unknown as Args;
  const { partBytes } = args;
  const side = await connectWithPeer(program, { areaBytes: 3 * partBytes });
  const { area } = side;
  memory.write(area.address, patternOf(atFork, 3 * partBytes));
  const plain = memory.map(2 * partBytes);
  memory.write(plain, patternOf(ordinary, partBytes));
  if (args.isDontFork) memory.advise(area.address, Math.ceil((3 * partBytes) / 4096) * 4096, 'dontFork');
  await barrier(program, 'filled');
  await cpu.sleep(args.forkNs * psPerNs);
  const inChild: string[] = [];
  const forked = program.fork(`child of ${program.node}`, (context) =>
    childOf(context, args, { area: area.address, plain }, inChild),
  );
  if (forked === 'ENOMEM') return { wrong: ['fork: ENOMEM'] };
  await cpu.settle();
  memory.write(area.address, patternOf(ofParent, partBytes));
  memory.write(plain, patternOf(ofParent, 2 * partBytes));
  const wrong: string[] = [];
  const transfer = { offset: 0, lengthBytes: partBytes };
  post(side.qps[0]!, requestOf(side, 0, IBV_WR_RDMA_WRITE, transfer));
  // The ACK does not wait for the last bytes to be in memory; a READ after them does.
  post(side.qps[0]!, requestOf(side, 1, IBV_WR_RDMA_READ, { offset: 0, lengthBytes: 1 }));
  wrong.push(...failuresOf(await completionsOf(side, 2)));
  await barrier(program, 'forked');
  await barrier(program, 'written');
  if (args.isKilled) forked.kill('no longer wanted');
  while (!forked.isEnded) await cpu.sleep(10 * psPerUs);
  const seen = (part: number): Uint8Array => memory.read(area.address + offsetOf(args, part), partBytes);
  const before = patternOf(atFork, 3 * partBytes);
  wrong.push(
    ...differencesOf('source of the parent', seen(0), patternOf(ofParent, partBytes)),
    ...differencesOf('sink of the parent', seen(1), patternOf(lastOfPeer, partBytes)),
    ...differencesOf('quiet part of the parent', seen(2), before.subarray(2 * partBytes)),
    ...differencesOf(
      'unpinned memory of the parent',
      memory.read(plain, 2 * partBytes),
      patternOf(ofParent, 2 * partBytes),
    ),
    ...inChild,
  );
  await leave(side);
  return { wrong };
}

async function childOf(
  program: ProgramContext,
  args: Args,
  at: { readonly area: number; readonly plain: number },
  wrong: string[],
): Promise<void> {
  const { memory, cpu } = program;
  const { partBytes } = args;
  await cpu.sleep(args.childNs * psPerNs);
  const before = patternOf(atFork, 3 * partBytes);
  const lookAndWrite = (what: string, address: number, expected: Uint8Array, number: number): void => {
    const isZero = expected.length === 0;
    const lengthBytes = isZero ? partBytes : expected.length;
    const wanted = isZero ? new Uint8Array(lengthBytes) : expected;
    wrong.push(...differencesOf(`${what} of the child`, memory.read(address, lengthBytes), wanted));
    memory.write(address, patternOf(number, lengthBytes));
    wrong.push(
      ...differencesOf(
        `${what} that the child wrote`,
        memory.read(address, lengthBytes),
        patternOf(number, lengthBytes),
      ),
    );
  };
  lookAndWrite('unpinned memory', at.plain, patternOf(ordinary, partBytes), ofChild);
  lookAndWrite('untouched memory', at.plain + partBytes, new Uint8Array(0), ofChild);
  if (args.isDontFork) {
    if (isReadable(program, at.area)) wrong.push('the child has memory that was advised MADV_DONTFORK');
  } else {
    lookAndWrite('source', at.area, before.subarray(0, partBytes), ofChild);
    lookAndWrite('quiet part', at.area + offsetOf(args, 2), before.subarray(2 * partBytes), ofChild);
    // The peer was writing there at the fork: anything may have been copied.
    memory.write(at.area + offsetOf(args, 1), patternOf(ofChild, partBytes));
  }
  if (args.opensDevice) {
    const endpoint = await openEndpoint(program);
    await createBuffer(endpoint, partBytes);
  }
  await cpu.sleep(args.childNs * psPerNs);
}

function isReadable({ memory }: ProgramContext, address: number): boolean {
  return memory.process.space.isMapped(address, 1);
}

/** Writes to the sink and reads from the quiet part, all the time. */
export async function peer(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const args = program.args as unknown as Args;
  const { partBytes, rounds } = args;
  const side = await connectWithPeer(program, { areaBytes: 3 * partBytes });
  await barrier(program, 'filled');
  const wrong: string[] = [];
  for (let round = 0; round < rounds; round++) wrong.push(...(await exchange(side, args, ofPeer + round)));
  await barrier(program, 'forked');
  wrong.push(
    ...differencesOf(
      'what the parent wrote after the fork',
      memory.read(side.area.address, partBytes),
      patternOf(ofParent, partBytes),
    ),
  );
  post(side.qps[0]!, requestOf(side, 0, IBV_WR_RDMA_READ, { offset: 0, lengthBytes: partBytes }));
  wrong.push(...failuresOf(await completionsOf(side, 1)));
  wrong.push(
    ...differencesOf(
      'what was read of the parent after the fork',
      memory.read(side.area.address, partBytes),
      patternOf(ofParent, partBytes),
    ),
    ...(await exchange(side, args, lastOfPeer)),
  );
  await barrier(program, 'written');
  await leave(side);
  return { wrong };
}

async function exchange(side: Side, args: Args, number: number): Promise<string[]> {
  const { memory } = side.endpoint.program;
  const { partBytes } = args;
  const at = (part: number) => ({ offset: offsetOf(args, part), lengthBytes: partBytes });
  memory.write(side.area.address + offsetOf(args, 1), patternOf(number, partBytes));
  post(side.qps[0]!, requestOf(side, 1, IBV_WR_RDMA_WRITE, at(1)));
  post(side.qps[0]!, requestOf(side, 2, IBV_WR_RDMA_READ, at(2)));
  const failures = failuresOf(await completionsOf(side, 2));
  return [
    ...failures,
    ...differencesOf(
      'quiet part as read',
      memory.read(side.area.address + offsetOf(args, 2), partBytes),
      patternOf(atFork, 3 * partBytes).subarray(2 * partBytes),
    ),
  ];
}

export const forked: Scene = {
  name: 'forked',
  about: 'a process forks while its device works in pinned memory, and both write',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'parent' },
    { node: 1, exportName: 'peer' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
