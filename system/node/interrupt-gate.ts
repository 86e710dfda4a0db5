/**
 * The way of interrupt messages from the root complex to the interrupt controller, with the faults that a plan injects:
 * messages that get lost, and messages that the device never sent. Counts what passes, for the balance of interrupts.
 */
import type { InterruptController } from '../../host/index.ts';
import type { InterruptSink } from '../../hw/pcie/index.ts';
import type { LogicalProcess } from '../../sim/index.ts';

export class InterruptGate implements InterruptSink {
  readonly #lp: LogicalProcess;
  readonly #controller: InterruptController;
  readonly #lost = new Set<number>();
  readonly #raiseHandler: number;
  /** Messages that came from the device, those lost here, and those invented here. */
  messageCount = 0;
  lostCount = 0;
  spuriousCount = 0;

  constructor(lp: LogicalProcess, controller: InterruptController) {
    this.#lp = lp;
    this.#controller = controller;
    this.#raiseHandler = lp.queue.addHandler((vector) => this.#raise(vector));
  }

  /** The nth message from the device, counted from 1, never arrives. */
  lose(nth: number): void {
    this.#lost.add(nth);
  }

  /** A message of `vector` arrives at `atPs` although the device sent none. */
  raiseAt(vector: number, atPs: number): void {
    this.#lp.queue.schedule(atPs, this.#raiseHandler, vector);
  }

  message(address: number, data: number): void {
    this.messageCount++;
    if (this.#lost.has(this.messageCount)) this.lostCount++;
    else this.#controller.message(address, data);
  }

  intx(pin: number, isAsserted: boolean): void {
    this.#controller.intx(pin, isAsserted);
  }

  #raise(vector: number): void {
    this.spuriousCount++;
    const { address, data } = this.#controller.messageFor(vector);
    this.#controller.message(address, data);
  }
}
