/**
 * Messages around the size that fits their receive WQE, over a connection with losses and late receives: each arrives once, in order, with its
 * bytes in the buffers of its list; and the report counts those that arrived in a WQE.
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, FaultEntry, Played, Side, Stage } from './language/index.ts';
import { connect, patternOf, psPerMs, psPerUs, SEND, scene, sumOf, times } from './language/index.ts';

const slotBytes = 1024;
const wqeUnitBytes = 16;

/** Bytes of a receive WQE: a power of two that holds the list, and the requested inline bytes. */
const strideOf = (inlRecvSz: number, maxRecvSge: number): number =>
  2 ** Math.ceil(Math.log2(Math.max(wqeUnitBytes * maxRecvSge, inlRecvSz)));

/** Cuts at least this many bytes into some buffers, of which any may be empty. */
function cut(random: Draws, lengthBytes: number, count: number): number[] {
  const edges = times(count - 1, () => random.below(lengthBytes + 1)).toSorted((left, right) => left - right);
  const ends = [...edges, lengthBytes + random.below(40)];
  return ends.map((end, at) => end - (ends[at - 1] ?? 0));
}

function draw(random: Draws) {
  const maxRecvSge = 1 + random.below(4);
  const inlRecvSz = 1 + random.below(random.oneOf([16, 64, 130, 256]));
  const stride = strideOf(inlRecvSz, maxRecvSge);
  const count = 1 + random.below(24);
  const lengths = times(count, () =>
    random.chance(0.5) ? Math.max(0, stride - 2 + random.below(5)) : random.below(2 * stride + 1),
  );
  const args = {
    lengths,
    buffers: lengths.map((length) => cut(random, length, 1 + random.below(maxRecvSge))),
    ...{ inlRecvSz, maxRecvSge, maxRecvWr: 1 + random.below(8) },
    napPs: random.chance(0.5) ? 0 : (1 + random.below(40)) * psPerUs,
  };
  const faults = times(random.below(3), (): FaultEntry => {
    const which = { node: random.below(2), nth: 1 + random.below(count) };
    if (random.chance(0.6)) return { packet: 'lost', ...which };
    return { packet: 'duplicated', ...which, delay: `${1 + random.below(30_000)}ns` };
  });
  return { args, hasDrawnHardware: random.chance(0.3), faults, climate: 'lossy' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const attributes = { timeoutCode: 13 };
const patience = { napPs: psPerMs / 20, patiencePs: 10_000 * psPerMs };

/** Sends all messages, some inline. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { lengths } = stage.args;
  const cap = { maxSendWr: lengths.length, maxInlineData: 64 };
  const side = await connect(stage, { areaBytes: lengths.length * slotBytes, cap, attributes });
  await stage.meet('ready');
  for (const [id, lengthBytes] of lengths.entries()) {
    const offset = id * slotBytes;
    side.fill(patternOf(id, lengthBytes), offset);
    const isInline = id % 3 === 0 && lengthBytes <= 64;
    side.post(id, SEND, { offset, lengthBytes, flags: isInline ? ibv.IBV_SEND_INLINE : 0 });
  }
  stage.judgeWell(await side.watch(lengths.length, patience), lengths.length);
  await stage.meet('over');
}

/** The buffers of a receive, one after the other in its slot, with a gap between them. */
const listOf = (side: Side, id: number, lengths: readonly number[]): ibv.IbvSge[] =>
  lengths.map((lengthBytes, at) =>
    side.sge({ offset: id * slotBytes + sumOf(lengths.slice(0, at)) + at, lengthBytes }),
  );

/** Posts receives while messages arrive, and checks each as soon as it has completed. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { lengths, buffers, inlRecvSz, maxRecvSge, maxRecvWr, napPs } = stage.args;
  let posted = 0;
  const postNext = (side: Side): void => {
    if (posted === lengths.length) return;
    const sgList = listOf(side, posted, buffers[posted]!);
    ibv.postRecv(side.qp, { wrId: posted++, sgList, numSge: sgList.length });
  };
  const side = await connect(stage, {
    ...{ areaBytes: lengths.length * slotBytes, cap: { maxRecvWr, maxRecvSge }, attributes, inlRecvSz },
    beforeReady: (early) => {
      for (let count = 0; count < maxRecvWr; count++) postNext(early);
    },
  });
  await stage.meet('ready');
  for (const [id, length] of lengths.entries()) {
    const ended = await side.watch(1, patience);
    stage.judgeWell(ended, 1);
    if (ended.length === 0) break;
    const { byteLen } = ended[0]!;
    if (ended[0]!.id !== id || byteLen !== length)
      stage.accuse(`message ${id} of ${length} bytes came as ${ended[0]!.id} of ${byteLen}`);
    const pieces = listOf(side, id, buffers[id]!).map((sge) => stage.memory.read(sge.addr, sge.length));
    const came = Uint8Array.from(pieces.flatMap((piece) => [...piece])).subarray(0, byteLen);
    stage.expectBytes(`message ${id}`, came, patternOf(id, byteLen));
    if (napPs > 0) await stage.cpu.sleep(napPs);
    postNext(side);
  }
  await stage.meet('over');
}

function judge({ args: { lengths, inlRecvSz, maxRecvSge }, report }: Played<Args, unknown>): string[] {
  const small = lengths.filter((length) => length > 0 && length <= strideOf(inlRecvSz, maxRecvSge));
  const told = report.nodes[1]!.hca.inlineReceives ?? { messages: 0, bytes: 0 };
  if (told.messages === small.length && told.bytes === sumOf(small)) return [];
  const due = `${small.length} of ${sumOf(small)} fit`;
  return [`${told.messages} messages of ${told.bytes} bytes came in their WQE by the report, ${due}`];
}

export const inlineReceives = scene({
  about:
    'messages that come in their receive WQE, and others of about their size, with losses and late receives',
  draw,
  programs: [asker, answerer],
  judge,
});
