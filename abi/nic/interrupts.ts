/**
 * Interrupt causes: bits of ICR, ICS, IMS, IMC, EIAC and IAM. Three groups; IVAR gives each a vector. A message of a vector
 * represents all causes of its groups. Without MSI-X the level of INTA is (ICR & IMS) ≠ 0.
 *
 *     cause ─► ICR ─┬─ IMS off: stays set; enabling it interrupts
 *                   └─ IMS on ─► moderation (EITR, EICT) ─► message; then ICR &= ~EIAC, IMS &= ~IAM, of that vector
 *
 * NAPI style: EIAC = IAM = the group. The handler schedules its poll; the poll empties the ring, then writes IMS: a frame that
 * arrived meanwhile interrupts at once. Source: 8254x manual, 13.4.17; 82574 datasheet, 7.4 and 10.2.4.
 */

export const NicCause = {
  /** Transmit descriptor written back (RS). */
  TXDW: 1 << 0,
  /** Transmit ring empty: TDH has reached TDT. */
  TXQE: 1 << 1,
  /** Link status change. */
  LSC: 1 << 2,
  /** The number of free receive descriptors has fallen to RXMIN. */
  RXDMT0: 1 << 4,
  /** Receiver overrun: a frame was dropped because the packet buffer was full. */
  RXO: 1 << 6,
  /** A frame is in host memory, its last descriptor written back. */
  RXT0: 1 << 7,
  /** Own: a frame of PIOTX has left the packet buffer. */
  PIOTX: 1 << 8,
  /** Own: PIORX shows a frame. */
  PIORX: 1 << 9,
  /** Own: a bus-master transfer failed; the queue is in its error state. */
  DMAERR: 1 << 16,
  /** Own: a queue or PIOTX was programmed illegally; a queue enters its error state. */
  PROGERR: 1 << 17,
} as const;
export type NicCause = (typeof NicCause)[keyof typeof NicCause];

/** The groups of causes, by the vectors of IVAR. */
export const nicCauseGroup = {
  receive: NicCause.RXT0 | NicCause.RXDMT0 | NicCause.PIORX,
  transmit: NicCause.TXDW | NicCause.TXQE | NicCause.PIOTX,
  other: NicCause.LSC | NicCause.RXO | NicCause.DMAERR | NicCause.PROGERR,
} as const;

export const nicCausesAll = nicCauseGroup.receive | nicCauseGroup.transmit | nicCauseGroup.other;
