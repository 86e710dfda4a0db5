/**
 * Objects that a rough guest believes to have created, so that commands are for objects in the right state more often. The device may
 * disagree; only draws depend on it.
 */
import * as abi from '../../abi/index.ts';
import type { Draw } from './draw.ts';
import { cqn, eqn, mptIndex, qpn, type Stage, srqn, stages } from './well-behaved-guest.ts';

const objectKinds = ['eq', 'cq', 'srq', 'mpt'] as const;
export type ObjectKind = (typeof objectKinds)[number];

/** Objects of each kind that it uses: numbers from the first on. */
const objectCount = 8;
const firstNumber: Readonly<Record<ObjectKind, number>> = { eq: eqn, cq: cqn, srq: srqn, mpt: mptIndex };

const transitionNames = Object.keys(abi.qpTransitions) as abi.QpTransitionName[];
export const isTransition = (name: string): name is abi.QpTransitionName => name in abi.qpTransitions;

const createdBy: Readonly<Partial<Record<abi.CommandName, ObjectKind>>> = {
  SW2HW_EQ: 'eq',
  SW2HW_CQ: 'cq',
  SW2HW_SRQ: 'srq',
  SW2HW_MPT: 'mpt',
};
const destroyedBy: Readonly<Partial<Record<abi.CommandName, ObjectKind>>> = {
  HW2SW_EQ: 'eq',
  HW2SW_CQ: 'cq',
  HW2SW_SRQ: 'srq',
  HW2SW_MPT: 'mpt',
};

export class RoughObjects {
  readonly #draw: Draw;
  readonly #live: Readonly<Record<ObjectKind, Set<number>>> = {
    eq: new Set(),
    cq: new Set(),
    srq: new Set(),
    mpt: new Set(),
  };
  /** By QP, counted from 0. */
  readonly qpState = new Uint8Array(objectCount);
  /** Send requests and receives that it has posted to each QP. */
  readonly sent = new Uint32Array(objectCount);
  readonly received = new Uint32Array(objectCount);
  /** log2 of the entries of each send queue. */
  readonly sendLog = new Uint8Array(objectCount).fill(5);

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  /** Forgets everything: after power-on, a reset, CLOSE_HCA. */
  forget(): void {
    for (const kind of objectKinds) this.#live[kind].clear();
    this.qpState.fill(abi.QpState.RST);
    this.sent.fill(0);
    this.received.fill(0);
  }

  /** A well-behaved guest has brought the device up to this stage. */
  broughtUp(last: Stage): void {
    const reached = (stage: Stage): boolean => stages.indexOf(last) >= stages.indexOf(stage);
    this.forget();
    if (reached('event queue')) this.#live.eq.add(eqn);
    if (reached('regions')) this.#live.mpt.add(mptIndex);
    if (reached('completion queue')) this.#live.cq.add(cqn);
    if (reached('completion queue')) this.#live.srq.add(srqn);
    if (reached('queue pairs')) this.qpState.fill(abi.QpState.RTS, 0, 2);
    this.sendLog.fill(5, 0, 2);
  }

  /** Draws a number of the pool: mostly of an existing object if `isLive`, else of an absent one. */
  number(kind: ObjectKind, isLive: boolean): number {
    const { random } = this.#draw;
    const all = Array.from({ length: objectCount }, (_, at) => firstNumber[kind] + at);
    const fit = all.filter((number) => this.#live[kind].has(number) === isLive);
    if (random.chance(0.06)) return random.chance(0.7) ? random.below(1024) : random.uint32();
    return this.#draw.pick(fit.length > 0 && random.chance(0.92) ? fit : all);
  }

  /** A QP in one of some states, counted from 0; any QP if none is in such a state. */
  queuePair(states?: readonly number[]): number {
    const all = Array.from({ length: objectCount }, (_, qp) => qp);
    const fit = states === undefined ? all : all.filter((qp) => states.includes(this.qpState[qp]!));
    return this.#draw.pick(fit.length > 0 && this.#draw.random.chance(0.92) ? fit : all);
  }

  /** The transition to try, and the QP: mostly one that leads towards RTS. */
  transition(): { readonly name: abi.QpTransitionName; readonly qp: number } {
    const { random } = this.#draw;
    if (random.chance(0.15)) return { name: this.#draw.pick(transitionNames), qp: this.queuePair() };
    const qp = this.queuePair();
    const legal = transitionNames.filter((name) => {
      const { from }: abi.QpTransition = abi.qpTransitions[name];
      return (from as readonly number[]).includes(this.qpState[qp]!);
    });
    const forward = legal.filter((name) => !name.startsWith('2'));
    return { name: this.#draw.pick(forward.length > 0 && random.chance(0.85) ? forward : legal), qp };
  }

  /** A command has succeeded. */
  succeeded(name: abi.CommandName, inputModifier: number): void {
    const created = createdBy[name];
    const destroyed = destroyedBy[name];
    if (created !== undefined) this.#live[created].add(inputModifier);
    if (destroyed !== undefined) this.#live[destroyed].delete(inputModifier);
    if (name === 'CLOSE_HCA') this.forget();
    const qp = (inputModifier % abi.mapEqUnmap) - qpn(0);
    if (!isTransition(name) || qp < 0 || qp >= objectCount) return;
    this.qpState[qp] = abi.qpTransitions[name].to;
    if (name !== '2RST_QP') return;
    this.sent[qp] = 0;
    this.received[qp] = 0;
  }
}
