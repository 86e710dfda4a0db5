/**
 * Completions wait in a CQ while it is resized, larger and smaller, over the end of its ring, with others on their way, and
 * while QPs go whose completions are among them. Those of the QPs that are left all come, once each and in their order
 * (IBTA 11.2.8.3: a resize loses none); those of a QP that is gone do not.
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  destroyQp,
  IBV_QP_STATE,
  IBV_QPS_RESET,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  IbvWc,
  modifyQp,
  pollCq,
  resizeCq,
} from '../../userlib/index.ts';
import { askerAndAnswerer, connectWithPeer, leave, post, requestOf, type Side } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  readonly entries: number;
  readonly steps: readonly Step[];
}

type Step =
  | { readonly kind: 'write'; readonly qp: number; readonly count: number }
  /** Until everything that was posted has ended, or for a short time. */
  | { readonly kind: 'wait'; readonly ns: number }
  | { readonly kind: 'poll'; readonly count: number }
  /** To so many beyond those that are needed at least. */
  | { readonly kind: 'resize'; readonly spare: number }
  | { readonly kind: 'destroy' | 'reset'; readonly qp: number };

/** Requests are numbered by their QP and their place in it. */
const idsPerQp = 10_000;
const restPs = 100 * psPerMs;
const slotBytes = 64;

function draw(random: Random): SceneDraft {
  const qpCount = 1 + random.below(12);
  const isSlow = random.chance(0.4);
  const steps = Array.from({ length: 30 + random.below(60) }, (): Step => {
    const kind = random.below(20);
    if (kind < 9) return { kind: 'write', qp: random.below(qpCount), count: 1 + random.below(4) };
    if (kind < 11) return { kind: 'wait', ns: random.chance(0.5) ? 0 : random.below(10_000) };
    if (kind < 14) return { kind: 'poll', count: 1 + random.below(8) };
    if (kind < 17) return { kind: 'resize', spare: random.below(random.chance(0.5) ? 4 : 100) };
    return { kind: random.chance(0.5) ? 'destroy' : 'reset', qp: random.below(qpCount) };
  });
  const args: Args = { qpCount, entries: 1 + random.below(random.chance(0.7) ? 16 : 100), steps };
  return {
    args: args as unknown as JsonValue,
    set: isSlow
      ? {
          'hca.mttCacheLines': 1,
          'hca.mttCacheWays': 1,
          'pcie.rootComplex.readLatencyPs': 1_000_000 * (1 + random.below(20)),
          // What the device still writes when its pages are taken back does not arrive.
          'pcie.iommu.isEnabled': true,
        }
      : {},
    hasDrawnHardware: random.chance(0.5),
  };
}

/** A program's view of its CQ. */
class Waiting {
  readonly found: string[] = [];
  readonly side: Side;
  readonly #qps: (IbvQp | undefined)[];
  /** Of each QP, requests that were posted and not taken: from the first of these to the next. */
  readonly #first: number[];
  readonly #next: number[];
  readonly #wcs = Array.from({ length: 8 }, () => new IbvWc());

  constructor(side: Side) {
    this.side = side;
    this.#qps = [...side.qps];
    this.#first = side.qps.map(() => 0);
    this.#next = side.qps.map(() => 0);
  }

  /** Completions that are in the CQ, or will be. */
  get count(): number {
    return this.#next.reduce((sum, next, qp) => sum + next - this.#first[qp]!, 0);
  }

  get left(): IbvQp[] {
    return this.#qps.filter((qp) => qp !== undefined);
  }

  write(number: number, count: number): void {
    const qp = this.#qps[number];
    for (let at = 0; at < count && qp !== undefined && this.count < this.side.cq.cqe; at++) {
      const id = number * idsPerQp + this.#next[number]!++;
      const request = requestOf(this.side, id, IBV_WR_RDMA_WRITE, {
        offset: number * slotBytes,
        lengthBytes: 8,
      });
      if (post(qp, request) !== 0) this.found.push(`request ${id} was not taken`);
    }
  }

  async poll(count: number): Promise<number> {
    const taken = await pollCq(this.side.cq, count, this.#wcs);
    for (const { wrId, status, qpNum } of this.#wcs.slice(0, taken)) {
      const number = Math.floor(wrId / idsPerQp);
      const expected = number * idsPerQp + this.#first[number]!;
      const isOwn = this.#qps[number]?.qpNum === qpNum && this.#first[number]! < this.#next[number]!;
      if (status !== IBV_WC_SUCCESS || !isOwn || wrId !== expected)
        this.found.push(`request ${wrId} of QP ${qpNum} came in status ${status}, not ${expected}`);
      this.#first[number]!++;
    }
    return taken;
  }

  async remove(number: number, isDestroyed: boolean): Promise<void> {
    const qp = this.#qps[number];
    if (qp === undefined) return;
    if (isDestroyed) {
      await destroyQp(qp);
      this.#qps[number] = undefined;
    } else {
      await modifyQp(qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE);
      this.#idle.add(qp);
      this.#qps[number] = undefined;
    }
    this.#first[number] = this.#next[number]!;
  }

  /** QPs in RESET, to be destroyed at the end. */
  readonly #idle = new Set<IbvQp>();

  get idle(): IbvQp[] {
    return [...this.#idle];
  }
}

/** Writes. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, entries, steps } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 4096,
    qpCount,
    cqEntries: entries,
    cap: { maxSendWr: 128 },
  });
  const waiting = new Waiting(side);
  for (const step of steps) await take(program, waiting, step);
  await program.cpu.sleep(restPs);
  while ((await waiting.poll(8)) > 0);
  if (waiting.count > 0) waiting.found.push(`${waiting.count} completions never came`);
  await barrier(program, 'over');
  await leave(side, { qps: [...waiting.left, ...waiting.idle] });
  return waiting.found;
}

async function take(program: ProgramContext, waiting: Waiting, step: Step): Promise<void> {
  switch (step.kind) {
    case 'write':
      return waiting.write(step.qp, step.count);
    case 'wait':
      return program.cpu.sleep(step.ns === 0 ? restPs : step.ns * psPerNs);
    case 'poll':
      await waiting.poll(step.count);
      return;
    case 'resize':
      return resizeCq(waiting.side.cq, Math.max(1, waiting.count + step.spare));
    default:
      return waiting.remove(step.qp, step.kind === 'destroy');
  }
}

/** Is written to. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { qpCount } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 4096, qpCount });
  await barrier(program, 'over');
  await leave(side);
  return [];
}

export const unpolledCompletions: Scene = {
  name: 'unpolled-completions',
  about: 'a CQ with completions in it is resized, and QPs go whose completions are among them',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
