/**
 * Egress of the function: completions, messages of errors and of the legacy interrupt, and pending MSI-X interrupts. At most
 * one of each in a cycle.
 *
 *     completer ── answer, when it is ready ──┐
 *     outbox ──── message, if there is room ──┼─► link port
 *     msix ────── pending ─► message sender ──┘
 */
import type { Cycles } from '../../../base/index.ts';
import type { ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import type { LinkSender } from '../link/index.ts';
import { POSTED } from '../tlp/index.ts';
import type { Completer } from './completer.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionPort } from './function-port.ts';
import type { MessageOutbox } from './message-outbox.ts';
import type { Msix } from './msix.ts';

export interface FunctionEgressPorts {
  readonly completer: Pick<Completer, 'send'>;
  readonly outbox: Pick<MessageOutbox, 'hasMessage' | 'send'>;
  readonly msix: Pick<Msix, 'pendingCount' | 'deliverPending'>;
}

export class FunctionEgress implements LinkSender {
  readonly #process: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: FunctionPort;
  readonly #stage: number;
  #ports!: FunctionEgressPorts;

  constructor({ process, domain, port }: FunctionCore) {
    this.#process = process;
    this.#domain = domain;
    this.#port = port;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect(ports: FunctionEgressPorts): void {
    this.#ports = ports;
  }

  /** See LinkSender: completions and messages wait for room. */
  linkSpace(): void {
    this.#domain.wakeAfter(this.#stage, this.#process.nowPs);
  }

  /** Something may be sent from `cycle` on. */
  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** A message was put into the outbox, at the edge being run. */
  messageAdded(): void {
    this.#domain.wake(this.#stage, this.#domain.cycle + 1);
  }

  #run(cycle: Cycles): void {
    const { completer, outbox, msix } = this.#ports;
    const answerCycle = completer.send(cycle);
    if (answerCycle !== Number.POSITIVE_INFINITY) this.#domain.wake(this.#stage, answerCycle);
    if (outbox.hasMessage) {
      outbox.send();
      if (outbox.hasMessage && this.#port.canSend(POSTED)) this.#domain.wake(this.#stage, cycle + 1);
    }
    if (msix.pendingCount > 0 && msix.deliverPending(cycle)) this.#domain.wake(this.#stage, cycle + 1);
  }
}
