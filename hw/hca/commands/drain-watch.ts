/**
 * Watches the send queues that drain: software gets an event when the last request of one is done (SQD).
 * Source: InfiniBand Architecture volume 1, 10.3.1.
 */
import { EventType } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import type { EventWriter } from '../events/index.ts';
import type { DataPathControl } from '../host-interface/index.ts';
import type { ContextTable, QpSlot } from '../objects/index.ts';
import type { ControlConfig } from './command-parameters.ts';

export interface DrainWatchPorts {
  readonly dataPath: Pick<DataPathControl, 'qpIsDraining' | 'qpIsInError'>;
  readonly events: Pick<EventWriter, 'canPost' | 'postQpEvent'>;
}

/** Parts of the device that {@link DrainWatch} uses. */
export interface DrainWatchSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<ControlConfig, 'conditionPollCycles'>;
  readonly qps: Pick<ContextTable<'QP'>, 'numberOf'>;
}

export class DrainWatch {
  readonly #domain: ClockDomain;
  readonly #pollCycles: number;
  readonly #qps: DrainWatchSetup['qps'];
  readonly #stage: number;
  #ports!: DrainWatchPorts;
  /** QPs that owe software an event when their send queue has drained. */
  readonly #draining = new Set<QpSlot>();
  /** Polls of draining queues since the last of them began or ended. */
  #pollCount = 0;

  constructor({ domain, config, qps }: DrainWatchSetup) {
    this.#domain = domain;
    this.#pollCycles = config.conditionPollCycles;
    this.#qps = qps;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect(ports: DrainWatchPorts): void {
    this.#ports = ports;
  }

  /** Watches a QP in state SQD for which software requests the event. */
  watch(slot: QpSlot): void {
    this.#draining.add(slot);
    this.#pollCount = 0;
    this.#domain.wake(this.#stage, this.#domain.cycle + 1);
  }

  /** The QP has left state SQD: it owes no event any more. */
  forget(slot: QpSlot): void {
    this.#draining.delete(slot);
  }

  reset(): void {
    this.#draining.clear();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { draining: [...this.#draining] };
  }

  #run(cycle: Cycles): void {
    const draining = this.#draining;
    const { dataPath, events } = this.#ports;
    for (const slot of draining) {
      if (dataPath.qpIsDraining(slot)) continue;
      // A queue that failed while it drained is flushed: no state needs to be changed and restored (IBTA vol 1,
      // 10.3.1).
      if (dataPath.qpIsInError(slot)) {
        draining.delete(slot);
        continue;
      }
      if (!events.canPost()) continue;
      events.postQpEvent(EventType.SQ_DRAINED, this.#qps.numberOf[slot]!, cycle);
      draining.delete(slot);
      this.#pollCount = 0;
    }
    if (draining.size === 0) return;
    // The distance doubles after every 1,024 polls: a queue that drains for hours needs few of them, and its event is
    // late by at most a thousandth of that time.
    const distance = this.#pollCycles * 2 ** Math.min(24, this.#pollCount++ >> 10);
    this.#domain.wake(this.#stage, cycle + distance);
  }
}
