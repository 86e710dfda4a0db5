/**
 * Reads of translations that are never answered, for QPs that are destroyed meanwhile, and other QPs that use the same region
 * after its tables have been changed and read again: a failure of the one does not affect the other. A request whose own read is
 * lost fails as well, but no sooner than the device has waited for it (PCI Express 3.1, 2.8).
 *
 *     round:  WRITE of a QP ─► destroyed ─► time-out of its read ─► a region comes ─► WRITE of the QP that stays
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier, createBuffer } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  deregMr,
  destroyQp,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_WRITE,
} from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  leave,
  nowPs,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** From the post to the end of each QP that goes. */
  readonly delaysNs: readonly number[];
  readonly lengthBytes: number;
}

/** What the device waits for an answer, at least. */
const timeoutUs = 50;
/** Longer than a read is waited for, however many have to be abandoned one after the other. */
const pauseUs = 4 * timeoutUs;

function draw(random: Random): SceneDraft {
  const rounds = 3 + random.below(6);
  const args: Args = {
    delaysNs: Array.from({ length: rounds }, () => 1000 + random.below(6000)),
    lengthBytes: 1 + random.below(4096),
  };
  // The first is the probe's; of each round's four the first is for the payload of the QP that goes.
  const nth = 2 + 4 * random.below(rounds) + (random.chance(0.5) ? 0 : random.below(4));
  return {
    args: args as unknown as JsonValue,
    set: { 'pcie.function.completionTimeoutDefaultUs': timeoutUs },
    hasDrawnHardware: false,
    faults: [{ read: 'translation', nth, answer: 'lost', node: 0 }],
    climate: 'flawed',
  };
}

const connectSides = (program: ProgramContext, { delaysNs, lengthBytes }: Args): Promise<Side> =>
  connectWithPeer(program, {
    areaBytes: lengthBytes,
    qpCount: delaysNs.length + 1,
    attributes: { timeoutCode: 10, retryCount: 1 },
  });

/** @returns what became of the requests of the QP that stays, until one of them failed, and how long each took */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { delaysNs, lengthBytes } = args;
  const side = await connectSides(program, args);
  const { endpoint, qps } = side;
  const request = requestOf(side, 0, IBV_WR_RDMA_WRITE, { offset: 0, lengthBytes });
  const staying = qps.at(-1)!;
  const seen: { ended: Ended[]; postedPs: number }[] = [];
  let gone = 0;
  for (const delayNs of delaysNs) {
    const before = await createBuffer(endpoint, 1);
    post(qps[gone]!, request);
    await program.cpu.sleep(delayNs * psPerNs);
    await destroyQp(qps[gone++]!);
    await program.cpu.sleep(pauseUs * psPerUs);
    const after = await createBuffer(endpoint, 1);
    const postedPs = nowPs(program);
    post(staying, request);
    const ended = await watchCompletions(side, 1, { napPs: psPerUs, patiencePs: 20_000 * psPerUs });
    seen.push({ ended, postedPs });
    await deregMr(before.region);
    await deregMr(after.region);
    if (ended[0]?.status !== IBV_WC_SUCCESS) break;
  }
  await barrier(program, 'over');
  await leave(side, { qps: qps.slice(gone) });
  return seen as unknown as JsonValue;
}

export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const side = await connectSides(program, program.args as unknown as Args);
  await barrier(program, 'over');
  await leave(side);
  return {};
}

export const lostLookups: Scene = {
  name: 'lost-lookups',
  about:
    'reads of translations are lost for QPs that are destroyed, and another QP uses the region afterwards',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) =>
    (results[0] as unknown as { ended: Ended[]; postedPs: number }[]).flatMap(({ ended, postedPs }, round) =>
      ended.flatMap(({ status, atPs }) => {
        const tookUs = (atPs - postedPs) / psPerUs;
        // What is flushed, or has been waited for, has met the lost read itself.
        if (status === IBV_WC_SUCCESS || status === IBV_WC_WR_FLUSH_ERR || tookUs >= timeoutUs) return [];
        return [
          `round ${round}: a request ended in status ${status} after ${tookUs} us, sooner than any read is given up`,
        ];
      }),
    ),
};
