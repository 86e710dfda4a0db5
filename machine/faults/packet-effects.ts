/** A packet fault as a port receives it: its effect, the selected outgoing packets, and the random numbers. */
import { psPerUs } from '../../base/index.ts';
import { Random } from '../../sim/index.ts';
import { DamagePlace, type PacketEffect, type PacketSelection } from '../../wire/index.ts';
import { type Fault, type FaultOf, isByRule, packetNthOf } from './kinds.ts';

/** Default delay of a copy after its packet, and default time that a packet is held for others to overtake it. */
export const copyDelayPs = psPerUs;
export const passDelayPs = 10 * psPerUs;

/**
 * Every fault draws its own numbers: adding a fault changes no other's choices.
 * @param port name of the sending port
 */
export const randomOf = (
  faults: readonly Fault[],
  fault: FaultOf<'packet'>,
  port: string,
  seed: number,
): Random => new Random(fault.seed ?? seed, `${port}.fault${faults.indexOf(fault)}`);

export function effectOf({ packet: kind, delay, by, where, crc }: FaultOf<'packet'>): PacketEffect {
  switch (kind) {
    case 'duplicated':
      return { kind, passes: 1, delayPs: delay ?? copyDelayPs };
    case 'reordered':
      return { kind, passes: by ?? 1, delayPs: delay ?? passDelayPs };
    case 'late':
      return { kind, delayPs: delay! };
    case 'corrupted':
      return { kind, place: damagePlaces[where ?? 'anywhere'], isInside: crc === 'icrc' };
    default:
      return { kind };
  }
}

const damagePlaces = {
  anywhere: DamagePlace.ANYWHERE,
  header: DamagePlace.HEADER,
  payload: DamagePlace.PAYLOAD,
} as const;

/** Fields of packet rules restrict the selection by number; without a number they select all packets that they match. */
export function selectionOf(fault: FaultOf<'packet'>, random: Random): PacketSelection {
  const { qpn, psn, opcode, only, shots } = fault;
  const { first, last } = isByRule(fault)
    ? (fault.nth ?? { first: 1, last: Number.POSITIVE_INFINITY })
    : packetNthOf(fault);
  const chance = fault.chance === undefined ? undefined : { probability: fault.chance, random };
  return { destinationQpn: qpn, psns: psn, opcode, only, first, last, chance, shots };
}
