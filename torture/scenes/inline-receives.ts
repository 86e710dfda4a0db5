/**
 * Messages around the size up to which they come in their receive WQE, over a connection that loses some packets and finds no receive
 * now and then: each comes once, in order, with its bytes in the buffers of the list that was posted for it; and the report counts those
 * that came in a WQE.
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  type IbvSge,
  postRecv,
} from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  failuresOf,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly lengths: readonly number[];
  /** Lengths of the buffers of each receive; together they hold the message. */
  readonly buffers: readonly (readonly number[])[];
  readonly inlRecvSz: number;
  readonly maxRecvSge: number;
  readonly maxRecvWr: number;
  /** Between the completions that the receiver takes. */
  readonly napPs: number;
}

const slotBytes = 1024;
const wqeUnitBytes = 16;

/** Bytes of a receive WQE: a power of two that holds the list, and what was asked for. */
const strideOf = ({ inlRecvSz, maxRecvSge }: Pick<Args, 'inlRecvSz' | 'maxRecvSge'>): number =>
  2 ** Math.ceil(Math.log2(Math.max(wqeUnitBytes * maxRecvSge, inlRecvSz)));

/** Cuts at least so many bytes into some buffers, of which any may be empty. */
function cut(random: Random, lengthBytes: number, count: number): number[] {
  const edges = Array.from({ length: count - 1 }, () => random.below(lengthBytes + 1)).toSorted(
    (a, b) => a - b,
  );
  const ends = [...edges, lengthBytes + random.below(40)];
  return ends.map((end, at) => end - (at === 0 ? 0 : ends[at - 1]!));
}

function draw(random: Random): SceneDraft {
  const maxRecvSge = 1 + random.below(4);
  const inlRecvSz = 1 + random.below([16, 64, 130, 256][random.below(4)]!);
  const stride = strideOf({ inlRecvSz, maxRecvSge });
  const count = 1 + random.below(24);
  const lengths = Array.from({ length: count }, () =>
    random.chance(0.5) ? Math.max(0, stride - 2 + random.below(5)) : random.below(2 * stride + 1),
  );
  const args: Args = {
    lengths,
    buffers: lengths.map((length) => cut(random, length, 1 + random.below(maxRecvSge))),
    inlRecvSz,
    maxRecvSge,
    maxRecvWr: 1 + random.below(8),
    napPs: random.chance(0.5) ? 0 : (1 + random.below(40)) * psPerUs,
  };
  const faults = Array.from({ length: random.below(3) }, (): FaultEntry => {
    const node = random.below(2);
    const nth = 1 + random.below(count);
    return random.chance(0.6)
      ? { packet: 'lost', nth, node }
      : { packet: 'duplicated', nth, node, delay: `${1 + random.below(30_000)}ns` };
  });
  return {
    args: { ...args } as unknown as JsonValue,
    hasDrawnHardware: random.chance(0.3),
    faults,
    climate: 'lossy',
  };
}

const attributes = { timeoutCode: 13 };
const patience = { napPs: psPerMs / 20, patiencePs: 10_000 * psPerMs };

/** Sends all messages, some inline. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { lengths } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: lengths.length * slotBytes,
    cap: { maxSendWr: lengths.length, maxInlineData: 64 },
    attributes,
  });
  await barrier(program, 'ready');
  for (const [id, lengthBytes] of lengths.entries()) {
    const offset = id * slotBytes;
    program.memory.write(side.area.address + offset, patternOf(id, lengthBytes));
    const request = requestOf(side, id, IBV_WR_SEND, { offset, lengthBytes });
    const sendFlags =
      id % 3 === 0 && lengthBytes <= 64 ? IBV_SEND_SIGNALED | IBV_SEND_INLINE : IBV_SEND_SIGNALED;
    post(side.qps[0]!, { ...request, sendFlags });
  }
  const ended = await watchCompletions(side, lengths.length, patience);
  await barrier(program, 'over');
  await leave(side);
  return { found: failuresOf(ended), count: ended.length };
}

/** The buffers of a receive, one behind the other in its slot, with a gap between them. */
function listOf({ area }: Pick<Side, 'area'>, id: number, lengths: readonly number[]): IbvSge[] {
  let addr = area.address + id * slotBytes;
  return lengths.map((length) => {
    const sge = { addr, length, lkey: area.region.lkey };
    addr += length + 1;
    return sge;
  });
}

/** Posts receives while it takes messages, and looks at each as soon as it has completed. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { lengths, buffers, inlRecvSz, maxRecvSge, maxRecvWr, napPs } = program.args as unknown as Args;
  let posted = 0;
  const postNext = (side: Pick<Side, 'area' | 'qps'>): void => {
    if (posted === lengths.length) return;
    const sgList = listOf(side, posted, buffers[posted]!);
    postRecv(side.qps[0]!, { wrId: posted++, sgList, numSge: sgList.length }, { wr: null, index: 0 });
  };
  const side = await connectWithPeer(program, {
    areaBytes: lengths.length * slotBytes,
    cap: { maxRecvWr, maxRecvSge },
    attributes,
    inlRecvSz,
    beforeReady: (early) => {
      for (let count = 0; count < maxRecvWr; count++) postNext(early);
    },
  });
  await barrier(program, 'ready');
  const found: string[] = [];
  const all: Ended[] = [];
  while (all.length < lengths.length) {
    const [ended] = await watchCompletions(side, 1, patience);
    if (ended === undefined) break;
    const { id, byteLen } = ended;
    if (id !== all.length || byteLen !== lengths[id])
      found.push(`message ${all.length} of ${lengths[all.length]} bytes came as ${id} of ${byteLen}`);
    all.push(ended);
    const pieces = listOf(side, id, buffers[id]!).map(({ addr, length }) =>
      program.memory.read(addr, length),
    );
    const came = Uint8Array.from(pieces.flatMap((piece) => [...piece])).subarray(0, byteLen);
    const at = firstDifference(patternOf(id, byteLen), came);
    if (at !== -1) found.push(`message ${id} came with another byte ${at}`);
    if (napPs > 0) await program.cpu.sleep(napPs);
    postNext(side);
  }
  await barrier(program, 'over');
  await leave(side);
  return { found: [...failuresOf(all), ...found], count: all.length };
}

function judge({ args, results, report }: ScenePlayed): string[] {
  const given = args as unknown as Args;
  const { lengths } = given;
  const both = results as unknown as { found: string[]; count: number }[];
  const found = both.flatMap((result) => result.found.slice(0, 3));
  if (both.some(({ count }) => count !== lengths.length))
    found.push(`${both.map(({ count }) => count)} of ${lengths.length} messages completed`);
  const stride = strideOf(given);
  const small = lengths.filter((length) => length > 0 && length <= stride);
  const told = report.nodes[1]!.hca.inlineReceives ?? { messages: 0, bytes: 0 };
  const bytes = small.reduce((sum, length) => sum + length, 0);
  if (told.messages !== small.length || told.bytes !== bytes)
    found.push(
      `${told.messages} messages of ${told.bytes} bytes came in their WQE by the report, ${small.length} of ${bytes} fit`,
    );
  return found;
}

export const inlineReceives: Scene = {
  name: 'inline-receives',
  about:
    'messages that come in their receive WQE, and others of about their size, with losses and late receives',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge,
};
