/**
 * Rules of faults: they select packets that leave a port, by header fields, by count and at random.
 *
 *     headers (QPN, PSN, opcode, direction) ──▶ nth of those ──▶ chance ──▶ shots left ──▶ the fault
 *
 * Every rule sees every packet, with its own count and random numbers: another rule does not change its choice.
 */
import { assertRange } from '../base/index.ts';
import type { Random } from '../sim/index.ts';
import { isDatagram, isRequest, Opcode } from './opcodes.ts';
import { PSN_MASK } from './psn.ts';

const ALWAYS = Number.POSITIVE_INFINITY;
/** Limit of connections whose first PSN a rule keeps; packets of further ones match none of its PSNs. */
const CONNECTIONS_MAX = 65_536;

/** Headers of a packet about to leave. */
export interface OutboundHeaders {
  readonly opcode: number;
  /** Fields of the BTH. */
  readonly destinationQpn: number;
  readonly psn: number;
}

/** Used instead of headers: a PAUSE frame, matched only by rules that name such frames. */
export const PAUSE_FRAME = 'pause frame';

/** PSNs, both included; counted from the first PSN that the rule has seen of the connection's direction, or absolute. */
export interface PsnRange {
  readonly first: number;
  readonly last: number;
  readonly isRelative: boolean;
}

/** Matching packets. A criterion left out matches all of them. */
export interface PacketSelection {
  readonly destinationQpn?: number | undefined;
  readonly psns?: PsnRange | undefined;
  readonly opcode?: number | undefined;
  readonly only?: 'requests' | 'responses' | 'datagrams' | 'pauses' | undefined;
  /** Numbers of the matching packets, from 1, both included. */
  readonly first?: number | undefined;
  readonly last?: number | undefined;
  /** Probability with which one of these packets is selected. */
  readonly chance?: { readonly probability: number; readonly random: Random } | undefined;
  /** Limit of the fault's occurrences. */
  readonly shots?: number | undefined;
}

/** Notified of a fault. */
export interface FaultObserver {
  /** It has occurred. */
  fired(): void;
}

export class PacketRule<Effect> {
  readonly effect: Effect;
  readonly #selection: PacketSelection;
  readonly #observer: FaultObserver;
  #shotsLeft: number;
  #matchCount = 0;
  /** First PSN of each connection and direction, if PSNs are relative. */
  readonly #firstPsns = new Map<number, number>();

  constructor(effect: Effect, selection: PacketSelection, observer: FaultObserver) {
    this.effect = effect;
    this.#selection = selection;
    this.#observer = observer;
    this.#shotsLeft = assertRange(
      'shots',
      selection.shots ?? Number.MAX_SAFE_INTEGER,
      1,
      Number.MAX_SAFE_INTEGER,
    );
  }

  /**
   * Whether the rule selects the packet; called once for every packet, in order.
   * @param packet undefined if it has no such headers, like frames of other protocols
   */
  concerns(packet: OutboundHeaders | typeof PAUSE_FRAME | undefined): boolean {
    const { first = 1, last = ALWAYS, chance } = this.#selection;
    if (!this.#hasHeaders(packet)) return false;
    const nth = ++this.#matchCount;
    if (nth < first || nth > last) return false;
    if (chance !== undefined && !chance.random.chance(chance.probability)) return false;
    return this.#shotsLeft > 0;
  }

  /** The fault has occurred for a selected packet. */
  fired(): void {
    this.#shotsLeft--;
    this.#observer.fired();
  }

  #hasHeaders(packet: OutboundHeaders | typeof PAUSE_FRAME | undefined): boolean {
    const { destinationQpn: wantedQpn, opcode: wantedOpcode, only, psns } = this.#selection;
    if (packet === PAUSE_FRAME) return only === 'pauses' && (wantedQpn ?? wantedOpcode ?? psns) === undefined;
    if (packet === undefined) return (wantedQpn ?? wantedOpcode ?? only ?? psns) === undefined;
    const { opcode, destinationQpn, psn } = packet;
    return (
      (wantedQpn === undefined || destinationQpn === wantedQpn) &&
      (wantedOpcode === undefined || opcode === wantedOpcode) &&
      (only === undefined || only === classOf(opcode)) &&
      (psns === undefined || this.#isAmong(psns, destinationQpn, psn, opcode))
    );
  }

  #isAmong({ first, last, isRelative }: PsnRange, qpn: number, psn: number, opcode: number): boolean {
    // A CNP's PSN is 0 and numbers nothing (annexes A10 and A17).
    if (opcode === Opcode.CNP || opcode === Opcode.CNP_INFINIBAND) return false;
    if (!isRelative) return psn >= first && psn <= last;
    // Requests and responses to one QP have separate PSNs.
    const connection = qpn * 2 + (isRequest(opcode) ? 0 : 1);
    let from = this.#firstPsns.get(connection);
    if (from === undefined) {
      if (this.#firstPsns.size === CONNECTIONS_MAX) return false;
      this.#firstPsns.set(connection, psn);
      from = psn;
    }
    const distance = (psn - from) & PSN_MASK;
    return distance >= first && distance <= last;
  }
}

function classOf(opcode: number): PacketSelection['only'] {
  if (isDatagram(opcode)) return 'datagrams';
  return isRequest(opcode) ? 'requests' : 'responses';
}
