/**
 * Egress of the root complex: one TLP per edge, completions of the device's reads and requests of the cores in turn. While
 * nothing else is due in the process, completions leave edge after edge in one loop (sim/run-ahead.ts).
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain, LogicalProcess, RunAhead } from '../../../sim/index.ts';
import type { LinkSender } from '../link/index.ts';
import type { RootComplexCpu } from './root-complex-cpu.ts';
import type { RootComplexParts } from './root-complex-parts.ts';
import type { RootComplexReads } from './root-complex-reads.ts';

export interface RootComplexEgressPorts {
  readonly reads: Pick<RootComplexReads, 'early' | 'isReady' | 'nextCycle' | 'complete'>;
  readonly cpu: Pick<RootComplexCpu, 'readyQueue' | 'send' | 'wakeEgress'>;
}

export interface EgressParts extends Pick<RootComplexParts, 'lp' | 'domain'> {
  /** The device offers destinations for the bytes of completions: several may leave at a time. */
  readonly hasEarlyPlaces: boolean;
}

export class RootComplexEgress implements LinkSender {
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #runAhead: RunAhead;
  readonly #stage: number;
  #reads!: RootComplexEgressPorts['reads'];
  #cpu!: RootComplexEgressPorts['cpu'];
  /** If a completion and a core both have a TLP ready, it is the core's turn. */
  #completionWasLast = false;

  constructor({ lp, domain, hasEarlyPlaces }: EgressParts) {
    this.#lp = lp;
    this.#domain = domain;
    this.#runAhead = lp.runAhead;
    const isPlain = !lp.runAhead.isOn && !hasEarlyPlaces;
    this.#stage = domain.addStage(isPlain ? this.#run : this.#runOn, this);
  }

  connect({ reads, cpu }: RootComplexEgressPorts): void {
    this.#reads = reads;
    this.#cpu = cpu;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { completionWasLast: this.#completionWasLast };
  }

  /** Something may be sent from `cycle` on. */
  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** See LinkSender. */
  linkSpace(): void {
    this.wakeNow();
  }

  /** Something may be sent from the next edge on. */
  wakeNow(): void {
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  #run(cycle: Cycles): void {
    const next = this.#runAt(cycle);
    if (next >= 0) this.#domain.wake(this.#stage, next);
  }

  /** Does the work due at an edge. Returns the cycle at which the next completion is ready, -1 if another event wakes the stage. */
  #runAt(cycle: Cycles): number {
    this.#sendOne(cycle);
    // This wakes the senders that wait for room in the link.
    this.#cpu.wakeEgress(cycle + 1);
    return this.#reads.nextCycle(cycle + 1);
  }

  /** Runs on at edge `cycle` and at later edges, while nothing else is due. */
  #runOn(cycle: Cycles): void {
    let edge = this.#runAt(cycle);
    for (;;) {
      if (edge >= 0 && this.#completeOn(edge)) edge = this.#reads.nextCycle(this.#domain.cycle + 1);
      if (edge < 0 || !this.#runAhead.passTo(this.#domain, this.#stage, edge)) break;
      edge = this.#runAt(edge);
    }
    if (edge >= 0) this.#domain.wake(this.#stage, edge);
    this.#reads.early?.placeData();
  }

  /** Hands over completions at edge `cycle` and later. Returns whether any was handed over. */
  #completeOn(cycle: Cycles): boolean {
    const { early } = this.#reads;
    if (early === undefined) return false;
    const last = this.#runAhead.lastPassable(this.#domain, this.#stage);
    if (last < cycle || !early.completeOn(cycle, last)) return false;
    this.#completionWasLast = true;
    return true;
  }

  /** One TLP per edge to the link; if a completion and a core both have one ready, they take turns. */
  #sendOne(cycle: Cycles): void {
    const reads = this.#reads;
    const coreQueue = this.#cpu.readyQueue(cycle);
    if (reads.isReady(cycle) && !(coreQueue !== undefined && this.#completionWasLast)) {
      reads.complete(cycle);
      this.#completionWasLast = true;
    } else if (coreQueue !== undefined) {
      this.#cpu.send(coreQueue);
      this.#completionWasLast = false;
    }
  }
}
