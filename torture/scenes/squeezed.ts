/**
 * More memory is wanted than there is, while devices work in pinned memory: pages go to swap and come back with their bytes,
 * pinned ones stay where they are, and what a device or a program wrote into pages that had been swapped before is not
 * lost when they are swapped again (mlock(2); pin_user_pages; swap).
 *
 *     fill all ─► change some, have the peer write some, read some ─► over and over ─► every byte
 */
import { psPerUs } from '../../base/index.ts';
import { allAccess, barrier } from '../../experiments/workloads/index.ts';
import type { Process } from '../../host/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { Random } from '../../sim/index.ts';
import { deregMr, IBV_WR_RDMA_WRITE, regMr } from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, type PeerSide, post, requestOf } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const kinds = ['write', 'write', 'read', 'peer', 'peer', 'peerKept', 'fork'] as const;

interface Round {
  readonly kind: (typeof kinds)[number];
  /** Chunk that is written to, read, or registered for the peer. */
  readonly chunk: number;
  /** Chunks that are looked at afterwards, which pushes others out. */
  readonly looks: number;
}

interface Args {
  readonly seed: number;
  readonly chunks: number;
  readonly chunkPages: number;
  readonly rounds: readonly Round[];
}

const pageBytes = 4096;
const sizeMib = 64;
const reservedMib = 48;
/** Frames that the driver gives to its device, at least. */
const donatedPages = 2185;

function draw(random: Random): SceneDraft {
  const chunkPages = 16 + random.below(48);
  const framesMax = (sizeMib - reservedMib) * 256 - donatedPages;
  const chunks = Math.ceil((framesMax + random.below(500)) / chunkPages);
  const args: Args = {
    seed: random.below(1 << 30),
    chunks,
    chunkPages,
    rounds: Array.from({ length: 3 + random.below(5) }, () => ({
      kind: kinds[random.below(kinds.length)]!,
      chunk: random.below(chunks),
      looks: random.chance(0.6) ? 0 : random.below(Math.ceil(chunks / 4)),
    })),
  };
  return {
    args: args as never,
    set: {
      'host.memory.sizeMib': sizeMib,
      'host.memory.reservedKib': reservedMib * 1024,
      'host.swap.sizeMib': 64,
      'host.swap.readLatencyNs': 2000,
      'host.swap.writeLatencyNs': random.chance(0.5) ? 1000 : 60_000,
      'host.swap.megabytesPerSecond': 4000,
      'host.memory.framePlacement': random.chance(0.3) ? 'scattered' : 'contiguous',
    },
    // Others may need more frames for the device than there are.
    hasDrawnHardware: false,
  };
}

/** A page says which it is and how often it was written; its bytes are cheap to make and to compare. */
function fill(bytes: Uint8Array, page: number, version: number): Uint8Array {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  words.fill(Math.imul(page + 1, 0x9e37_79b1) ^ version);
  return bytes;
}

const peerPattern = (round: number): number => 7000 + round;

/** Has more memory than there is. */
export async function hoarder(program: ProgramContext): Promise<JsonValue> {
  const { memory, exchange } = program;
  const { seed, chunks, chunkPages, rounds } = program.args as unknown as Args;
  const random = new Random(seed, 'hoarder');
  const side = await connectWithPeer(program, { areaBytes: 8 });
  const chunkBytes = chunkPages * pageBytes;
  const base = memory.map(chunks * chunkBytes);
  const versions = new Uint32Array(chunks * chunkPages);
  /** Rounds in which the peer wrote a whole chunk last; -1 when the program did. */
  const byPeer = new Int32Array(chunks).fill(-1);
  const wrong: string[] = [];
  const buffer = new Uint8Array(pageBytes);
  const write = async (chunk: number): Promise<void> => {
    byPeer[chunk] = -1;
    for (let page = chunk * chunkPages; page < (chunk + 1) * chunkPages; page++) {
      versions[page]!++;
      await memory.store(base + page * pageBytes, fill(buffer, page, versions[page]!));
    }
  };
  const lookAs = async (
    here: ProgramContext['memory'],
    then: { readonly versions: Uint32Array; readonly byPeer: Int32Array },
    chunk: number,
    when: string,
  ): Promise<void> => {
    const [seen, own] = [new Uint8Array(pageBytes), new Uint8Array(pageBytes)];
    const writer = then.byPeer[chunk]!;
    const whole = writer < 0 ? undefined : patternOf(peerPattern(writer), chunkBytes);
    for (let page = chunk * chunkPages; page < (chunk + 1) * chunkPages; page++) {
      await here.load(base + page * pageBytes, seen);
      const at = (page - chunk * chunkPages) * pageBytes;
      const expected = whole?.subarray(at, at + pageBytes) ?? fill(own, page, then.versions[page]!);
      wrong.push(...differencesOf(`page ${page} ${when}`, seen, expected));
    }
  };
  const look = (chunk: number, when: string): Promise<void> =>
    lookAs(memory, { versions, byPeer }, chunk, when);
  const children: Process[] = [];
  /** A child that looks at some of what was there when it began, while the parent goes on. */
  const fork = (number: number, chunk: number): void => {
    if (children.length > 0 && !children.at(-1)!.isEnded) return;
    const then = { versions: versions.slice(), byPeer: byPeer.slice() };
    const child = program.fork(`child ${number}`, async (context) => {
      for (let at = 0; at < 8; at++)
        await lookAs(context.memory, then, (chunk + at * 5) % chunks, `in the child of round ${number}`);
    });
    if (child !== 'ENOMEM') children.push(child);
  };
  for (let chunk = 0; chunk < chunks; chunk++) await write(chunk);
  const keptRegions: Awaited<ReturnType<typeof regMr>>[] = [];
  for (const [number, { kind, chunk, looks }] of rounds.entries()) {
    if (wrong.length > 0) break;
    if (kind === 'write') await write(chunk);
    else if (kind === 'fork') fork(number, chunk);
    else if (kind === 'read') await look(chunk, `in round ${number}`);
    else {
      const mr = await regMr(side.endpoint.pd, base + chunk * chunkBytes, chunkBytes, allAccess);
      await exchange.put('written', { address: base + chunk * chunkBytes, rkey: mr.rkey, round: number });
      byPeer[chunk] = number;
      // While the peer writes, others are pushed out.
      await look((chunk + 1 + random.below(chunks - 1)) % chunks, `beside round ${number}`);
      await exchange.take('written');
      if (kind === 'peer' || keptRegions.length > 3) await deregMr(mr);
      else keptRegions.push(mr);
    }
    for (let at = 0; at < looks; at++) await look(random.below(chunks), `after round ${number}`);
  }
  await exchange.put('written', { address: 0, rkey: 0, round: -1 });
  for (let chunk = 0; chunk < chunks && wrong.length === 0; chunk++) await look(chunk, 'at the end');
  for (const child of children) while (!child.isEnded) await program.cpu.sleep(100 * psPerUs);
  await barrier(program, 'over');
  for (const mr of keptRegions) await deregMr(mr);
  await leave(side);
  return { wrong, swapped: program.host.mm.counts.swappedOutPages };
}

/** Writes to the places of its plan. */
export async function peer(program: ProgramContext): Promise<JsonValue> {
  const { memory, exchange } = program;
  const { chunkPages } = program.args as unknown as Args;
  const chunkBytes = chunkPages * pageBytes;
  const side = await connectWithPeer(program, { areaBytes: chunkBytes });
  const wrong: string[] = [];
  for (;;) {
    const order = (await exchange.take('written')) as unknown as PeerSide & { round: number };
    if (order.round < 0) break;
    memory.write(side.area.address, patternOf(peerPattern(order.round), chunkBytes));
    const to = { ...side, peer: order };
    post(side.qps[0]!, requestOf(to, 0, IBV_WR_RDMA_WRITE, { offset: 0, lengthBytes: chunkBytes }));
    wrong.push(...failuresOf(await completionsOf(side, 1)));
    await exchange.put('written', true);
  }
  await barrier(program, 'over');
  await leave(side);
  return { wrong, swapped: 1 };
}

export const squeezed: Scene = {
  name: 'squeezed',
  about: 'a program has more memory than there is, parts of which its peer writes',
  module: import.meta.url,
  // Rings for long frames would take nearly all of the memory.
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'hoarder' },
    { node: 1, exportName: 'peer' },
  ],
  draw,
  judge({ results }) {
    const [{ swapped }] = results as unknown as [{ swapped: number }];
    return swapped > 0 ? wrongOf(results) : [...wrongOf(results), 'nothing was swapped'];
  },
};
