/**
 * QPs are destroyed with unanswered requests, again and again, on hardware that keeps few requests, and new QPs reuse their numbers and
 * resources at once: another QP continues undisturbed (IBTA 10.2.4.4, 11.2.4.4).
 *
 *     round:  new QPs, connected ─► requests on all of them ─► destroyed, at either side first ─► the QP that stays: WRITEs, READs
 */

import { connectRc } from '../../experiments/workloads/index.ts';
import { type IbvQp, postRecv, postSend } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { connect, patternOf, psPerMs, READ, SEND, scene, times, WRITE } from './language/index.ts';

const slotBytes = 8192;
/** Limit of requests of one round, all QPs together. */
const slots = 16;

function drawRound(random: Draws) {
  const qpCount = 1 + random.below(4);
  // The answerer destroys its QPs before the first request.
  const isUnanswered = random.chance(0.5);
  const reach = random.chance(0.65) ? 3000 : 30_000;
  return {
    qpCount,
    // Requests on each QP.
    requestCount: 1 + random.below(slots / qpCount),
    opcode: random.oneOf([WRITE, READ, SEND]),
    lengthBytes: 1 + random.below(random.chance(0.4) ? 300 : slotBytes),
    // Delays from the last post to the destruction of the QPs, by side.
    delaysNs: [random.below(reach), random.below(reach)],
    isUnanswered,
  };
}

type Round = ReturnType<typeof drawRound>;

function draw(random: Draws) {
  const rounds = times(2 + random.below(6), () => drawRound(random));
  // Length of each WRITE and READ on the remaining QP.
  const args = { rounds, lengthBytes: 1 + random.below(8000), stayingCount: 1 + random.below(4) };
  const set = {
    'hca.outstandingWqes': 4 + random.below(random.chance(0.7) ? 4 : 40),
    ...random.maybe(0.4, () => ({ 'wire.speed': 'SDR', 'wire.lanes': '1' })),
    ...random.maybe(0.3, () => ({ 'dma.tagCount': 1 + random.below(2) })),
    ...random.maybe(0.65, () => ({ 'pcie.rootComplex.readLatencyPs': 4_000_000 + random.below(8_000_000) })),
    ...random.maybe(0.25, () => ({ 'hca.qpcCacheEntries': 1, 'hca.qpcCacheWays': 1 })),
    ...random.maybe(0.3, () => ({ 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 })),
  };
  return { args, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Four parts: targets of WRITEs and of READs of the destroyed QPs, and those of the remaining QP. */
const place = (part: number, slot: number): number => (part * slots + slot) * slotBytes;

/** Creates the QPs of this round, connected to those of the other program, with a receive for each SEND. */
async function goingQps(
  side: Side,
  { qpCount, requestCount, opcode }: Round,
  number: number,
): Promise<IbvQp[]> {
  const qps = await side.device.rcQps(qpCount, side.cq, { maxSendWr: slots, maxRecvWr: slots });
  await connectRc(side.device.endpoint, qps, `round ${number}`, null, () => {
    for (const [at, qp] of opcode === SEND ? qps.entries() : [])
      for (let request = 0; request < requestCount; request++) {
        const sge = side.sge({ offset: place(0, at * requestCount + request), lengthBytes: slotBytes });
        postRecv(qp, { wrId: 0, sgList: [sge], numSge: 1 });
      }
  });
  return qps;
}

/** Posts requests, and destroys its QPs, whose completions vanish from its CQ. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { rounds, lengthBytes, stayingCount } = stage.args;
  const side = await connect(stage, { areaBytes: place(4, 0), cap: { maxSendWr: 16 } });
  for (const [number, round] of rounds.entries()) {
    const { requestCount, opcode, delaysNs } = round;
    const qps = await goingQps(side, round, number);
    await stage.meet('ready');
    for (let request = 0; request < requestCount; request++)
      for (const [at, qp] of qps.entries()) {
        const slot = at * requestCount + request;
        const span = { offset: place(1, slot), remoteOffset: place(0, slot), lengthBytes: round.lengthBytes };
        postSend(qp, side.request(0, opcode, span));
      }
    await stage.sleepNs(delaysNs[0]!);
    for (const qp of qps) await side.device.destroyQp(qp);
    const bytesOf = (slot: number) => patternOf(number * stayingCount + slot, lengthBytes);
    for (let slot = 0; slot < stayingCount; slot++) {
      side.fill(bytesOf(slot), place(2, slot));
      side.fill(new Uint8Array(lengthBytes), place(3, slot));
      const there = { lengthBytes, remoteOffset: place(2, slot) };
      side.post(2 * slot, WRITE, { ...there, offset: place(2, slot) });
      side.post(2 * slot + 1, READ, { ...there, offset: place(3, slot) });
    }
    await side.expectWell(2 * stayingCount, 500 * psPerMs);
    for (let slot = 0; slot < stayingCount && stage.wrong.length === 0; slot++)
      side.expect(`what came back in round ${number}`, place(3, slot), bytesOf(slot));
    await stage.meet('gone');
  }
}

/** Answers while its QPs exist; posts no requests itself. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const side = await connect(stage, { areaBytes: place(4, 0), cap: { maxSendWr: 16 } });
  for (const [number, round] of stage.args.rounds.entries()) {
    const qps = await goingQps(side, round, number);
    const destroy = async (): Promise<void> => {
      for (const qp of qps) await side.device.destroyQp(qp);
    };
    if (round.isUnanswered) await destroy();
    await stage.meet('ready');
    await stage.sleepNs(round.delaysNs[1]!);
    if (!round.isUnanswered) await destroy();
    await stage.meet('gone');
  }
}

export const abandonedQueues = scene({
  about: 'QPs are destroyed with requests under way, again and again, beside one that stays',
  draw,
  programs: [asker, answerer],
});
