/**
 * Makes the record of a send WQE that is taken up: decodes it for the QP's service, gives it its PSNs and its SSN, and appends
 * it to the QP's list. Which rule it breaks stands in the record; what becomes of it is the requester's matter.
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { ServiceType } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { HcaCore } from './core.ts';
import { decodeDatagram, decodeManagement } from './datagram-decoder.ts';
import type { PortAddress } from './port-address.ts';
import * as qpTable from './qp-table.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SendRecords } from './send-records.ts';
import { decodeControl, decodeWqe } from './wqe-decoder.ts';
import type { WqeLines } from './wqe-lines.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { UC_OPCODE_BASE, UD_OPCODE_BASE } = qpTable;

const NONE = -1;

export class RecordMaker {
  readonly #core: HcaCore;
  readonly #records: SendRecords;
  readonly #lines: WqeLines;
  readonly #address: PortAddress;

  constructor(core: HcaCore, records: SendRecords, lines: WqeLines, address: PortAddress) {
    this.#core = core;
    this.#records = records;
    this.#lines = lines;
    this.#address = address;
  }

  /**
   * Takes up the first WQE of the QP's line, at `at` of the HCA's memory. The caller has made sure of a free record.
   * @returns the record; it occupies no PSN when it has a syndrome, or is a NOP
   */
  make(qp: number, line: number, at: number, cycle: number): number {
    const { qps, sram, sramView } = this.#core;
    const records = this.#records;
    const record = records.allocate();
    const pair = qps.rows[qp]!;
    const request = records.rows[record]!;
    request.firstPsn = pair.nextPsn;
    const syndrome =
      pair.opcodeBase === 0
        ? decodeWqe(sramView, sram, at, records, record)
        : this.#decodeUnreliable(qp, pair, at, record);
    request.qp = qp;
    request.isDone = 0;
    request.next = NONE;
    request.wqeCounter = pair.sqCounter;
    request.packetsSent = 0;
    request.responsesReceived = 0;
    const isTooLong = request.messageBytes > messageBytesMax(pair);
    request.syndrome = syndrome !== 0 ? syndrome : isTooLong ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
    records.takenUp(record, this.#lines.fetchBegunCycle(line), this.#lines.fetchedCycle(line), cycle);
    if (pair.recordTail === NONE) pair.recordHead = record;
    else records.rows[pair.recordTail]!.next = record;
    pair.recordTail = record;
    pair.recordCount++;
    if (request.syndrome !== 0 || request.opcode === WqeOpcode.NOP) request.psnCount = 0;
    else this.#number(pair, record);
    return record;
  }

  /** Gives the record its PSNs and its SSN, and has its packets sent next. */
  #number(pair: QueuePair, record: number): void {
    const request = this.#records.rows[record]!;
    const { messageBytes } = request;
    const packets = messageBytes <= pair.mtuBytes ? 1 : Math.ceil(messageBytes / pair.mtuBytes);
    request.psnCount = packets;
    pair.nextPsn = (pair.nextPsn + packets) & 0xffffff;
    pair.ssn = (pair.ssn + 1) & 0xffffff;
    request.ssn = pair.ssn;
    if (request.isReadOrAtomic === 1) pair.readsOutstanding++;
    pair.recordCursor = record;
    pair.packetCursor = 0;
  }

  /** The WQE of a UC, UD or special QP. A service that is not transported can send nothing. */
  #decodeUnreliable(qp: number, pair: QueuePair, at: number, record: number): number {
    const { qps, sram, sramView } = this.#core;
    const records = this.#records;
    const base = pair.opcodeBase;
    if (base === UC_OPCODE_BASE) return decodeWqe(sramView, sram, at, records, record, false);
    if (base !== UD_OPCODE_BASE) {
      decodeControl(sramView, at, records, record);
      return CqeSyndrome.LOCAL_QP_OP_ERR;
    }
    return pair.serviceType === ServiceType.MLX
      ? decodeManagement(sramView, sram, at, records, record, this.#address)
      : decodeDatagram(sramView, sram, at, records, record, qps, qp, this.#address);
  }
}

/** A datagram is one packet. */
function messageBytesMax(pair: QueuePair): number {
  const limit = pair.messageBytesMax;
  return pair.opcodeBase === UD_OPCODE_BASE ? Math.min(limit, pair.mtuBytes) : limit;
}
