/**
 * ECN and priority of packets under congestion control: those with payload are ECT, for switches to mark; acknowledgements,
 * requests without payload and CNPs are not. CNPs have a DSCP and a priority of their own, so that queues of data do not delay
 * them. Sources: RFC 3168, 5; IBTA vol 1, annex A17.9.
 */
import { Opcode } from '../../../../wire/index.ts';
import type { IbtaPacket, TrafficClasses } from '../packets/index.ts';
import { type NotificationConfig, usesMarks } from './parameters.ts';

const ECT_0 = 2;
const ECN_MASK = 3;
const DSCP_SHIFT = 2;

/** @returns undefined where marks are of no use: then software's traffic class stays, with its ECN */
export function trafficClassesOf(congestion: NotificationConfig): TrafficClasses | undefined {
  if (!usesMarks(congestion)) return undefined;
  const { cnpDscp, cnpPriority } = congestion;
  return {
    trafficClassOf({ opcode, payloadBytes }: IbtaPacket, ofPath: number): number {
      if (opcode === Opcode.CNP) return cnpDscp << DSCP_SHIFT;
      return (ofPath & ~ECN_MASK) | (payloadBytes > 0 ? ECT_0 : 0);
    },
    priorityOf: ({ opcode }: IbtaPacket, ofPath: number) => (opcode === Opcode.CNP ? cnpPriority : ofPath),
  };
}
