/**
 * Makes the record of a send WQE that is started: decodes it for the QP's service, has its packets numbered by the transport, and
 * appends it to the QP's list. The record names the rule that the WQE breaks, if any; the requester acts on it.
 */

import { WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { SendFormat } from '../host-interface/index.ts';
import {
  NO_ATTEMPT,
  noRecord,
  type QueuePair,
  type SendRecord,
  type SendRecords,
  type WqeLine,
} from '../objects/index.ts';
import type { RequestTransport } from '../transport/index.ts';

const { LSO, NOP } = WqeOpcode;

/** Parts of the device that {@link RecordMaker} uses. */
export interface RecordMakerSetup {
  readonly records: SendRecords;
  readonly sends: SendFormat;
}

export class RecordMaker {
  readonly #records: SendRecords;
  readonly #sends: SendFormat;

  constructor({ records, sends }: RecordMakerSetup) {
    this.#records = records;
    this.#sends = sends;
  }

  /**
   * Makes a record of the first WQE of the QP's line, at `at` of the HCA's memory. The caller has ensured that a record
   * is free.
   * @returns the record; it has no packets if it has a syndrome, is a NOP, or an operation on keys. {@link noRecord}:
   * the
   *   transport's window has no room for its packets, and nothing has happened
   */
  make(pair: QueuePair, line: WqeLine, at: number, transport: RequestTransport, cycle: Cycles): SendRecord {
    const request = this.#records.allocate();
    request.stream.isUsed = false;
    const syndrome = this.#sends.decode(at, line, request, pair);
    request.syndrome = syndrome === 0 ? transport.refusalOf(pair, request) : syndrome;
    const hasPackets = request.syndrome === 0 && request.opcode !== NOP && request.isKeyOperation === 0;
    request.packetCount = hasPackets
      ? this.#packetsOf(request, transport.packetBytes(pair, request.opcode))
      : 0;
    if (hasPackets && !transport.begin(pair, request)) {
      this.#records.release(request);
      return noRecord;
    }
    request.qp = pair.slot;
    request.isDone = 0;
    request.next = noRecord;
    request.wqeCounter = pair.sqCounter;
    request.responsesReceived = 0;
    const { begunCycle, fetchedCycle } = line.firstTimes;
    request.fetchBegunCycle = begunCycle;
    request.fetchedCycle = fetchedCycle;
    // Without payload to read the request counts as gathered.
    request.startedCycle = cycle;
    request.gatheredCycle = cycle;
    if (request.earlier.endCycle !== NO_ATTEMPT) request.earlier.clear();
    request.rateWaitCycles = 0;
    if (pair.recordTail === noRecord) pair.recordHead = request;
    else pair.recordTail.next = request;
    pair.recordTail = request;
    pair.recordCount++;
    if (hasPackets) {
      if (request.isReadOrAtomic === 1) pair.readsOutstanding++;
      pair.recordCursor = request;
      pair.packetCursor = 0;
    }
    return request;
  }

  /** Packets of the request, and of the answer of a READ. */
  #packetsOf({ number, opcode, messageBytes }: SendRecord, transportBytes: number): number {
    const packetBytes = opcode === LSO ? this.#records.frames.segmentBytes[number]! : transportBytes;
    return messageBytes <= packetBytes ? 1 : Math.ceil(messageBytes / packetBytes);
  }
}
