/**
 * A program uses more memory than the host has, while devices work in pinned memory: pages are swapped out and return with their bytes, pinned ones
 * stay, and writes of a device or a program into pages that were swapped earlier survive the next swap (mlock(2); pin_user_pages; swap).
 *
 *     fill all ─► change some, have the peer write some, read some ─► over and over ─► every byte
 */
import { allAccess } from '../../experiments/workloads/index.ts';
import type { Process } from '../../host/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { IbvMr } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Played, Reach, Stage } from './language/index.ts';
import { connect, patternOf, Random, scene, times, topic, WRITE } from './language/index.ts';

const kinds = ['write', 'write', 'read', 'peer', 'peer', 'peerKept', 'fork'] as const;
const pageBytes = 4096;
const sizeMib = 64;
const reservedMib = 48;
/** Frames that the driver gives to its device, at least. */
const donatedPages = 2185;

function draw(random: Draws) {
  const chunkPages = 16 + random.below(48);
  const framesMax = (sizeMib - reservedMib) * 256 - donatedPages;
  const chunks = Math.ceil((framesMax + random.below(500)) / chunkPages);
  const args = {
    seed: random.below(1 << 30),
    chunks,
    chunkPages,
    rounds: times(3 + random.below(5), () => ({
      kind: random.oneOf(kinds),
      // The chunk to write to, read, or register for the peer.
      chunk: random.below(chunks),
      // Chunks that are read afterwards, which evicts others.
      looks: random.chance(0.6) ? 0 : random.below(Math.ceil(chunks / 4)),
    })),
  };
  const set = {
    'host.memory.sizeMib': sizeMib,
    'host.memory.reservedKib': reservedMib * 1024,
    'host.swap.sizeMib': 64,
    'host.swap.readLatencyNs': 2000,
    'host.swap.writeLatencyNs': random.chance(0.5) ? 1000 : 60_000,
    'host.swap.megabytesPerSecond': 4000,
    'host.memory.framePlacement': random.chance(0.3) ? 'scattered' : 'contiguous',
  };
  // Other hardware may need more frames for the device than there are.
  return { args, set } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Returns a page that holds its number and its version; its bytes are cheap to make and to compare. */
function pageOf(bytes: Uint8Array, page: number, version: number): Uint8Array {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  words.fill(Math.imul(page + 1, 0x9e37_79b1) ^ version);
  return bytes;
}

/** Contents of chunks: versions of pages, and the round in which the peer wrote a whole chunk last, or -1 if the program did. */
interface Contents {
  readonly versions: Uint32Array;
  readonly byPeer: Int32Array;
}

/** Pages and their contents. */
class Hoard {
  readonly chunkBytes: number;
  readonly #stage: Stage<Args>;
  readonly #base: number;
  readonly #now: Contents;

  constructor(stage: Stage<Args>) {
    const { chunks, chunkPages } = stage.args;
    this.#stage = stage;
    this.chunkBytes = chunkPages * pageBytes;
    this.#base = stage.memory.map(chunks * this.chunkBytes);
    this.#now = { versions: new Uint32Array(chunks * chunkPages), byPeer: new Int32Array(chunks).fill(-1) };
  }

  copyContents(): Contents {
    return { versions: this.#now.versions.slice(), byPeer: this.#now.byPeer.slice() };
  }

  addressOf(chunk: number): number {
    return this.#base + chunk * this.chunkBytes;
  }

  async write(chunk: number): Promise<void> {
    const bytes = new Uint8Array(pageBytes);
    this.#now.byPeer[chunk] = -1;
    for (const page of this.#pagesOf(chunk)) {
      const version = ++this.#now.versions[page]!;
      await this.#stage.memory.store(this.#base + page * pageBytes, pageOf(bytes, page, version));
    }
  }

  takenByPeer(chunk: number, round: number): void {
    this.#now.byPeer[chunk] = round;
  }

  /** Checks a chunk, and accuses wrong bytes. */
  async look(
    chunk: number,
    when: string,
    memory: ProgramContext['memory'] = this.#stage.memory,
    { versions, byPeer }: Contents = this.#now,
  ): Promise<void> {
    const [seen, own] = [new Uint8Array(pageBytes), new Uint8Array(pageBytes)];
    const writer = byPeer[chunk]!;
    const whole = writer < 0 ? undefined : peerBytes(writer, this.chunkBytes);
    for (const [at, page] of this.#pagesOf(chunk).entries()) {
      await memory.load(this.#base + page * pageBytes, seen);
      const due = whole?.subarray(at * pageBytes, (at + 1) * pageBytes) ?? pageOf(own, page, versions[page]!);
      this.#stage.expectBytes(`page ${page} ${when}`, seen, due);
    }
  }

  #pagesOf(chunk: number): number[] {
    const { chunkPages } = this.#stage.args;
    return times(chunkPages, (at) => chunk * chunkPages + at);
  }
}

const peerBytes = (round: number, lengthBytes: number): Uint8Array => patternOf(7000 + round, lengthBytes);

/** Topic: target of the peer's writes; a round of -1 ends its work. */
const orders = topic<Reach & { readonly round: number }>('written');
const done = topic<boolean>('written');

/** Has more memory than there is. @returns pages that were swapped out */
async function hoarder(stage: Stage<Args>): Promise<number> {
  const { seed, chunks, rounds } = stage.args;
  const random = new Random(seed, 'hoarder');
  const { device } = await connect(stage, { areaBytes: 8 });
  const hoard = new Hoard(stage);
  const children: Process[] = [];
  /** Forks a child that checks some memory as it was at the fork, while the parent continues. */
  const fork = (number: number, chunk: number): void => {
    if (children.length > 0 && !children.at(-1)!.isEnded) return;
    const then = hoard.copyContents();
    const child = stage.context.fork(`child ${number}`, async ({ memory }) => {
      for (let at = 0; at < 8; at++)
        await hoard.look((chunk + at * 5) % chunks, `in the child of round ${number}`, memory, then);
    });
    if (child !== 'ENOMEM') children.push(child);
  };
  for (let chunk = 0; chunk < chunks; chunk++) await hoard.write(chunk);
  const kept: IbvMr[] = [];
  for (const [number, { kind, chunk, looks }] of rounds.entries()) {
    if (stage.wrong.length > 0) break;
    if (kind === 'write') await hoard.write(chunk);
    else if (kind === 'fork') fork(number, chunk);
    else if (kind === 'read') await hoard.look(chunk, `in round ${number}`);
    else {
      const address = hoard.addressOf(chunk);
      const mr = await device.region(address, hoard.chunkBytes, allAccess);
      await stage.put(orders, { address, rkey: mr.rkey, round: number });
      hoard.takenByPeer(chunk, number);
      // While the peer writes, others are pushed out.
      await hoard.look((chunk + 1 + random.below(chunks - 1)) % chunks, `beside round ${number}`);
      await stage.take(done);
      if (kind === 'peer' || kept.length > 3) await device.deregister(mr);
      else kept.push(mr);
    }
    for (let at = 0; at < looks; at++) await hoard.look(random.below(chunks), `after round ${number}`);
  }
  await stage.put(orders, { address: 0, rkey: 0, round: -1 });
  for (let chunk = 0; chunk < chunks && stage.wrong.length === 0; chunk++)
    await hoard.look(chunk, 'at the end');
  for (const child of children) while (!child.isEnded) await stage.sleepUs(100);
  await stage.meet('over');
  return stage.context.host.mm.counts.swappedOutPages;
}

/** Writes to the places of its orders. */
async function peer(stage: Stage<Args>): Promise<void> {
  const lengthBytes = stage.args.chunkPages * pageBytes;
  const side = await connect(stage, { areaBytes: lengthBytes });
  for (let order = await stage.take(orders); order.round >= 0; order = await stage.take(orders)) {
    side.fill(peerBytes(order.round, lengthBytes));
    side.with({ peer: order }).post(0, WRITE, { lengthBytes });
    await side.expectWell(1);
    await stage.put(done, true);
  }
  await stage.meet('over');
}

export const squeezed = scene({
  about: 'a program has more memory than there is, parts of which its peer writes',
  // Rings for long frames would take nearly all of the memory.
  cable: 'infiniband',
  draw,
  programs: [hoarder, peer],
  judge: ({ told: [swapped] }: Played<Args, readonly [number, unknown]>) =>
    swapped > 0 ? [] : ['nothing was swapped'],
});
