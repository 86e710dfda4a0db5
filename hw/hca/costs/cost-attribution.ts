/**
 * Attributes each TLP and interrupt of the device to an operation: instrumentation next to the blocks, created on
 * request only.
 *
 *     block turns to a work ── worksOn… ──► owner of its port        DMA request ──► owner of the port that made it
 *
 * A program of the host marks operations (host/marked-operation.ts); the verbs library notes the operation's number
 * with each of its work requests. An owner is a row of this device's table: unmarked (costs that no marked operation
 * caused), the control side, an operation of the own host, or a received packet. Only the peer's device can tell to
 * which operation a packet belongs: its sending QP and its transport number identify it, and reading both tables joins
 * it to the operation (machine/costs).
 *
 * Shared work has one owner:
 * - a read of several WQEs is due to the first of them, a read of a context or a translation to the work that missed;
 * - receive WQEs and their doorbell record are read for the message on which the receiver worked when it requested
 *   them;
 * - an acknowledgement of several requests is work for the last of them, a CQE for the request that it names;
 * - an event is due to the CQE that raised it, an interrupt to the first event since the previous interrupt.
 *
 * TLPs are counted when a block requests them, split as the DMA engines split them.
 */
import type { ExactPs, LogicalProcess } from '../../../sim/index.ts';
import { trafficClassCount } from '../../dma/index.ts';
import type { Cqn, CqTable, Qpn, QpTable, QueuePair } from '../objects/index.ts';

/** Fixed rows: costs that no marked operation caused, and costs of commands and event queues. */
const UNMARKED = 0;
const CONTROL = 1;
/** Packets and operations that the table holds. */
const ROWS_MAX = 1 << 20;
/** Numbers of packets are below this. */
const NUMBERS = 2 ** 28;

/** Costs of one owner: TLPs by accounting class, and interrupts. */
export interface CostRow {
  readonly reads: number[];
  readonly writes: number[];
  interrupts: number;
}

/** A message of a marked operation: the numbers that its packets have, and since when. */
export interface MessageRow {
  readonly operation: number;
  readonly qpn: Qpn;
  readonly firstNumber: number;
  readonly packetCount: number;
  readonly atPs: ExactPs;
}

/** Costs of the work for one received packet. */
export interface PacketRow extends CostRow {
  readonly sourceQpn: Qpn;
  readonly number: number;
  /** Port at which the packet arrived, from 0. */
  readonly portIndex: number;
  readonly isLoopback: boolean;
  readonly atPs: ExactPs;
}

/** A received packet: both ends name it by its sender and its transport number. */
interface PacketName {
  readonly sourceQpn: Qpn;
  readonly number: number;
  /** Port at which the packet arrived, from 0. */
  readonly portIndex: number;
  readonly isLoopback: boolean;
}

/** Returns the marked operation to which a work request belongs: 0 for none. */
export interface OperationSource {
  operationOf(qpn: Qpn, wqeCounter: number): number;
}

export interface CostSetup {
  readonly lp: LogicalProcess;
  readonly source: OperationSource;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly portCount: number;
  /** Numbers of packets are counted modulo this mask plus 1. */
  readonly numberMask: number;
}

const emptyRow = (): CostRow => ({
  reads: new Array<number>(trafficClassCount).fill(0),
  writes: new Array<number>(trafficClassCount).fill(0),
  interrupts: 0,
});

export class CostAttribution {
  /** Packets that found the table full: their costs count as unmarked. */
  lostPacketCount = 0;
  readonly #setup: CostSetup;
  readonly #rows: CostRow[] = [emptyRow(), emptyRow()];
  readonly #messages: MessageRow[] = [];
  readonly #packets: PacketRow[] = [];
  /** Indexes in the table by operation, and by the name of the latest packet. */
  readonly #ofOperation = new Map<number, number>();
  readonly #ofPacket = new Map<number, number>();
  /** Newest message last, by QPN. */
  readonly #ofQp = new Map<Qpn, MessageRow[]>();
  readonly #ofPort: Int32Array;
  /** Owners of the last CQE and of the last event, by CQN. */
  readonly #ofCqe = new Map<Cqn, number>();
  readonly #ofEvent = new Map<Cqn, number>();
  /** Owner of the first event since the last interrupt, by vector. */
  readonly #ofVector = new Map<number, number>();

  constructor(setup: CostSetup) {
    this.#setup = setup;
    this.#ofPort = new Int32Array(setup.portCount);
  }

  // The blocks report here which request or packet they work on.

  /** The user of `port` works on the send WQE with this counter. */
  worksOnRequest(port: number, pair: QueuePair, wqeCounter: number): void {
    this.#ofPort[port] = this.requestOwner(this.#setup.qps.numberOf[pair.slot]!, wqeCounter);
  }

  /** Notes that the user of `port` works on a request packet that has just arrived. Each packet has its own row. */
  worksOnNewPacket(port: number, name: PacketName): void {
    const key = keyOf(name);
    if (this.#rows.length >= ROWS_MAX) {
      this.lostPacketCount++;
      this.#ofPacket.delete(key);
      this.#ofPort[port] = UNMARKED;
      return;
    }
    const row: PacketRow = { ...emptyRow(), ...name, atPs: this.#setup.lp.instantPs };
    this.#ofPacket.set(key, this.#rows.length);
    this.#ofPort[port] = this.#rows.length;
    this.#rows.push(row);
    this.#packets.push(row);
  }

  /** The user of `port` works on the answer to the request packet of this number. */
  worksOnAnswerTo(port: number, pair: QueuePair, number: number): void {
    const name = { sourceQpn: pair.remoteQpn, number, portIndex: pair.portIndex };
    const byCable = this.#ofPacket.get(keyOf({ ...name, isLoopback: false }));
    this.#ofPort[port] = byCable ?? this.#ofPacket.get(keyOf({ ...name, isLoopback: true })) ?? UNMARKED;
  }

  /** The user of `port` works on an answer to the own QP's request packet of this number. */
  worksOnAnswerOf(port: number, pair: QueuePair, number: number): void {
    const messages = this.#ofQp.get(this.#setup.qps.numberOf[pair.slot]!);
    const { numberMask } = this.#setup;
    const found = messages?.findLast(
      ({ firstNumber, packetCount }) => ((number - firstNumber) & numberMask) < packetCount,
    );
    this.#ofPort[port] = found === undefined ? UNMARKED : this.#operationRow(found.operation);
  }

  /**
   * Notes that the user of `port` works for `owner`, an owner from {@link ownerOf} or {@link requestOwner}.
   */
  worksFor(port: number, owner: number): void {
    this.#ofPort[port] = owner;
  }

  /** The user of `port` has ended its work. */
  rests(port: number): void {
    this.#ofPort[port] = UNMARKED;
  }

  ownerOf(port: number): number {
    return this.#ofPort[port]!;
  }

  requestOwner(qpn: Qpn, wqeCounter: number): number {
    return this.#operationRow(this.#setup.source.operationOf(qpn, wqeCounter));
  }

  /** The transport has numbered the packets of the QP's next WQE. */
  numbered(pair: QueuePair, firstNumber: number, packetCount: number): void {
    const qpn = this.#setup.qps.numberOf[pair.slot]!;
    const operation = this.#setup.source.operationOf(qpn, pair.sqCounter);
    if (operation === 0) return;
    const message = { operation, qpn, firstNumber, packetCount, atPs: this.#setup.lp.instantPs };
    this.#messages.push(message);
    const messages = this.#ofQp.get(qpn);
    if (messages === undefined) this.#ofQp.set(qpn, [message]);
    else messages.push(message);
  }

  /** The user of `port` has had a CQE issued for the CQ. */
  completed(port: number, cqn: Cqn): void {
    this.#ofCqe.set(cqn, this.#ofPort[port]!);
  }

  /** An event of the CQ fires, for its last CQE. */
  eventFired(cqn: Cqn): void {
    this.#ofEvent.set(cqn, this.#ofCqe.get(cqn) ?? UNMARKED);
  }

  // The blocks report here the TLPs and interrupts of that work.

  read(port: number, trafficClass: number, tlpCount: number): void {
    this.#add('reads', this.#ofPort[port]!, trafficClass, tlpCount);
  }

  write(port: number, trafficClass: number, tlpCount: number): void {
    this.#add('writes', this.#ofPort[port]!, trafficClass, tlpCount);
  }

  controlRead(trafficClass: number, tlpCount: number): void {
    this.#add('reads', CONTROL, trafficClass, tlpCount);
  }

  controlWrite(trafficClass: number, tlpCount: number): void {
    this.#add('writes', CONTROL, trafficClass, tlpCount);
  }

  /** An EQE is written: of a completion of the CQ, for the EQ with this vector; or (undefined) of something else. */
  eventWritten(
    cqn: Cqn | undefined,
    vector: number | undefined,
    trafficClass: number,
    tlpCount: number,
  ): void {
    const owner = cqn === undefined ? CONTROL : (this.#ofEvent.get(cqn) ?? UNMARKED);
    this.#add('writes', owner, trafficClass, tlpCount);
    if (vector !== undefined && !this.#ofVector.has(vector)) this.#ofVector.set(vector, owner);
  }

  /** Counts an interrupt message of the vector. */
  interrupted(vector: number): void {
    this.#rows[this.#ofVector.get(vector) ?? UNMARKED]!.interrupts++;
    this.#ofVector.delete(vector);
  }

  /** The pin is asserted: for all vectors. */
  pinAsserted(): void {
    const [owner = UNMARKED] = this.#ofVector.values();
    this.#rows[owner]!.interrupts++;
    this.#ofVector.clear();
  }

  /** The EQ that the CQ's events go to. */
  eqnOf(cqn: Cqn): number | undefined {
    const { cqs } = this.#setup;
    const slot = cqs.slotOf(cqn);
    return slot === -1 ? undefined : cqs.rows[slot]!.eqn;
  }

  /** Copies of all rows. */
  ledger(): CostLedger {
    const { reads, writes, interrupts } = this.#rows[UNMARKED]!;
    return structuredClone({
      unmarked: { reads, writes, interrupts },
      control: this.#rows[CONTROL]!,
      operations: [...this.#ofOperation].map(([operation, place]) => ({ operation, ...this.#rows[place]! })),
      messages: this.#messages,
      packets: this.#packets,
      lostPacketCount: this.lostPacketCount,
      numberMask: this.#setup.numberMask,
    });
  }

  #operationRow(operation: number): number {
    if (operation === 0) return UNMARKED;
    let place = this.#ofOperation.get(operation);
    if (place === undefined) {
      place = this.#rows.length;
      this.#rows.push(emptyRow());
      this.#ofOperation.set(operation, place);
    }
    return place;
  }

  #add(kind: 'reads' | 'writes', owner: number, trafficClass: number, tlpCount: number): void {
    const counts = this.#rows[owner]![kind];
    counts[trafficClass] = counts[trafficClass]! + tlpCount;
  }
}

/** The costs of one device, as plain data. */
export interface CostLedger {
  readonly unmarked: CostRow;
  readonly control: CostRow;
  readonly operations: readonly (CostRow & { readonly operation: number })[];
  readonly messages: readonly MessageRow[];
  readonly packets: readonly PacketRow[];
  readonly lostPacketCount: number;
  /** See {@link CostSetup.numberMask}. */
  readonly numberMask: number;
}

/** 54 bits at most, and 49 of numbers below 2^24: exact in a number. */
const keyOf = ({ sourceQpn, number, portIndex, isLoopback }: PacketName): number =>
  (sourceQpn * NUMBERS + number) * 4 + 2 * portIndex + (isLoopback ? 1 : 0);
