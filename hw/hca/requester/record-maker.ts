/**
 * Makes the record of a send WQE that is started: decodes it for the QP's service, gives it its PSNs and its SSN, and appends
 * it to the QP's list. Which rule it breaks stands in the record; what becomes of it is the requester's matter.
 */

import { CqeSyndrome, ServiceType, WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { HcaCore } from '../core.ts';
import {
  ETHERNET_OPCODE_BASE,
  NO_ATTEMPT,
  noRecord,
  type QueuePair,
  type SendRecord,
  type SendRecords,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
  type WqeLine,
  XRC_SERVICE,
} from '../objects/index.ts';
import {
  DatagramDecoder,
  decodeControl,
  decodeWqe,
  EXECUTABLE_BY_RC,
  EXECUTABLE_BY_UC,
  EXECUTABLE_BY_XRC,
  FrameDecoder,
} from '../send-queue/index.ts';

const { LOCAL_LENGTH_ERR } = CqeSyndrome;
const { LSO, NOP } = WqeOpcode;

export class RecordMaker {
  readonly #core: HcaCore;
  readonly #records: SendRecords;
  readonly #datagrams: DatagramDecoder;
  readonly #frames: FrameDecoder;

  constructor(core: HcaCore) {
    this.#core = core;
    this.#records = core.records;
    this.#datagrams = new DatagramDecoder(core);
    this.#frames = new FrameDecoder(core);
  }

  /**
   * Takes up the first WQE of the QP's line, at `at` of the HCA's memory. The caller has made sure of a free record.
   * @returns the record; it occupies no PSN when it has a syndrome, is a NOP, or an operation on keys
   */
  make(pair: QueuePair, line: WqeLine, at: number, cycle: Cycles): SendRecord {
    const { sram, sramView } = this.#core;
    const request = this.#records.allocate();
    request.firstPsn = pair.nextPsn;
    const syndrome =
      pair.opcodeBase === 0
        ? decodeWqe(sramView, sram, at, request, reliableServiceOf(pair))
        : this.#decodeUnreliable(pair, line, at, request);
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
    // The decoder has compared an LSO with limits of its own.
    const isTooLong = request.opcode !== LSO && request.messageBytes > messageBytesMax(pair);
    request.syndrome = syndrome === 0 && isTooLong ? LOCAL_LENGTH_ERR : syndrome;
    if (request.syndrome !== 0 || request.opcode === NOP || request.isKeyOperation === 1)
      request.psnCount = 0;
    else this.#number(pair, request);
    return request;
  }

  /** Gives the record its PSNs, counts it in the SSN, and has its packets sent next. */
  #number(pair: QueuePair, request: SendRecord): void {
    const { messageBytes } = request;
    const packetBytes =
      request.opcode === LSO ? this.#records.frames.segmentBytes[request.number]! : pair.mtuBytes;
    const packets = messageBytes <= packetBytes ? 1 : Math.ceil(messageBytes / packetBytes);
    request.psnCount = packets;
    pair.nextPsn = (pair.nextPsn + packets) & 0xffffff;
    pair.ssn = (pair.ssn + 1) & 0xffffff;
    if (request.isReadOrAtomic === 1) pair.readsOutstanding++;
    pair.recordCursor = request;
    pair.packetCursor = 0;
  }

  /** The WQE of a UC, UD or special QP, or of an Ethernet ring. A service that is not transported can send nothing. */
  #decodeUnreliable(pair: QueuePair, line: WqeLine, at: number, request: SendRecord): number {
    const { sram, sramView } = this.#core;
    const base = pair.opcodeBase;
    if (base === UC_OPCODE_BASE) return decodeWqe(sramView, sram, at, request, EXECUTABLE_BY_UC);
    if (base === ETHERNET_OPCODE_BASE) return this.#frames.decode(at, line, request);
    if (base !== UD_OPCODE_BASE) {
      decodeControl(sramView, at, request);
      return CqeSyndrome.LOCAL_QP_OP_ERR;
    }
    return pair.serviceType === ServiceType.MLX
      ? this.#datagrams.decodeManagement(at, request)
      : this.#datagrams.decode(at, request, pair);
  }
}

const reliableServiceOf = ({ serviceBits }: QueuePair): number =>
  serviceBits === XRC_SERVICE ? EXECUTABLE_BY_XRC : EXECUTABLE_BY_RC;

/** A datagram is one packet. */
function messageBytesMax(pair: QueuePair): number {
  const limit = pair.messageBytesMax;
  return pair.opcodeBase === UD_OPCODE_BASE ? Math.min(limit, pair.mtuBytes) : limit;
}
