/**
 * Counters of the transport's recovery actions, by name: retries, refusals, and the packets that they leave over. All
 * of them are lawful consequences of loss, of receivers that were not ready or of absent memory; {@link
 * ViolationCounters} counts breaches of rules. Source: IBTA volume 1, 9.7.5 to 9.7.7, 9.8.
 */
const transportEvents = {
  /** RNR NAKs put into the packet queue, and received from the wire. */
  rnrNakSent: 0,
  rnrNakReceived: 1,
  /** NAKs for a PSN sequence error. */
  sequenceNakSent: 2,
  sequenceNakReceived: 3,
  /** All other NAKs: invalid request, remote access, remote operational error. */
  errorNakSent: 4,
  errorNakReceived: 5,
  /** Requests that had been executed before, and requests ahead of the expected one, which are dropped. */
  duplicateRequest: 6,
  requestOutOfSequence: 7,
  /** Responses that no request waits for, any more or yet. */
  unexpectedResponse: 8,
  /** Messages of unreliable services that found no receive WQE. */
  unreliableNoReceive: 9,
  /** Responses found missing because a later one arrived: each is an implied NAK, and is requested again. */
  missingResponse: 10,
  /** READ responses whose payload could not be read from memory: a NAK replaces each. */
  unreadableResponse: 11,
  /** Messages of unreliable connections that the right of the QP, or the key, forbids: dropped without an answer. */
  unreliableRefused: 12,
} as const;

export type TransportEvent = keyof typeof transportEvents;

export class TransportCounters {
  readonly counts = new Float64Array(Object.keys(transportEvents).length);

  count(name: TransportEvent): void {
    const index = transportEvents[name];
    this.counts[index] = this.counts[index]! + 1;
  }

  /** The counters that are not zero, by name. */
  report(): Partial<Record<TransportEvent, number>> {
    const entries = Object.entries(transportEvents).map(
      ([name, index]) => [name, this.counts[index]!] as const,
    );
    return Object.fromEntries(entries.filter(([, count]) => count > 0));
  }
}
