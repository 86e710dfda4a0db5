/** The sequence numbers of all QPs, by slot, and of the requests under way, by record. */
import { PSN_MASK } from '../../../../wire/index.ts';
import type { QpSlot, SendRecord } from '../../objects/index.ts';
import type { ConnectionNumbers, ConnectionStates } from '../../transport/index.ts';
import { IbtaState } from './ibta-state.ts';

export class IbtaStates implements ConnectionStates {
  /** States by slot of the QP. */
  readonly rows: IbtaState[] = [];
  /** PSN of the first packet, by record. */
  readonly firstPsn: Int32Array;

  /** @param recordCount most send requests that can be under way */
  constructor(recordCount: number) {
    this.firstPsn = new Int32Array(recordCount);
  }

  slotsGrown(slotCount: number): void {
    while (this.rows.length < slotCount) this.rows.push(new IbtaState());
  }

  begin(slot: QpSlot): void {
    this.rows[slot]!.begin();
  }

  startReceiving(slot: QpSlot, first: number): void {
    this.rows[slot]!.startReceiving(first);
  }

  startSending(slot: QpSlot, first: number): void {
    this.rows[slot]!.startSending(first);
  }

  numbersOf(slot: QpSlot): ConnectionNumbers {
    const { nextPsn, lastAckedPsn, ssn, expectedPsn, msn } = this.rows[slot]!;
    return {
      nextSend: nextPsn,
      lastAcknowledged: lastAckedPsn,
      sentMessages: ssn,
      nextReceive: expectedPsn,
      receivedMessages: msn,
    };
  }

  firstPsnOf({ number }: SendRecord): number {
    return this.firstPsn[number]!;
  }

  /** PSN of the last packet of the message, or of the last answer to a READ. */
  lastPsnOf({ number, packetCount }: SendRecord): number {
    return (this.firstPsn[number]! + packetCount - 1) & PSN_MASK;
  }
}
