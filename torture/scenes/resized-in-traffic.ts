/**
 * CQs change their size while completions come to them and to others: every completion comes once and in order, and the memory of
 * the old ring is not needed any more when the call has returned (ibv_resize_cq; IBTA 11.2.8.4).
 */
import { psPerNs } from '../../base/index.ts';
import { barrier, connectRc, createRcQps, openEndpoint } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  closeDevice,
  createCq,
  deallocPd,
  destroyCq,
  destroyQp,
  IBV_SEND_SIGNALED,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  postRecv,
  resizeCq,
} from '../../userlib/index.ts';
import { completionsOf, failuresOf, post } from './pair.ts';
import { wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly cqCount: number;
  /** Requests on each connection in a round. */
  readonly requests: number;
  readonly rounds: readonly { readonly delayNs: number; readonly entries: readonly number[] }[];
}

const requestsMax = 24;

function draw(random: Random): SceneDraft {
  const cqCount = 1 + random.below(4);
  const args: Args = {
    cqCount,
    requests: 1 + random.below(requestsMax),
    rounds: Array.from({ length: 1 + random.below(4) }, () => ({
      delayNs: random.below(20_000),
      // 0 leaves the size; all hold what comes in a round.
      entries: Array.from({ length: cqCount }, () =>
        random.chance(0.3) ? 0 : (2 << random.below(6)) * 32 - 1,
      ),
    })),
  };
  return {
    args: args as never,
    set: {
      'pcie.iommu.isEnabled': random.chance(0.7),
      ...(random.chance(0.7) ? { 'hca.cqcCacheEntries': 1, 'hca.cqcCacheWays': 1 } : {}),
      ...(random.chance(0.7) ? { 'pcie.rootComplex.readLatencyPs': 10_000_000 } : {}),
      ...(random.chance(0.3) ? { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 } : {}),
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

/** Both send to each other, and the first one resizes. */
export async function resizer(program: ProgramContext): Promise<JsonValue> {
  const { cqCount, requests, rounds } = program.args as unknown as Args;
  const { cpu, node } = program;
  const endpoint = await openEndpoint(program);
  const cqs: IbvCq[] = [];
  const qps: IbvQp[] = [];
  const cap = { maxSendWr: 32, maxRecvWr: 32 };
  for (let at = 0; at < cqCount; at++) {
    const cq = await createCq(endpoint.context, 63);
    cqs.push(cq);
    qps.push(...(await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap)));
  }
  const receive = (): void => {
    for (const qp of qps)
      for (let id = 0; id < requests; id++) postRecv(qp, { wrId: 1000 + id, sgList: [], numSge: 0 });
  };
  await connectRc(endpoint, qps, 'resized', null, receive);
  const wrong: string[] = [];
  for (const [number, { delayNs, entries }] of rounds.entries()) {
    await barrier(program, 'ready');
    for (let id = 0; id < requests; id++)
      for (const qp of qps)
        post(qp, { wrId: id, sgList: [], numSge: 0, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED });
    await cpu.sleep(delayNs * psPerNs);
    if (node === 0)
      for (const [at, count] of entries.entries()) if (count > 0) await resizeCq(cqs[at]!, count);
    for (const [at, cq] of cqs.entries()) {
      const ended = await completionsOf({ endpoint, cq }, 2 * requests);
      wrong.push(...failuresOf(ended));
      for (const from of [0, 1000]) {
        const ids = ended.map(({ id }) => id - from).filter((id) => id >= 0 && id < 1000);
        if (ids.length !== requests || ids.some((id, index) => id !== index))
          wrong.push(`round ${number}, CQ ${at}: completions ${ids.join()} of ${requests}`);
      }
    }
    receive();
  }
  await barrier(program, 'over');
  for (const qp of qps) await destroyQp(qp);
  for (const cq of cqs) await destroyCq(cq);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
  return { wrong };
}

export const resizedInTraffic: Scene = {
  name: 'resized-in-traffic',
  about: 'CQs are resized while completions come to them and to others',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'resizer' },
    { node: 1, exportName: 'resizer' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
