/**
 * Messages of the function to the root complex that wait for room at the link port: errors in the order in which they
 * were detected, then the legacy interrupt's wire.
 *
 * The outbox holds a bounded number of error messages; if it is full, another one is dropped and counted, which the standard
 * allows: error messages are hints, the status registers are the record.
 */
import type { BlockState } from '../../../sim/index.ts';
import { MESSAGE_ERR_COR, MESSAGE_ERR_FATAL, MESSAGE_ERR_NONFATAL, POSTED } from '../tlp/index.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionPort } from './function-port.ts';
import type { Intx } from './intx.ts';

const DEPTH = 8;

export interface MessageOutboxPorts {
  readonly intx: Pick<Intx, 'hasMessage' | 'takeMessage'>;
  readonly egress: {
    /** A new message waits. */
    messageAdded(): void;
  };
}

export class MessageOutbox {
  /** Error messages sent by code, and those dropped. */
  readonly sentCounts: Record<number, number> = {
    [MESSAGE_ERR_COR]: 0,
    [MESSAGE_ERR_NONFATAL]: 0,
    [MESSAGE_ERR_FATAL]: 0,
  };
  droppedCount = 0;

  readonly #port: FunctionPort;
  readonly #trafficClass: number;
  readonly #codes: number[] = [];
  #ports!: MessageOutboxPorts;

  constructor({ port, messageTrafficClass }: Pick<FunctionCore, 'port' | 'messageTrafficClass'>) {
    this.#port = port;
    this.#trafficClass = messageTrafficClass;
  }

  connect(ports: MessageOutboxPorts): void {
    this.#ports = ports;
  }

  get hasMessage(): boolean {
    return this.#codes.length > 0 || this.#ports.intx.hasMessage;
  }

  /** Queues an error message at a clock edge; it leaves at the next edge at the earliest. */
  addError(messageCode: number): void {
    if (this.#codes.length === DEPTH) this.droppedCount++;
    else this.#codes.push(messageCode);
    this.#ports.egress.messageAdded();
  }

  /** Sends one message, if any waits and the port has room. */
  send(): void {
    if (!this.hasMessage || !this.#port.canSend(POSTED)) return;
    const error = this.#codes.shift();
    if (error !== undefined) this.sentCounts[error] = this.sentCounts[error]! + 1;
    const code = error ?? this.#ports.intx.takeMessage();
    this.#port.sendMessage(code, this.#trafficClass, this.#port.completerId);
  }

  /** Forgets unsent errors: the wire belongs to the legacy interrupt. */
  reset(): void {
    this.#codes.length = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { errors: [...this.#codes] };
  }
}
