/**
 * Records of packets, as a device of IBTA sees them: drops with the field that failed, refused requests, time-outs and NAKs, and the
 * requests that it served.
 */
import { EtherType } from '../../abi/index.ts';
import { mask24, viewOf } from '../../base/index.ts';
import type { Hca, QueuePair, SendRecord } from '../../hw/hca/index.ts';
import {
  bth,
  bytesBeforeGrh,
  FLAG_GRH,
  grh,
  grhPlace,
  opcodeRow,
  rnrTimerUnitsByCode,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_QKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_REQUEST_PKEY,
  WORD_RESPONSE_PKEY,
} from '../../wire/index.ts';
import { around, watchRequests } from '../timeline/index.ts';
import { gidText, macOfNumber, macText } from './address-text.ts';
import { type DropEvidence, limits, type QpStateName, type RefusalEvidence } from './evidence.ts';
import { Kept } from './kept.ts';
import { services, stateNames } from './names.ts';
import type { LiveQp, LiveQps, TransportEvidence, TransportJournal } from './transport-journal.ts';

const NONE = -1;

/** Reasons for which a receiver drops packets, in addition to those for frames. */
const packetDrops: ReadonlySet<string> = new Set([
  'packetUnknownQp',
  'packetQpState',
  'packetOpcode',
  'packetForeignLid',
  'packetForeignGid',
  'packetPkey',
  'datagramQkey',
  'datagramPkey',
]);

const hex = (value: number): string => `0x${(value >>> 0).toString(16)}`;

type IbtaDataPath = NonNullable<Hca['ibta']>;

export class PacketJournal implements TransportJournal {
  readonly #ibta: IbtaDataPath;
  readonly #qps: LiveQps;
  readonly #drops = new Map<string, DropEvidence>();
  #dropsOmitted = 0;
  readonly #refusals = new Kept<RefusalEvidence>(limits.records);
  #frameSlot = NONE;

  /** @param ibta data path of `hca` */
  constructor(hca: Hca, ibta: IbtaDataPath, qps: LiveQps) {
    this.#ibta = ibta;
    this.#qps = qps;
    this.#watchRequests();
    this.#watchDrops();
    watchRequests(hca, ibta, (refusal) => this.#refusals.add({ ...refusal, atPs: qps.nowPs }));
  }

  configured(qp: LiveQp, slot: number, next: QpStateName): void {
    const sequences = this.#ibta.parts.states.rows[slot]!;
    if (next === 'RTR' && qp.state === 'INIT') qp.receivePsn = sequences.expectedPsn;
    if (next === 'RTS' && qp.state === 'RTR') qp.sendPsn = sequences.nextPsn;
  }

  firstPsnOf(request: SendRecord): number {
    return this.#ibta.parts.states.firstPsnOf(request);
  }

  collect(): TransportEvidence {
    return {
      drops: [...this.#drops.values()].map((drop) => ({ ...drop })),
      refusals: [...this.#refusals.list],
      streams: [],
      omitted: this.#refusals.omitted + this.#dropsOmitted,
    };
  }

  /** The QP of the packet that the receiver processes. */
  get #receiving(): LiveQp | undefined {
    return this.#qps.ofQpn(this.#ibta.parts.received.destinationQpn);
  }

  #watchRequests(): void {
    const { parts, blocks } = this.#ibta;
    around(blocks.acknowledgements, 'ackTimedOut', (ackTimedOut) => (slot, cycle) => {
      this.#timedOut(parts.qps.rows[slot]!);
      ackTimedOut(slot, cycle);
    });
    around(blocks.timers, 'waitRnr', (waitRnr) => (pair, timerCode, cycle) => {
      const qp = this.#qps.ofSlot(pair.slot);
      if (qp !== undefined) {
        qp.rnrWaitPs += rnrTimerUnitsByCode[timerCode]! * parts.config.rnrTimerUnitNs * 1000;
        qp.lastRnrPs = this.#qps.nowPs;
      }
      waitRnr(pair, timerCode, cycle);
    });
    around(parts.transport, 'count', (count) => (name) => {
      count(name);
      const qp = this.#receiving;
      if (qp === undefined) return;
      if (name === 'rnrNakReceived') qp.rnrNaksReceived++;
      else if (name === 'sequenceNakReceived') qp.sequenceNaksReceived++;
      else if (name === 'unexpectedResponse') qp.lateAnswers++;
      else if (name === 'missingResponse') qp.missingResponses++;
      else if (name === 'requestOutOfSequence') qp.outOfSequence++;
      else if (name === 'duplicateRequest') qp.duplicates++;
      else if (name === 'unreliableNoReceive') {
        qp.noReceive++;
        this.#drop('noReceive', 'no receive posted', 'a receive');
      }
    });
    around(blocks.responder, 'process', (process) => (pair, cycle) => {
      const sequences = parts.states.rows[pair.slot]!;
      const expected = sequences.expectedPsn;
      const result = process(pair, cycle);
      if (sequences.expectedPsn !== expected) this.#served(pair);
      return result;
    });
  }

  #timedOut({ slot, portIndex, lastProgressPs }: QueuePair): void {
    const qp = this.#qps.ofSlot(slot);
    if (qp === undefined) return;
    const waitedPs = this.#ibta.parts.lp.nowPs - lastProgressPs;
    const { timeoutWaits } = qp;
    timeoutWaits.leastPs = qp.timeouts === 0 ? waitedPs : Math.min(timeoutWaits.leastPs, waitedPs);
    timeoutWaits.mostPs = Math.max(timeoutWaits.mostPs, waitedPs);
    timeoutWaits.totalPs += waitedPs;
    qp.timeouts++;
    if (!this.#ibta.parts.addresses[portIndex]!.isActive) qp.timeoutsWhileDown++;
  }

  #served(pair: QueuePair): void {
    const qp = this.#qps.ofSlot(pair.slot);
    if (qp === undefined) return;
    const name = opcodeRow(this.#ibta.parts.received.opcode)?.name ?? '';
    this.#qps.progressed();
    qp.lastReceivedPs = this.#qps.nowPs;
    if (name.includes('READ_REQUEST')) qp.served.read++;
    else if (/COMPARE_SWAP|FETCH_ADD/.test(name)) qp.served.atomic++;
    else if (!/(LAST|ONLY)/.test(name)) return;
    else if (!name.includes('WRITE')) qp.served.send++;
    else if (name.includes('IMMEDIATE')) qp.served.writeImmediate++;
    else qp.served.write++;
  }

  #watchDrops(): void {
    const parts = this.#ibta.parts;
    around(parts.violations, 'count', (count) => (name) => {
      count(name);
      if (packetDrops.has(name)) this.#drop(name, ...this.#comparedFor(name));
    });
    const steering = parts.ethernet?.side.steering;
    if (steering === undefined || !parts.roceLink.isOn) return;
    around(parts.roceLink, 'frameArrived', (frameArrived) => (slot) => {
      this.#frameSlot = slot;
      this.#countVersion(slot);
      frameArrived(slot);
      this.#frameSlot = NONE;
    });
    around(steering, 'drop', (drop) => (reason) => {
      drop(reason);
      if (this.#frameSlot !== NONE) this.#dropFrame(reason, this.#frameSlot);
    });
  }

  /** The header field that a check rejected, and the value that it was compared with. */
  #comparedFor(name: string): readonly [found: string, heldTo: string] {
    const { received, qps } = this.#ibta.parts;
    const { address } = received;
    const slot = qps.slotOf(received.destinationQpn);
    const pair = slot === NONE ? undefined : qps.rows[slot]!;
    switch (name) {
      case 'packetForeignLid':
        return [`DLID ${hex(received.lids & 0xffff)}`, `LID ${hex(address.lid)}`];
      case 'packetUnknownQp':
        return [`QP ${hex(received.destinationQpn)}`, 'a QP of this device'];
      case 'packetOpcode':
        return [
          opcodeRow(received.opcode)?.name ?? `opcode ${hex(received.opcode)}`,
          `service ${pair === undefined ? 'none' : (services[pair.serviceType] ?? 'other')}`,
        ];
      case 'packetQpState':
        return [stateNames[pair?.state ?? NONE] ?? 'unknown', 'RTR or RTS'];
      case 'packetPkey': {
        const isRequest = received.opcode % 32 < 13 || received.opcode % 32 > 18;
        const pkey = received.word(isRequest ? WORD_REQUEST_PKEY : WORD_RESPONSE_PKEY) & 0xffff;
        return [
          `P_Key ${hex(pkey)}`,
          `P_Key ${hex(pair === undefined ? 0 : address.pkeys[pair.pkeyIndex]!)}`,
        ];
      }
      case 'datagramQkey':
        return [`Q_Key ${hex(received.word(WORD_DATAGRAM_QKEY))}`, `Q_Key ${hex(pair?.queueKey ?? 0)}`];
      case 'datagramPkey':
        return [
          `P_Key ${hex(received.word(WORD_DATAGRAM_PKEY) & 0xffff)}`,
          `P_Key ${hex(pair === undefined ? 0 : address.pkeys[pair.pkeyIndex % address.pkeys.length]!)}`,
        ];
      case 'packetForeignGid': {
        if ((received.flags & FLAG_GRH) === 0) return ['no GRH', 'a GRH, as the path of the QP has'];
        const at = grhPlace(received.offset, bytesBeforeGrh(received.opcode, received.payloadBytes));
        const place = at + grh.fields.destinationGid.field.offset;
        return [`GID ${gidText(received.rxBytes, place)}`, 'a GID of this port, from the path of the QP'];
      }
      default:
        return ['', ''];
    }
  }

  #drop(reason: string, found: string, heldTo: string): void {
    const { received } = this.#ibta.parts;
    const { destinationQpn, opcode, psn, payloadBytes } = received;
    const sourceQpn = opcode >>> 5 === 3 ? received.word(WORD_DATAGRAM_SOURCE_QPN) & mask24 : NONE;
    this.#countDrop({ reason, destinationQpn, sourceQpn, opcode, psn, bytes: payloadBytes, found, heldTo });
  }

  #countDrop(drop: Omit<DropEvidence, 'firstPs' | 'lastPs' | 'count'>): void {
    const atPs = this.#qps.nowPs;
    const key = `${drop.reason} ${drop.destinationQpn} ${drop.sourceQpn} ${drop.found} ${drop.heldTo}`;
    const known = this.#drops.get(key);
    if (known !== undefined) {
      known.count++;
      known.lastPs = atPs;
    } else if (this.#drops.size < limits.records)
      this.#drops.set(key, { ...drop, firstPs: atPs, lastPs: atPs, count: 1 });
    else this.#dropsOmitted++;
  }

  #countVersion(slot: number): void {
    const { port } = this.#ibta.parts.ethernet!;
    const transport = this.#transportOf(slot);
    const qp = transport === undefined ? undefined : this.#qps.ofQpn(transport.destinationQp);
    if (qp === undefined) return;
    const view = viewOf(port.rxBytes);
    if (view.getUint16(typePlace(view, port.frameStart(slot))) === EtherType.ROCE) qp.packetsV1++;
    else qp.packetsV2++;
  }

  /** The BTH of a RoCE frame; undefined for a frame that ends before it. */
  #transportOf(slot: number): ReturnType<typeof bth.decode> | undefined {
    const { port } = this.#ibta.parts.ethernet!;
    const at = port.frameStart(slot);
    const place = transportPlace(port.rxBytes, at);
    return place + bth.sizeBytes > at + port.frameBytes(slot) ? undefined : bth.decode(port.rxBytes, place);
  }

  /** A RoCE frame from which no packet was made. */
  #dropFrame(reason: string, slot: number): void {
    const { port } = this.#ibta.parts.ethernet!;
    const bytes = port.rxBytes;
    const transport = this.#transportOf(slot);
    const macs = this.#ibta.parts.addresses[0]!.roce?.macs ?? new Float64Array(0);
    const own = Array.from(macs).filter((mac) => mac > 0);
    this.#countDrop({
      reason,
      destinationQpn: transport?.destinationQp ?? NONE,
      sourceQpn: NONE,
      opcode: transport?.opcode ?? 0,
      psn: transport?.psn ?? 0,
      bytes: port.frameBytes(slot),
      found: `MAC ${macText(bytes, port.frameStart(slot))}`,
      heldTo: own.length === 0 ? 'no MAC' : `MAC ${own.map(macOfNumber).join(', ')}`,
    });
  }
}

/** Bytes of a frame before the BTH. */
function transportPlace(bytes: Uint8Array, at: number): number {
  const view = viewOf(bytes);
  const typeAt = typePlace(view, at);
  const type = view.getUint16(typeAt);
  if (type === EtherType.IPV4) return typeAt + 2 + 20 + 8;
  return typeAt + 2 + 40 + (type === EtherType.IPV6 ? 8 : 0);
}

/** Offset of a frame's EtherType, which may follow a tag. */
const typePlace = (view: DataView, at: number): number =>
  at + 12 + (view.getUint16(at + 12) === EtherType.VLAN ? 4 : 0);
