/**
 * Hundreds of QPs at each end share a CQ, on a device that caches few contexts: every message arrives at its own QP, and every completion names
 * it. At the end some plays stop polling: the CQ is overrun, and all its QPs fail, with receives in all their queues (IBTA 11.6.3.2).
 */
import { connectRc } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage, Taken } from './language/index.ts';
import { filled, isWell, SEND, scene, times } from './language/index.ts';

const cqEntries = 127;
const receivesPerQp = 3;
/** Time until everything posted has ended; the CQ is polled much more often. */
const lapMs = 100;

function draw(random: Draws) {
  const qpCount = 132 + random.below(60);
  const args = {
    qpCount,
    // QPs of each end that send, one after another. At both ends each sends and receives one message: no more than the CQ holds.
    rounds: times(1 + random.below(4), () => random.order(qpCount).slice(0, 1 + random.below(60))),
    isOverrun: random.chance(0.7),
  };
  const set = {
    'hca.qpcCacheEntries': 2 ** random.below(4),
    'hca.qpcCacheWays': 1,
    'hca.cqcCacheEntries': 1,
    'hca.cqcCacheWays': 1,
    'pcie.rootComplex.readLatencyPs': random.chance(0.6) ? 1_000_000 * (1 + random.below(10)) : 170_000,
  };
  return { args, set, climate: 'flawed' } satisfies Draft<unknown>;
}

/** Both ends; the CQ of the second one is overrun. */
async function player(stage: Stage<ArgsOf<typeof draw>>): Promise<void> {
  const { qpCount, rounds, isOverrun } = stage.args;
  const device = await stage.open();
  const cq = await device.cq(cqEntries);
  const qps = await device.rcQps(qpCount, cq, { maxSendWr: 4, maxRecvWr: receivesPerQp + 1 });
  const { address, region } = await device.buffer(2 * qpCount + 1);
  // Each QP has a byte for its receives, and then one for its sends.
  const byteAt = (wrId: number) => {
    const sgList = [{ addr: address + wrId, length: 1, lkey: region.lkey }];
    return { wrId, sgList, numSge: 1 };
  };
  const receive = (at: number): unknown => ibv.postRecv(qps[at]!, byteAt(at));
  const send = (at: number): unknown =>
    ibv.postSend(qps[at]!, { ...byteAt(qpCount + at), opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED });
  await connectRc(device.endpoint, qps, 'crowd', null, () => {
    for (const at of qps.keys()) for (let left = receivesPerQp; left > 0; left--) receive(at);
  });
  for (const [round, senders] of rounds.entries()) {
    stage.memory.write(address, filled(2 * qpCount, round + 1));
    await stage.meet('round');
    for (const at of senders) send(at);
    await stage.sleepMs(lapMs);
    for (const what of wrongIn(await stage.drain(cq, 32), qps, senders))
      stage.accuse(`round ${round}: ${what}`);
    for (const at of senders) receive(at);
    await stage.meet('round is over');
  }
  if (isOverrun) {
    await stage.meet('no program polls');
    if (stage.node === 0) {
      // Sends a message by each QP. Any outcome is allowed, but the own CQ is not overrun.
      for (const at of qps.keys()) {
        send(at);
        if (at % 16 === 15) await stage.sleepUs(100);
        if (at % 16 === 15) await stage.poll(cq, cqEntries);
      }
      await stage.sleepMs(1);
      await stage.poll(cq, cqEntries);
    }
    await stage.sleepMs(lapMs);
    for (const at of stage.node === 1 ? [0, Math.floor(qpCount / 2), qpCount - 1] : [])
      if ((await ibv.queryQp(qps[at]!)).qpState !== ibv.IBV_QPS_ERR)
        stage.accuse(`QP ${at} did not fail with its CQ`);
  }
  await stage.meet('over');
}

/** Judges that one send and one receive of each sender have ended. */
function wrongIn(taken: readonly Taken[], qps: readonly ibv.IbvQp[], senders: readonly number[]): string[] {
  const found: string[] = [];
  const seen = taken.map((one) => {
    const at = one.isReceive ? one.id : one.id - qps.length;
    if (!isWell(one) || qps[at]?.qpNum !== one.qpNum)
      found.push(`request ${one.id} ended at QP ${one.qpNum} in ${one.status}`);
    return `${one.isReceive ? 'receive' : 'send'} ${at}`;
  });
  const due = senders.flatMap((at) => [`send ${at}`, `receive ${at}`]);
  const missing = due.filter((one) => !seen.includes(one));
  if (seen.length !== due.length || missing.length > 0)
    found.push(`${seen.length} of ${due.length} completions; ${missing.join(', ')} never came`);
  return found;
}

export const crowdOfQueues = scene({
  about: 'hundreds of QPs of one CQ, which is overrun in the end',
  isSlow: true,
  draw,
  programs: [player, player],
});
