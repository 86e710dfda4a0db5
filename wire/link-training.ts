/**
 * Link training of two ports: a link is up only while both ends are enabled.
 *
 *              enable, send TS1                TS1 or TS2, send TS2           TS2             trainingUs later
 *     disabled ───────────────▶ polling ────────────────────▶ configuration ────▶ confirmed ────────────────▶ up
 *         ▲                        ▲                                                                          │
 *         └── disable, send DOWN ──┴───────────── DOWN, or TS1 of an end that starts over ────────────────────┘
 *
 * TS1 means "I am polling", TS2 "I have seen you". A real port repeats them until answered; here each is sent once,
 * which suffices on a lossless channel: the training of the end that is enabled last reaches the other end. The
 * physical states are those of PortInfo (InfiniBand Architecture Specification, volume 1, 14.2.5.6; training: volume 2,
 * 5.6).
 */

import type { Picoseconds } from '../base/index.ts';
import type { EventQueue, EventRef, LogicalProcess } from '../sim/index.ts';

const PS_PER_US = 1_000_000;

/** PortPhysicalState of PortInfo. */
export const PhysicalState = { POLLING: 2, DISABLED: 3, TRAINING: 4, LINK_UP: 5 } as const;

export const TrainingStep = { TS1: 1, TS2: 2, DOWN: 3 } as const;

export interface LinkTrainingPorts {
  readonly sender: {
    /** Tells the other end a TrainingStep. */
    sendStep(step: number): void;
  };
  readonly port: {
    linkChanged(isUp: boolean): void;
  };
}

export class LinkTraining {
  physicalState: number = PhysicalState.DISABLED;
  #isConfirmed = false;
  readonly #queue: EventQueue;
  readonly #trainingPs: Picoseconds;
  readonly #lp: Pick<LogicalProcess, 'nowPs'>;
  readonly #completeEvent: number;
  #completeRef: EventRef = 0;
  #ports!: LinkTrainingPorts;

  constructor(lp: Pick<LogicalProcess, 'nowPs' | 'queue'>, config: { readonly trainingUs: number }) {
    this.#lp = lp;
    this.#queue = lp.queue;
    this.#trainingPs = config.trainingUs * PS_PER_US;
    this.#completeEvent = lp.queue.addHandler(() => this.#complete());
  }

  connect(ports: LinkTrainingPorts): void {
    this.#ports = ports;
  }

  get isEnabled(): boolean {
    return this.physicalState !== PhysicalState.DISABLED;
  }

  get isUp(): boolean {
    return this.physicalState === PhysicalState.LINK_UP;
  }

  setEnabled(isEnabled: boolean): void {
    if (isEnabled === this.isEnabled) return;
    if (isEnabled) {
      this.physicalState = PhysicalState.POLLING;
      this.#ports.sender.sendStep(TrainingStep.TS1);
    } else {
      this.#leave(PhysicalState.DISABLED);
      this.#ports.sender.sendStep(TrainingStep.DOWN);
    }
  }

  stepReceived(step: number): void {
    if (!this.isEnabled) return;
    if (step === TrainingStep.DOWN) {
      this.#leave(PhysicalState.POLLING);
    } else if (step === TrainingStep.TS1) {
      this.#leave(PhysicalState.TRAINING);
      this.#ports.sender.sendStep(TrainingStep.TS2);
    } else if (this.physicalState === PhysicalState.POLLING) {
      this.physicalState = PhysicalState.TRAINING;
      this.#ports.sender.sendStep(TrainingStep.TS2);
      this.#confirm();
    } else if (this.physicalState === PhysicalState.TRAINING && !this.#isConfirmed) {
      this.#confirm();
    }
  }

  /** Both ends have seen each other: the link is up after the training time. */
  #confirm(): void {
    this.#isConfirmed = true;
    this.#completeRef = this.#queue.schedule(this.#lp.nowPs + this.#trainingPs, this.#completeEvent);
  }

  #complete(): void {
    this.physicalState = PhysicalState.LINK_UP;
    this.#ports.port.linkChanged(true);
  }

  #leave(physicalState: number): void {
    const wasUp = this.isUp;
    if (this.#isConfirmed && !wasUp) this.#queue.cancel(this.#completeRef);
    this.#isConfirmed = false;
    this.physicalState = physicalState;
    if (wasUp) this.#ports.port.linkChanged(false);
  }
}
