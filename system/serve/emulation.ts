/**
 * A served machine as the thread that runs it has it: the slots that guests use, the devices in them, and time.
 *
 *     Reactor ─► Slot ─► GuestNode ══ HcaNode ══╗        work(budget): time passes, until idle or for the budget
 *     Reactor ─► Slot ─► GuestNode ══ HcaNode ══╝
 *
 * When the model throws (a defect of the emulator, never a guest's doing) the devices are built anew, the guests that used
 * them are to be dropped, and the report says so.
 */

import type { Analyser } from '../../analyser/index.ts';
import { type ProcessObservations, SteppedRunner } from '../../sim/index.ts';
import {
  type Analysis,
  type AnalysisOptions,
  analysisOf,
  attachAnalyser,
  captureFile,
} from '../machine/analysis/index.ts';
import { HcaNode, type WireCapture, wireCaptureOf } from '../machine/index.ts';
import { type Defect, defectOf } from './defect.ts';
import { GuestNode } from './guest-node.ts';
import type { RaiseInterrupt } from './interrupt-lines.ts';
import { makeOpenEnd } from './open-end.ts';
import type { ServingConfig } from './parameters.ts';
import {
  guestName,
  planServed,
  type ServedChoice,
  type ServedPlan,
  servedNeighboursOf,
} from './served-plan.ts';
import { ServedTime, type WallClock } from './served-time.ts';
import { Slot, type SlotListener } from './slot.ts';
import { type SlotLedger, slotLedgerOf } from './slot-ledger.ts';
import { QueueWaits } from './wait-watch.ts';

export interface EmulationOptions extends ServedChoice {
  readonly serving: ServingConfig;
  /** Simulated time per wall time while the devices are idle. */
  readonly timeScale: number;
  readonly wall: WallClock;
  readonly raise: RaiseInterrupt;
  readonly analysis: AnalysisOptions | undefined;
}

const STORE_PS = 1_000_000;
/** Wall time between two looks for what guests wait for. */
const SAMPLE_MS = 500;
const TIME_PASSING = 'time passing';

export class Emulation {
  readonly options: EmulationOptions;
  readonly slots: readonly Slot[];
  readonly defects: Defect[] = [];
  plan!: ServedPlan;
  guests: readonly GuestNode[] = [];
  hcas: readonly HcaNode[] = [];
  time!: ServedTime;
  #hasFailed = false;
  /** Builds so far. */
  #generation = 0;
  /** Packets of the cables of earlier builds. */
  readonly #captures: WireCapture[] = [];
  /** What the processes of earlier builds have recorded. */
  readonly #observations: ProcessObservations[] = [];
  #analysers: readonly (Analyser | undefined)[] = [];
  readonly #queueWaits: readonly QueueWaits[];
  #sampledMs = 0;

  /** @throws ConfigurationError naming what is wrong with the options */
  constructor(options: EmulationOptions) {
    this.options = options;
    const listener: SlotListener = {
      modelFailed: (node, error, access) => this.#noteDefect(node, error, access),
    };
    const { drainPs, combineHoldUs } = options.serving;
    const times = { drainPs, storePs: STORE_PS, holdMs: combineHoldUs / 1000 };
    this.slots = Array.from(
      { length: options.hcaCount },
      (_, node) => new Slot(node, options.config, times, listener),
    );
    this.#queueWaits = this.slots.map(() => new QueueWaits());
    this.#build();
  }

  /** The model has thrown and {@link rebuild} was not called since. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /**
   * Lets time pass until the devices are idle, or for `budgetMs` of wall time.
   * @returns milliseconds until there is something to do again: 0 while busy, Infinity when only a guest can give it
   */
  work(budgetMs: number): number {
    const nowMs = this.options.wall();
    let holdMs = Number.POSITIVE_INFINITY;
    for (const slot of this.slots) {
      const leftMs = slot.settle(nowMs);
      if (leftMs > 0 && leftMs < holdMs) holdMs = leftMs;
    }
    if (this.#hasFailed) return 0;
    if (!this.slots.some(({ isConnected }) => isConnected)) {
      this.time.standStill();
      return Number.POSITIVE_INFINITY;
    }
    try {
      return Math.min(holdMs, this.time.work(budgetMs));
    } catch (error) {
      this.#noteDefect(undefined, error, TIME_PASSING);
      return 0;
    }
  }

  /** What guests have waited for, for longer than `waitNoticeMs`, in words: each wait once. */
  waits(): string[] {
    const nowMs = this.options.wall();
    if (nowMs - this.#sampledMs < SAMPLE_MS || this.#hasFailed) return [];
    this.#sampledMs = nowMs;
    const limitMs = this.options.serving.waitNoticeMs;
    return this.slots.flatMap(({ isConnected, spin }, node) => {
      if (!isConnected) return [];
      const { rows } = this.hcas[node]!.hca.dataPath.core.qps;
      const found = [spin.sample(nowMs, limitMs), ...this.#queueWaits[node]!.sample(rows, nowMs, limitMs)];
      return found.flatMap((text) => (text === undefined ? [] : [`HCA ${node}: ${text}`]));
    });
  }

  /** The statistics of all slots, as of now. */
  ledgers(): SlotLedger[] {
    return this.slots.map((slot, node) => slotLedgerOf(slot, this.guests[node]!, this.hcas[node]!));
  }

  /** What the analysers have found so far; empty unless the options ask for an analysis. */
  analyses(): Analysis[] {
    return this.#analysers.flatMap((analyser, node) =>
      analyser === undefined ? [] : [analysisOf(analyser, this.#traceName(node), this.options.analysis)],
    );
  }

  /** The packets kept at the ends of the cable, of all builds; undefined unless the options ask for them. */
  capture(): Uint8Array<ArrayBuffer> | undefined {
    if (this.options.analysis?.capture === undefined) return undefined;
    return captureFile([...this.#captures, ...this.#capturesNow()], this.options.config.wire);
  }

  #capturesNow(): WireCapture[] {
    return this.hcas.flatMap(({ node, lp, wireLog }) =>
      wireCaptureOf(node, `${lp.name}${this.#buildText}`, wireLog),
    );
  }

  /** What all processes have recorded so far, of all builds; empty unless the options ask for a timeline. */
  observations(): ProcessObservations[] {
    return [...this.#observations, ...this.#observationsNow()];
  }

  #observationsNow(): ProcessObservations[] {
    return [...this.guests, ...this.hcas].flatMap(({ stream }) => {
      if (stream === undefined) return [];
      const collected = stream.collect();
      return [{ ...collected, process: `${collected.process}${this.#buildText}` }];
    });
  }

  /** Behind the names of processes: what the first build has recorded is not that of another. */
  get #buildText(): string {
    return this.#generation === 1 ? '' : `-${this.#generation}`;
  }

  /** Ends the analysers' logs. */
  close(): void {
    for (const analyser of this.#analysers) analyser?.close();
  }

  /** Fresh devices in all slots; the guests that used the old ones must have been dropped. */
  rebuild(): void {
    this.close();
    this.#captures.push(...this.#capturesNow());
    this.#observations.push(...this.#observationsNow());
    this.#build();
  }

  /** Every build has logs of its own: what led to a defect is kept. */
  #traceName(node: number): string {
    return `${guestName(node)}${this.#buildText}`;
  }

  #build(): void {
    const { options } = this;
    const { capture, timeline } = options.analysis ?? {};
    const watched =
      capture === undefined && timeline === undefined
        ? undefined
        : { ...(capture === undefined ? {} : { capture }), ...(timeline === undefined ? {} : { timeline }) };
    // What a shortcut leaves out would be missing in a timeline.
    const shortcuts = (options.shortcuts ?? true) && timeline === undefined;
    const plan: ServedPlan = { ...planServed({ ...options, shortcuts }), analysis: watched };
    this.plan = plan;
    this.#hasFailed = false;
    const nodes = Array.from({ length: plan.hcaCount }, (_, node) => node);
    const shared = { earlyPlacement: plan.shortcuts, zeroCopy: false };
    this.hcas = nodes.map((node) => new HcaNode(plan, node, servedNeighboursOf(plan, node), shared));
    this.guests = nodes.map((node) => new GuestNode(plan, node, options.raise, this.hcas[node]!.hca.shared));
    const open = plan.cabling === 'open' ? nodes.map((node) => makeOpenEnd(plan, node)) : [];
    const runner = new SteppedRunner([...[...this.guests, ...this.hcas].map(({ lp }) => lp), ...open]);
    this.time = new ServedTime(runner, options.serving, options.timeScale, options.wall);
    this.#generation++;
    this.#analysers = this.guests.map((guest) =>
      attachAnalyser(
        options.analysis,
        this.#traceName(guest.node),
        guest.lp,
        guest.rootComplex,
        guest.memory,
      ),
    );
    for (const slot of this.slots) slot.fit(this.guests[slot.node]!, this.time, this.#analysers[slot.node]);
  }

  /** @param node HCA whose guest was served; undefined while time passed, when the error may name it */
  #noteDefect(node: number | undefined, error: unknown, access: string): void {
    this.#hasFailed = true;
    this.defects.push(defectOf(error, { node, access, atPs: this.time.runner.instantPs }));
  }
}
