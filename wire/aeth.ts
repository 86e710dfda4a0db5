/**
 * Contents of an acknowledgement: the AETH syndrome and its code tables, and the timers that are coded in QPs.
 *
 * Syndrome: bit 7 zero, bits 6:5 select ACK, RNR NAK or NAK, bits 4:0 hold the credit count, the timer or the NAK code. Source:
 * InfiniBand Architecture Specification, volume 1, 9.7.5.2.
 */

export const AethKind = { ACK: 0, RNR_NAK: 1, RESERVED: 2, NAK: 3 } as const;
const { ACK, RNR_NAK, NAK } = AethKind;

/** NAK codes, 9.7.5.2.2. */
export const NakCode = {
  PSN_SEQUENCE_ERROR: 0,
  INVALID_REQUEST: 1,
  REMOTE_ACCESS_ERROR: 2,
  REMOTE_OPERATIONAL_ERROR: 3,
  INVALID_RD_REQUEST: 4,
} as const;

const KIND_SHIFT = 5;
const VALUE_MASK = 0x1f;

/** Credit code that disables end-to-end credits: the receive queue is shared, or counts none. */
export const CREDIT_CODE_INVALID = 31;

/** Messages for which the receiver has room, by credit code 0 to 30 (9.7.7.2.1). */
export const creditCountByCode: readonly number[] = [
  0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
  6144, 8192, 12288, 16384, 24576, 32768,
];

const CREDIT_CODE_MAX = creditCountByCode.length - 1;

export const ackSyndrome = (creditCode: number): number => (ACK << KIND_SHIFT) | creditCode;
export const rnrNakSyndrome = (timerCode: number): number => (RNR_NAK << KIND_SHIFT) | timerCode;
export const nakSyndrome = (nakCode: number): number => (NAK << KIND_SHIFT) | nakCode;

/** ACK, RNR NAK, reserved or NAK. */
export const syndromeKind = (syndrome: number): number => (syndrome >> KIND_SHIFT) & 3;
/** Credit code, timer code or NAK code. */
export const syndromeValue = (syndrome: number): number => syndrome & VALUE_MASK;

/** The greatest credit code that promises at most `messageCount` messages. */
export function creditCodeFor(messageCount: number): number {
  let code = 0;
  while (code < CREDIT_CODE_MAX && creditCountByCode[code + 1]! <= messageCount) code++;
  return code;
}
