/**
 * Makes the record of a send WQE that is started: decodes it for the QP's service, gives it its PSNs and its SSN, and appends
 * it to the QP's list. Which rule it breaks stands in the record; what becomes of it is the requester's matter.
 */

import { CqeSyndrome, WqeOpcode } from '../../../abi/index.ts';
import { type Cycles, mask24 } from '../../../base/index.ts';
import { PSN_MASK, PSNS_OUTSTANDING_MAX } from '../../../wire/index.ts';
import type { SendFormat } from '../host-interface/index.ts';
import {
  NO_ATTEMPT,
  noRecord,
  type QueuePair,
  type SendRecord,
  type SendRecords,
  UD_OPCODE_BASE,
  type WqeLine,
} from '../objects/index.ts';

const { LOCAL_LENGTH_ERR } = CqeSyndrome;
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
   * Takes up the first WQE of the QP's line, at `at` of the HCA's memory. The caller has made sure of a free record.
   * @returns the record; it occupies no PSN when it has a syndrome, is a NOP, or an operation on keys. {@link noRecord}: its PSNs would
   *   be more than a requester may have outstanding, and nothing has happened
   */
  make(pair: QueuePair, line: WqeLine, at: number, cycle: Cycles): SendRecord {
    const request = this.#records.allocate();
    request.firstPsn = pair.nextPsn;
    const syndrome = this.#sends.decode(at, line, request, pair);
    // The decoder has compared an LSO with limits of its own.
    const isTooLong = request.opcode !== LSO && request.messageBytes > messageBytesMax(pair);
    request.syndrome = syndrome === 0 && isTooLong ? LOCAL_LENGTH_ERR : syndrome;
    const hasPackets = request.syndrome === 0 && request.opcode !== NOP && request.isKeyOperation === 0;
    request.psnCount = hasPackets ? this.#packetsOf(pair, request) : 0;
    if (pair.opcodeBase === 0 && request.psnCount > psnsLeft(pair)) {
      pair.psnsWanted = request.psnCount;
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
    // With no payload to read it is gathered, too.
    request.startedCycle = cycle;
    request.gatheredCycle = cycle;
    if (request.earlier.endCycle !== NO_ATTEMPT) request.earlier.clear();
    if (pair.recordTail === noRecord) pair.recordHead = request;
    else pair.recordTail.next = request;
    pair.recordTail = request;
    pair.recordCount++;
    if (hasPackets) this.#number(pair, request);
    return request;
  }

  /** Packets of the request, and of the answer of a READ: its PSNs. */
  #packetsOf(pair: QueuePair, { number, opcode, messageBytes }: SendRecord): number {
    const packetBytes = opcode === LSO ? this.#records.frames.segmentBytes[number]! : pair.mtuBytes;
    return messageBytes <= packetBytes ? 1 : Math.ceil(messageBytes / packetBytes);
  }

  /** Gives the record its PSNs, counts it in the SSN, and has its packets sent next. */
  #number(pair: QueuePair, request: SendRecord): void {
    pair.nextPsn = (pair.nextPsn + request.psnCount) & PSN_MASK;
    pair.ssn = (pair.ssn + 1) & mask24;
    if (request.isReadOrAtomic === 1) pair.readsOutstanding++;
    pair.recordCursor = request;
    pair.packetCursor = 0;
  }
}

/** A datagram is one packet, and a message of a reliable connection has no more PSNs than may be outstanding. */
function messageBytesMax(pair: QueuePair): number {
  const { messageBytesMax: limit, mtuBytes, opcodeBase } = pair;
  if (opcodeBase === UD_OPCODE_BASE) return Math.min(limit, mtuBytes);
  return opcodeBase === 0 ? Math.min(limit, mtuBytes * PSNS_OUTSTANDING_MAX) : limit;
}

/** PSNs that a QP of a reliable connection may use before one is acknowledged. */
export const psnsLeft = ({ nextPsn, lastAckedPsn }: QueuePair): number =>
  PSNS_OUTSTANDING_MAX - ((nextPsn - 1 - lastAckedPsn) & PSN_MASK);
