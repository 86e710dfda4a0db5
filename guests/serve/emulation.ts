/**
 * A served machine in its own thread: the slots that guests use, the devices in them, and time.
 *
 *     Reactor ─► Slot ─► GuestNode ══ HcaNode ══╗        work(budget): time passes, until idle or for the budget
 *     Reactor ─► Slot ─► GuestNode ══ HcaNode ══╝        (or PeerHost: a simulated host with its program)
 *
 * If the model throws (a defect of the emulator, never a guest's fault) the devices are rebuilt, the guests that used them must
 * be dropped, and the report mentions it.
 */

import type { Analyser } from '../../analyser/index.ts';
import {
  type Analysis,
  type AnalysisOptions,
  analysisOf,
  attachAnalyser,
  captureFile,
  droppedOf,
} from '../../machine/analysis/index.ts';
import type { Evidence } from '../../machine/evidence/index.ts';
import {
  HcaNode,
  hcaLedgerOf,
  hostLedgerOf,
  type JsonValue,
  type NicNode,
  nicLedgerOf,
  type ValueTaken,
  type WireCapture,
  wireCapturesOf,
} from '../../machine/index.ts';
import type { DroppedRecords } from '../../machine/timeline/index.ts';
import { type ProcessObservations, SteppedRunner } from '../../sim/index.ts';
import { type Defect, defectOf } from './defect.ts';
import type { EmulationTime } from './emulation-time.ts';
import { FabricPart } from './fabric-part.ts';
import { GuestNode } from './guest-node.ts';
import type { RaiseInterrupt } from './interrupt-lines.ts';
import { makeOpenEnd } from './open-end.ts';
import type { ServingConfig } from './parameters.ts';
import { isPeerFailure, PeerHost, type PeerProgram, peerNode, stepPrograms } from './peer-host.ts';
import type { PeerLedgers } from './serve-report.ts';
import {
  guestName,
  planServed,
  type ServedChoice,
  type ServedPlan,
  servedNeighboursOf,
} from './served-plan.ts';
import type { WallClock } from './served-time.ts';
import { Slot, type SlotListener } from './slot.ts';
import { type SlotLedger, slotLedgerOf } from './slot-ledger.ts';
import { QueueWaits } from './wait-watch.ts';
import { type FrameTaken, WireEnd } from './wire-end.ts';

export interface EmulationOptions extends Omit<ServedChoice, 'hasPeer'> {
  readonly serving: ServingConfig;
  /** Decides when time passes for the processes of a build. */
  readonly makeTime: (runner: SteppedRunner) => EmulationTime;
  /** The clock of guests, in milliseconds: patience with their half-done posts and waits is measured by it. */
  readonly wall: WallClock;
  readonly raise: RaiseInterrupt;
  readonly analysis: AnalysisOptions | undefined;
  /** The program of a simulated host at the other end of the cable; left out: no such host. */
  readonly peer?: PeerProgram | undefined;
  /** Receives values that this program puts into the exchange. */
  readonly onValue?: ValueTaken | undefined;
  /** Receives frames from the cable to a third-party endpoint. */
  readonly onFrame?: FrameTaken | undefined;
}

const STORE_PS = 1_000_000;
/** Wall time between two checks of what guests wait for. */
const SAMPLE_MS = 500;
/** A value takes at most 8.3 KiB of the exchange's channel, which holds 256 unless a smaller size is requested. */
const valuesUnderWayMax = 8;
const TIME_PASSING = 'time passing';

export class Emulation {
  readonly options: EmulationOptions;
  readonly slots: readonly Slot[];
  readonly defects: Defect[] = [];
  plan!: ServedPlan;
  guests: readonly GuestNode[] = [];
  hcas: readonly HcaNode[] = [];
  /** The simulated hosts and switches of a fabric, if there is one. */
  fabric: FabricPart | undefined;
  /** The simulated host, if there is one. */
  peer: PeerHost | undefined;
  /** The far end of a cable to a third-party endpoint, if there is one. */
  wireEnd: WireEnd | undefined;
  #isPlugged = false;
  time!: EmulationTime;
  #hasFailed = false;
  #hasPeerFailed = false;
  /** Values that enter the exchange when it has room. */
  readonly #waitingValues: (readonly [name: string, value: JsonValue])[] = [];
  /** Wall time at which a guest was last present. */
  #servedMs = Number.NEGATIVE_INFINITY;
  /** Builds so far. */
  #generation = 0;
  /** Packets of the cables of earlier builds. */
  readonly #captures: WireCapture[] = [];
  /** Records of the processes of earlier builds. */
  readonly #observations: ProcessObservations[] = [];
  #analysers: readonly (Analyser | undefined)[] = [];
  readonly #queueWaits: readonly QueueWaits[];
  #sampledMs = 0;

  /** @throws ConfigurationError naming the invalid option */
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

  /** The model has thrown an error and {@link rebuild} was not called since. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** The simulated host's software ended the run: time passes again only after {@link rebuild}. */
  get hasPeerFailed(): boolean {
    return this.#hasPeerFailed;
  }

  /** Puts a value into the exchange with the simulated host's program, after those that wait for room there. */
  putValue(name: string, value: JsonValue): void {
    this.#waitingValues.push([name, value]);
    this.#feedExchange();
  }

  /** Few values are in flight at once, so the channel has room for them regardless of outside input. */
  get #hasRoomForValues(): boolean {
    const { putCount = 0 } = this.guests[0]?.exchange ?? {};
    return this.peer !== undefined && putCount - this.peer.arrivedCount < valuesUnderWayMax;
  }

  #feedExchange(): void {
    const exchange = this.guests[0]?.exchange;
    if (exchange === undefined || this.#hasFailed) return;
    while (this.#hasRoomForValues) {
      const [next] = this.#waitingValues.splice(0, 1);
      if (next === undefined) return;
      this.time.arrive();
      exchange.put(...next);
      this.time.touched();
    }
  }

  /** A third-party endpoint has connected at the far end of the cable, or disconnected. */
  setPlugged(isPlugged: boolean): void {
    this.#isPlugged = isPlugged;
    this.#atWireEnd((end) => end.setPlugged(isPlugged));
  }

  /** Whether {@link takeFrame} has room for a frame. */
  get hasRoomForFrame(): boolean {
    return this.wireEnd?.hasRoom ?? false;
  }

  /** Accepts a frame of the third-party endpoint at the far end of the cable. */
  takeFrame(bytes: Uint8Array, at: number, lengthBytes: number): void {
    this.#atWireEnd((end) => end.take(bytes, at, lengthBytes));
  }

  #atWireEnd(act: (end: WireEnd) => void): void {
    if (this.wireEnd === undefined || this.#hasFailed) return;
    try {
      this.time.arrive();
      act(this.wireEnd);
      this.time.touched();
    } catch (error) {
      this.#noteDefect(undefined, error, 'a frame of the stranger');
    }
  }

  /**
   * Lets time pass until the devices are idle, or for `budgetMs` of wall time.
   * @returns milliseconds until the next work: 0 while busy, Infinity if only a guest can cause it
   */
  work(budgetMs: number): number {
    const nowMs = this.options.wall();
    let holdMs = Number.POSITIVE_INFINITY;
    for (const slot of this.slots) {
      const leftMs = slot.settle(nowMs);
      if (leftMs > 0 && leftMs < holdMs) holdMs = leftMs;
    }
    if (this.#hasFailed) return 0;
    this.#feedExchange();
    if (!this.#isServing(nowMs)) {
      this.time.standStill();
      return Number.POSITIVE_INFINITY;
    }
    try {
      const dueMs = Math.min(holdMs, this.time.work(budgetMs));
      return this.#waitingValues.length > 0 && this.#hasRoomForValues ? 0 : dueMs;
    } catch (error) {
      this.#noteDefect(undefined, error, TIME_PASSING);
      return 0;
    }
  }

  /** Instead of {@link work}: no time passes until the next access or the next work. */
  standStill(): void {
    this.time.standStill();
  }

  /** A guest is present; or was a moment ago, and the simulated host's program has not ended: it may still notice the guest's end. */
  #isServing(nowMs: number): boolean {
    if (this.slots.some(({ isConnected }) => isConnected)) {
      this.#servedMs = nowMs;
      return true;
    }
    const { peer } = this;
    return peer !== undefined && nowMs - this.#servedMs <= this.options.serving.peerGraceMs && !peer.hasEnded;
  }

  /** Waits of guests longer than `waitNoticeMs`, in words: each wait once. */
  waits(): string[] {
    const nowMs = this.options.wall();
    if (nowMs - this.#sampledMs < SAMPLE_MS || this.#hasFailed) return [];
    this.#sampledMs = nowMs;
    const limitMs = this.options.serving.waitNoticeMs;
    return this.slots.flatMap(({ isConnected, spin }, node) => {
      if (!isConnected) return [];
      const { rows } = this.hcas[node]!.hca.dataPath.parts.qps;
      const found = [spin.sample(nowMs, limitMs), ...this.#queueWaits[node]!.sample(rows, nowMs, limitMs)];
      return found.flatMap((text) => (text === undefined ? [] : [`HCA ${node}: ${text}`]));
    });
  }

  /** The statistics of all slots, as of now. */
  ledgers(): SlotLedger[] {
    return this.slots.map((slot, node) => slotLedgerOf(slot, this.guests[node]!, this.hcas[node]!));
  }

  /** The statistics of the simulated host and its adapter, as of now. */
  peerLedgers(): PeerLedgers | undefined {
    const { peer } = this;
    if (peer === undefined) return undefined;
    const { host, hca, nic } = peer;
    return { host: hostLedgerOf(host), hca: hca && hcaLedgerOf(hca), nic: nic && nicLedgerOf(nic) };
  }

  /** Findings of the analysers so far; empty unless the options request an analysis. */
  analyses(): Analysis[] {
    return this.#analysers.flatMap((analyser, node) =>
      analyser === undefined ? [] : [analysisOf(analyser, this.#traceName(node), this.options.analysis)],
    );
  }

  /** The packets kept at the ends of the cable, of all builds; undefined unless the options ask for them. */
  capture(): Uint8Array<ArrayBuffer> | undefined {
    if (this.options.analysis?.capture === undefined) return undefined;
    return captureFile([...this.#captures, ...this.#capturesNow()]);
  }

  /** Evidence of why requests failed, in this build; for the simulated host including its programs' calls. */
  evidence(): Evidence {
    const { peer } = this;
    const journals = this.#allAdapters.flatMap((adapter) =>
      'journal' in adapter && adapter.journal !== undefined ? [adapter.journal] : [],
    );
    const host = peer?.host;
    return {
      topology: this.plan.topology,
      devices: journals.map((journal) => journal.collect()),
      hosts: host?.journal === undefined ? [] : [host.journal.collect(host.host)],
    };
  }

  /** Number of packets kept by {@link capture} at each end, and number that arrived when it was full. */
  captureDrops(): DroppedRecords[] {
    return [...this.#captures, ...this.#capturesNow()].map(droppedOf);
  }

  #capturesNow(): WireCapture[] {
    return this.#allAdapters.flatMap(({ node, lp, wireLogs }) =>
      wireCapturesOf(node, `${lp.name}${this.#buildText}`, wireLogs),
    );
  }

  /** Records of all processes so far, of all builds; empty unless the options request a timeline. */
  observations(): ProcessObservations[] {
    return [...this.#observations, ...this.#observationsNow()];
  }

  #observationsNow(): ProcessObservations[] {
    const hosts = [...(this.peer === undefined ? [] : [this.peer.host]), ...(this.fabric?.hosts ?? [])];
    return [...this.guests, ...hosts, ...this.#allAdapters].flatMap(({ stream }) => {
      if (stream === undefined) return [];
      const collected = stream.collect();
      return [{ ...collected, process: `${collected.process}${this.#buildText}` }];
    });
  }

  /** HCAs that are served, and the simulated host's. */
  get #allAdapters(): (HcaNode | NicNode)[] {
    const peers = this.peer === undefined ? [] : [this.peer.adapter];
    return [...this.hcas, ...peers, ...(this.fabric?.hcas ?? [])];
  }

  /** Suffix of process names: records of the first build must not be mixed with those of another. */
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

  /** Every build has its own logs: the events before a defect are kept. */
  #traceName(node: number): string {
    return `${guestName(node)}${this.#buildText}`;
  }

  #build(): void {
    const { options } = this;
    const { capture, timeline, evidence } = options.analysis ?? {};
    const watched =
      capture === undefined && timeline === undefined && evidence === undefined
        ? undefined
        : {
            ...(capture === undefined ? {} : { capture }),
            ...(timeline === undefined ? {} : { timeline }),
            ...(evidence === undefined ? {} : { evidence }),
          };
    // Events skipped by a shortcut would be missing in a timeline.
    const shortcuts = (options.shortcuts ?? true) && timeline === undefined;
    const hasPeer = options.peer !== undefined;
    const plan: ServedPlan = { ...planServed({ ...options, shortcuts, hasPeer }), analysis: watched };
    this.plan = plan;
    this.#hasFailed = false;
    this.#hasPeerFailed = false;
    const nodes = Array.from({ length: plan.hcaCount }, (_, node) => node);
    const shared = { earlyPlacement: plan.shortcuts, zeroCopy: false };
    this.hcas = nodes.map((node) => new HcaNode(plan, node, servedNeighboursOf(plan, node), shared));
    const { raise, onValue = () => {} } = options;
    this.guests = nodes.map((node) => new GuestNode(plan, node, raise, this.hcas[node]!.hca.shared, onValue));
    const open = plan.cabling === 'open' ? nodes.map((node) => makeOpenEnd(plan, node)) : [];
    const { onFrame = () => {} } = options;
    this.wireEnd = plan.cabling === 'socket' ? new WireEnd(plan, 0, onFrame) : undefined;
    if (this.wireEnd !== undefined) open.push(this.wireEnd.lp);
    this.wireEnd?.setPlugged(this.#isPlugged);
    if (plan.peer !== undefined && options.peer !== undefined)
      this.peer = new PeerHost({ ...plan.peer, channels: plan.channels, analysis: watched }, options.peer);
    this.fabric =
      plan.fabric === undefined
        ? undefined
        : new FabricPart({ ...plan.fabric, analysis: watched }, plan.peer && peerNode);
    const own = [...this.guests, ...this.hcas].map(({ lp }) => lp);
    const runner =
      this.peer === undefined && this.fabric === undefined
        ? new SteppedRunner([...own, ...open])
        : new SteppedRunner(
            [...own, ...(this.peer?.processes ?? []), ...(this.fabric?.processes ?? [])],
            stepPrograms,
          );
    this.time = options.makeTime(runner);
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
    if (this.peer !== undefined && isPeerFailure(error)) {
      this.#hasPeerFailed = true;
      this.peer.fail(error);
      return;
    }
    this.defects.push(defectOf(error, { node, access, atPs: this.time.runner.instantPs }));
  }
}
