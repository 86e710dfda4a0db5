/**
 * Cycles that the requester spends on a WQE and its packets, and the delay until the QP is served again, by service,
 * operation and size.
 */
import type { Cycles } from '../../../base/index.ts';
import type { QueuePair, SendRecord } from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';

const LINE_BYTES = 64;
/** Lines of the longest WQE, whose control segment counts 63 units of 16 bytes. */
const LINES_MAX = 16;

/** Cycles of the requester's work. */
export type RequestCostsConfig = Pick<
  HcaConfig,
  | 'wqeDecodeCycles'
  | 'requestPacketCycles'
  | 'wqeLineCycles'
  | 'wqeBufferLines'
  | 'gatherCycles'
  | 'gatherBytesPerCycle'
  | 'sameQpIntervalCycles'
  | 'readIntervalCycles'
  | 'unreliableIntervalCycles'
>;

export class RequestCosts {
  readonly #decodeCycles: Cycles;
  readonly #packetCycles: Cycles;
  readonly #lineCycles: Cycles;
  /** Lines of a WQE that are transferred at once. */
  readonly #bufferLines: number;
  readonly #gatherCycles: Cycles;
  readonly #gatherBytesPerCycle: number;
  /** Cycles from one message of a QP to its next. */
  readonly #sameQpCycles: Cycles;
  readonly #readCycles: Cycles;
  readonly #unreliableCycles: Cycles;

  constructor(config: RequestCostsConfig) {
    this.#decodeCycles = config.wqeDecodeCycles;
    this.#packetCycles = config.requestPacketCycles;
    this.#lineCycles = config.wqeLineCycles;
    this.#bufferLines = config.wqeBufferLines === 0 ? LINES_MAX : config.wqeBufferLines;
    this.#gatherCycles = config.gatherCycles;
    this.#gatherBytesPerCycle = config.gatherBytesPerCycle;
    this.#sameQpCycles = config.sameQpIntervalCycles;
    this.#readCycles = config.readIntervalCycles;
    this.#unreliableCycles = config.unreliableIntervalCycles;
  }

  /** Cycles to start a WQE. The rest of its lines is transferred while its first packet is made. */
  takeUp({ wqeBytes }: SendRecord): Cycles {
    const lines = Math.ceil(wqeBytes / LINE_BYTES);
    const linesCycles = this.#passing(lines) * this.#lineCycles - this.#packetCycles;
    return linesCycles > this.#decodeCycles ? linesCycles : this.#decodeCycles;
  }

  /**
   * Lines transferred for a WQE of this many lines: its control segment gives the initial number, but a refilled buffer
   * is filled completely.
   */
  #passing(lines: number): number {
    const buffer = this.#bufferLines;
    return lines <= buffer ? lines : Math.ceil(lines / buffer) * buffer;
  }

  /** Cycles of a packet with this payload. */
  packet({ isInline }: SendRecord, payloadBytes: number): Cycles {
    if (isInline === 1 || payloadBytes === 0) return this.#packetCycles;
    const perCycle = this.#gatherBytesPerCycle;
    const moveCycles = perCycle === 0 ? 0 : Math.ceil(payloadBytes / perCycle);
    return this.#packetCycles + this.#gatherCycles + moveCycles;
  }

  /** Cycles from the end of a message to the QP's next turn. */
  interval({ opcodeBase }: QueuePair, { isReadOrAtomic }: SendRecord): Cycles {
    if (opcodeBase !== 0) return this.#unreliableCycles;
    return isReadOrAtomic === 1 ? this.#readCycles : this.#sameQpCycles;
  }
}
