/**
 * Completions wait in a CQ while it is resized, larger and smaller, over the end of its ring, with others in flight, and while QPs vanish whose
 * completions are among them. Those of the remaining QPs arrive once each and in order (IBTA 11.2.8.3: a resize loses none); those of a QP that
 * is gone do not.
 */

import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { connect, isWell, present, scene, sumOf, times, WRITE } from './language/index.ts';

type Step =
  | { readonly kind: 'write'; readonly qp: number; readonly count: number }
  /** Waits until everything posted has ended, or for a short time. */
  | { readonly kind: 'wait'; readonly ns: number }
  | { readonly kind: 'poll'; readonly count: number }
  /** Resizes to this many entries beyond the needed ones. */
  | { readonly kind: 'resize'; readonly spare: number }
  | { readonly kind: 'destroy' | 'reset'; readonly qp: number };

/** Requests are numbered by their QP and their place in it. */
const idsPerQp = 10_000;
const restMs = 100;
const slotBytes = 64;

function draw(random: Draws) {
  const qpCount = 1 + random.below(12);
  const isSlow = random.chance(0.4);
  const steps = times(30 + random.below(60), (): Step => {
    const kind = random.below(20);
    if (kind < 9) return { kind: 'write', qp: random.below(qpCount), count: 1 + random.below(4) };
    if (kind < 11) return { kind: 'wait', ns: random.chance(0.5) ? 0 : random.below(10_000) };
    if (kind < 14) return { kind: 'poll', count: 1 + random.below(8) };
    if (kind < 17) return { kind: 'resize', spare: random.below(random.chance(0.5) ? 4 : 100) };
    return { kind: random.chance(0.5) ? 'destroy' : 'reset', qp: random.below(qpCount) };
  });
  const args = { qpCount, entries: 1 + random.below(random.chance(0.7) ? 16 : 100), steps };
  const slow = () => ({
    'hca.mttCacheLines': 1,
    'hca.mttCacheWays': 1,
    'pcie.rootComplex.readLatencyPs': 1_000_000 * (1 + random.below(20)),
    // Writes that are in flight when their pages are taken back do not arrive.
    'pcie.iommu.isEnabled': true,
  });
  return { args, set: isSlow ? slow() : {}, hasDrawnHardware: random.chance(0.5) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** A program's view of its CQ. */
class Waiting {
  readonly #side: Side;
  /** QPs that were destroyed, or are in RESET. */
  readonly #gone = new Set<number>();
  /** Requests of each QP that were posted and not polled: from the first of these to the next. */
  readonly #first: number[];
  readonly #next: number[];

  constructor(side: Side) {
    this.#side = side;
    this.#first = side.qps.map(() => 0);
    this.#next = side.qps.map(() => 0);
  }

  /** Completions that are in the CQ, or will be. */
  get count(): number {
    return sumOf(this.#next) - sumOf(this.#first);
  }

  async take(step: Step): Promise<unknown> {
    const { stage, cq } = this.#side;
    if (step.kind === 'write') return this.#write(step.qp, step.count);
    if (step.kind === 'wait') return step.ns === 0 ? stage.sleepMs(restMs) : stage.sleepNs(step.ns);
    if (step.kind === 'poll') return this.poll(step.count);
    if (step.kind === 'resize') return ibv.resizeCq(cq, Math.max(1, this.count + step.spare));
    return this.#remove(step.qp, step.kind === 'destroy');
  }

  /** @returns how many were taken */
  async poll(count: number): Promise<number> {
    const { stage, cq, qps } = this.#side;
    const taken = await stage.poll(cq, count);
    for (const one of taken) {
      const number = Math.floor(one.id / idsPerQp);
      const due = number * idsPerQp + this.#first[number]!;
      const isOwn = !this.#gone.has(number) && qps[number]?.qpNum === one.qpNum;
      if (!isWell(one) || !isOwn || one.id !== due || this.#first[number]! >= this.#next[number]!)
        stage.accuse(`request ${one.id} of QP ${one.qpNum} came in ${one.status}, not ${due}`);
      this.#first[number]!++;
    }
    return taken.length;
  }

  #write(qp: number, count: number): void {
    const { stage, cq } = this.#side;
    for (let at = 0; at < count && !this.#gone.has(qp) && this.count < cq.cqe; at++) {
      const id = qp * idsPerQp + this.#next[qp]!++;
      const error = this.#side.post(id, WRITE, { qp, offset: qp * slotBytes, lengthBytes: 8 });
      if (error !== 0) stage.accuse(`request ${id} was not taken`);
    }
  }

  async #remove(number: number, isDestroyed: boolean): Promise<void> {
    if (this.#gone.has(number)) return;
    const { device, qps } = this.#side;
    if (isDestroyed) await device.destroyQp(qps[number]!);
    else await ibv.modifyQp(qps[number]!, { qpState: ibv.IBV_QPS_RESET }, ibv.IBV_QP_STATE);
    this.#gone.add(number);
    this.#first[number] = this.#next[number]!;
  }
}

async function asker(stage: Stage<Args>): Promise<void> {
  const { qpCount, entries, steps } = stage.args;
  const sizes = { areaBytes: 4096, qpCount, cqEntries: entries, cap: { maxSendWr: 128 } };
  const waiting = new Waiting(await connect(stage, sizes));
  for (const step of steps) await waiting.take(step);
  await stage.sleepMs(restMs);
  while ((await waiting.poll(8)) > 0);
  if (waiting.count > 0) stage.accuse(`${waiting.count} completions never came`);
  await stage.meet('over');
}

const answerer = present<Args>(({ qpCount }) => ({ areaBytes: 4096, qpCount }));

export const unpolledCompletions = scene({
  about: 'a CQ with completions in it is resized, and QPs go whose completions are among them',
  draw,
  programs: [asker, answerer],
});
