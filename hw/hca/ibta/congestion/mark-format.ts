/**
 * How marks of congestion and their notifications travel on a link.
 *
 *     InfiniBand   FECN of the BTH     BECN of a response that is due anyway, or a CNP: a BTH alone        annex A10
 *     RoCE v2      ECN 11 of the IP    a CNP of 16 reserved bytes                                          annex A17.9
 *
 * Source of InfiniBand's CNP: Linux 6.1 drivers/infiniband/hw/hfi1/ud.c, return_cnp.
 */
import {
  FLAG_CONGESTION,
  isMarkedRoute,
  Opcode,
  RESPONSE_BECN,
  WORD_RESPONSE_PKEY,
} from '../../../../wire/index.ts';
import { IS_REQUEST, type ReceivedPackets } from '../packets/index.ts';

/** The fields of a received packet that carry marks. */
export type MarkedPacket = Pick<ReceivedPackets, 'rxBytes' | 'flags' | 'traits' | 'word'>;

export interface MarkFormat {
  /** Opcode of a CNP. */
  readonly cnpOpcode: number;
  /** Whether responses carry notifications, too. */
  readonly hasBecn: boolean;
  /** Whether a switch has marked the packet, whose network header, if any, is at `grhAt`. */
  isMarked(packet: MarkedPacket, grhAt: number): boolean;
  /** Whether the packet is a response that carries a notification. */
  carriesBecn(packet: MarkedPacket): boolean;
}

export const infinibandMarks: MarkFormat = {
  cnpOpcode: Opcode.CNP_INFINIBAND,
  hasBecn: true,
  isMarked: ({ flags }) => (flags & FLAG_CONGESTION) !== 0,
  carriesBecn: (packet) =>
    (packet.traits & IS_REQUEST) === 0 && (packet.word(WORD_RESPONSE_PKEY) & RESPONSE_BECN) !== 0,
};

export const roceMarks: MarkFormat = {
  cnpOpcode: Opcode.CNP,
  hasBecn: false,
  isMarked: ({ rxBytes }, grhAt) => isMarkedRoute(rxBytes, grhAt),
  carriesBecn: () => false,
};
