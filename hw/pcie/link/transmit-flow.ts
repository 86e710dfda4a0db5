/** State of one flow in the transmitting half of a link port. */

import { TlpCount } from '../tlp/index.ts';
import { TransmitCredits } from './flow-control.ts';
import { advertisedCredits, type LinkEndConfig } from './link-parameters.ts';
import { TransmitFifo } from './transmit-fifo.ts';

/** A block that sends TLPs of a flow, and waits while its transmit fifo is full. */
export interface LinkSender {
  /** The fifo has room again. May be called from within any call of the port: it only wakes stages at later edges. */
  linkSpace(): void;
}

export class TransmitFlow {
  /** Number of the flow in tlp-record.ts: posted, non-posted or completion. */
  readonly flow: number;
  readonly credits: TransmitCredits;
  readonly fifo: TransmitFifo;
  /** TLPs put on the lanes. */
  readonly sent = new TlpCount();
  /** The blocks whose TLPs wait while the fifo is full. */
  senders: readonly LinkSender[] = [];

  constructor(flow: number, peer: LinkEndConfig, fifoTlps: number, maxPayloadBytes: number) {
    this.flow = flow;
    const [headers, data] = advertisedCredits(peer, flow);
    this.credits = new TransmitCredits(headers, data);
    this.fifo = new TransmitFifo(fifoTlps, maxPayloadBytes);
  }

  connect({ senders }: { readonly senders: readonly LinkSender[] }): void {
    this.senders = senders;
  }
}
