/**
 * The turnaround between messages of one QP: after the last packet of one, on the cable or the loopback, the first
 * packet of the next waits. Requests and READ responses are separate, since both directions of a QP have their own
 * state; other QPs are not delayed.
 */
import type { Cycles } from '../../../../base/index.ts';
import { Opcode } from '../../../../wire/index.ts';
import { noRecord, UC_OPCODE_BASE } from '../../objects/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { IbtaPacket } from './ibta-packet.ts';

const OPCODE_COUNT = 256;
/** Operations of an opcode, without its service. */
const OPERATION_MASK = 0x1f;
const { RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMMEDIATE, RC_SEND_LAST, RC_SEND_LAST_WITH_IMMEDIATE } = Opcode;
const { RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE } = Opcode;
const { RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMMEDIATE } = Opcode;
const { RC_RDMA_READ_RESPONSE_ONLY, RC_RDMA_READ_RESPONSE_LAST } = Opcode;

const beginnings: readonly number[] = [
  ...[Opcode.RC_SEND_FIRST, RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMMEDIATE],
  ...[Opcode.RC_RDMA_WRITE_FIRST, RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE],
  ...[Opcode.RC_RDMA_READ_RESPONSE_FIRST, RC_RDMA_READ_RESPONSE_ONLY],
];
const sendEnds: readonly number[] = [
  ...[RC_SEND_ONLY, RC_SEND_ONLY_WITH_IMMEDIATE, RC_SEND_LAST, RC_SEND_LAST_WITH_IMMEDIATE],
];
const writeEnds: readonly number[] = [
  ...[RC_RDMA_WRITE_ONLY, RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE],
  ...[RC_RDMA_WRITE_LAST, RC_RDMA_WRITE_LAST_WITH_IMMEDIATE],
];
const readEnds: readonly number[] = [RC_RDMA_READ_RESPONSE_ONLY, RC_RDMA_READ_RESPONSE_LAST];

/** Gaps after messages, by kind. */
export type MessageGapsConfig = Pick<HcaConfig, 'writeGapCycles' | 'sendGapCycles' | 'readGapCycles'>;

export class MessageGaps {
  /** Whether there are any. */
  readonly areThere: boolean;
  /** Tables by opcode: whether it begins a message, and the gap after it; -1 if it does not end one. */
  readonly #begins: Uint8Array;
  readonly #gapCycles: Int32Array;

  constructor(config: MessageGapsConfig) {
    const { writeGapCycles, sendGapCycles, readGapCycles } = config;
    this.areThere = writeGapCycles + sendGapCycles + readGapCycles > 0;
    this.#begins = Uint8Array.from({ length: OPCODE_COUNT }, (_, opcode) =>
      beginnings.includes(opcode & OPERATION_MASK) ? 1 : 0,
    );
    this.#gapCycles = Int32Array.from({ length: OPCODE_COUNT }, (_, opcode) => {
      const operation = opcode & OPERATION_MASK;
      if (readEnds.includes(operation)) return readGapCycles;
      if (writeEnds.includes(operation)) return writeGapCycles;
      if (!sendEnds.includes(operation)) return -1;
      return opcode < UC_OPCODE_BASE ? sendGapCycles : writeGapCycles;
    });
  }

  /**
   * Returns the cycle from which a packet with this forming time may be sent. It is formed during the gap; the message
   * that it begins waits for the gap after the previous one.
   */
  readyCycle({ opcode, pair, readyCycle, request }: IbtaPacket, formingCycles: Cycles): Cycles {
    if (this.#begins[opcode] === 0) return readyCycle;
    const gapEnd = request === noRecord ? pair.responseGapCycle : pair.requestGapCycle;
    const fromCycle = gapEnd - formingCycles;
    return fromCycle > readyCycle ? fromCycle : readyCycle;
  }

  /** A packet has been handed over, whose last byte has left by `leftCycle`. */
  left({ opcode, pair, request }: IbtaPacket, leftCycle: Cycles): void {
    const gapCycles = this.#gapCycles[opcode]!;
    if (gapCycles < 0) return;
    const cycle = leftCycle + gapCycles;
    if (request === noRecord) pair.responseGapCycle = cycle;
    else pair.requestGapCycle = cycle;
  }
}
