/**
 * Rules of faults: which of the packets that leave a port a fault concerns, by what is in their headers, by count and by chance.
 *
 *     headers (QPN, PSN, opcode, direction) ──▶ nth of those ──▶ chance ──▶ shots left ──▶ the fault
 *
 * Every rule sees every packet, so that its count and its random numbers are its own: a further rule changes no other's choice.
 */
import { assertRange } from '../base/index.ts';
import type { Random } from '../sim/index.ts';
import { isDatagram, isRequest } from './opcodes.ts';
import { PSN_MASK } from './psn.ts';

const ALWAYS = Number.POSITIVE_INFINITY;
/** Connections whose first PSN a rule keeps, at most; of further ones no packet counts as one of its PSNs. */
const CONNECTIONS_MAX = 65_536;

/** Headers of a packet that is about to leave. */
export interface OutboundHeaders {
  readonly opcode: number;
  /** Of the BTH. */
  readonly destinationQpn: number;
  readonly psn: number;
}

/** In place of headers: a PAUSE frame, which no rule concerns but those that name such frames. */
export const PAUSE_FRAME = 'pause frame';

/** PSNs, both included; counted from the first PSN that the rule has seen of the connection's direction, or absolute. */
export interface PsnRange {
  readonly first: number;
  readonly last: number;
  readonly isRelative: boolean;
}

/** Which packets are concerned. What is left out holds for all of them. */
export interface PacketSelection {
  readonly destinationQpn?: number | undefined;
  readonly psns?: PsnRange | undefined;
  readonly opcode?: number | undefined;
  readonly only?: 'requests' | 'responses' | 'datagrams' | 'pauses' | undefined;
  /** Which of the packets with such headers, from 1, both included. */
  readonly first?: number | undefined;
  readonly last?: number | undefined;
  /** Of those, how probable it is that one is concerned. */
  readonly chance?: { readonly probability: number; readonly random: Random } | undefined;
  /** How often the fault happens at most. */
  readonly shots?: number | undefined;
}

/** Notified of a fault. */
export interface FaultObserver {
  /** It has happened. */
  fired(): void;
}

export class PacketRule<Effect> {
  readonly effect: Effect;
  readonly #selection: PacketSelection;
  readonly #observer: FaultObserver;
  #shotsLeft: number;
  #matchCount = 0;
  /** First PSN of each connection and direction, where PSNs are relative. */
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
   * Whether the packet is concerned; to be asked once for every packet, in their order.
   * @param packet undefined where it has no such headers, as frames of other protocols
   */
  concerns(packet: OutboundHeaders | typeof PAUSE_FRAME | undefined): boolean {
    const { first = 1, last = ALWAYS, chance } = this.#selection;
    if (!this.#hasHeaders(packet)) return false;
    const nth = ++this.#matchCount;
    if (nth < first || nth > last) return false;
    if (chance !== undefined && !chance.random.chance(chance.probability)) return false;
    return this.#shotsLeft > 0;
  }

  /** The fault has happened to a packet that is concerned. */
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
    if (!isRelative) return psn >= first && psn <= last;
    // Requests and responses to one QP have PSNs of their own.
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
