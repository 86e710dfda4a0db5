/**
 * CQs are resized while completions arrive in them and in others: every completion arrives once and in order, and the device no longer uses the old
 * ring when the call has returned (ibv_resize_cq; IBTA 11.2.8.4).
 */
import { connectRc } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { SEND, scene, series, times } from './language/index.ts';

function draw(random: Draws) {
  const cqCount = 1 + random.below(4);
  const args = {
    cqCount,
    // Requests on each connection in a round.
    requests: 1 + random.below(24),
    rounds: times(1 + random.below(4), () => ({
      delayNs: random.below(20_000),
      // 0 keeps the size; all hold the completions of a round.
      entries: times(cqCount, () => (random.chance(0.3) ? 0 : (2 << random.below(6)) * 32 - 1)),
    })),
  };
  const set = {
    'pcie.iommu.isEnabled': random.chance(0.7),
    ...random.maybe(0.7, () => ({ 'hca.cqcCacheEntries': 1, 'hca.cqcCacheWays': 1 })),
    ...random.maybe(0.7, () => ({ 'pcie.rootComplex.readLatencyPs': 10_000_000 })),
    ...random.maybe(0.3, () => ({ 'pcie.link.generation': 1, 'pcie.link.lanes': 1 })),
  };
  return { args, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

const empty = { sgList: [], numSge: 0 };
/** Number of the first receive; sends begin at 0. */
const firstReceive = 1000;

async function resizer(stage: Stage<ArgsOf<typeof draw>>): Promise<void> {
  const { cqCount, requests, rounds } = stage.args;
  const device = await stage.open();
  const cqs: ibv.IbvCq[] = [];
  const qps = await series(cqCount, async (at) => {
    cqs.push(await device.cq(63));
    return (await device.rcQps(1, cqs[at]!, { maxSendWr: 32, maxRecvWr: 32 }))[0]!;
  });
  const receive = (): void => {
    for (const qp of qps)
      for (let id = 0; id < requests; id++) ibv.postRecv(qp, { ...empty, wrId: firstReceive + id });
  };
  await connectRc(device.endpoint, qps, 'resized', null, receive);
  for (const [number, { delayNs, entries }] of rounds.entries()) {
    await stage.meet('ready');
    for (let wrId = 0; wrId < requests; wrId++)
      for (const qp of qps)
        ibv.postSend(qp, { ...empty, wrId, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED });
    await stage.sleepNs(delayNs);
    if (stage.node === 0)
      for (const [at, count] of entries.entries()) if (count > 0) await ibv.resizeCq(cqs[at]!, count);
    for (const [at, cq] of cqs.entries()) {
      const ended = await stage.completions(cq, 2 * requests);
      stage.judgeWell(ended, 2 * requests);
      for (const isReceive of [false, true]) {
        const ids = ended.map(({ id }) => id).filter((id) => id >= firstReceive === isReceive);
        const due = times(requests, (id) => (isReceive ? firstReceive : 0) + id);
        if (`${ids}` !== `${due}`) stage.accuse(`round ${number}, CQ ${at}: completions ${ids}, not ${due}`);
      }
    }
    receive();
  }
  await stage.meet('over');
}

export const resizedInTraffic = scene({
  about: 'CQs are resized while completions come to them and to others',
  draw,
  programs: [resizer, resizer],
});
