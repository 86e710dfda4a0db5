/** A packet fault as a port receives it: its effect, the selected outgoing packets, and the random numbers. */
import { psPerUs } from '../../base/index.ts';
import { Random } from '../../sim/index.ts';
import { DamagePlace, type PacketEffect, type PacketSelection } from '../../wire/index.ts';
import { type Fault, type FaultOf, isByRule, packetNthOf } from './kinds.ts';

/** How long after its packet a copy leaves, and how long a packet waits for others to pass it, unless the fault says. */
export const copyDelayPs = psPerUs;
export const passDelayPs = 10 * psPerUs;

/** Every fault draws its own numbers: a further one changes no other's choice. @param port what the packets leave, by name */
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

/** Fields that only a rule has are an addition to the number of the packet: without one, all packets that they name. */
export function selectionOf(fault: FaultOf<'packet'>, random: Random): PacketSelection {
  const { qpn, psn, opcode, only, shots } = fault;
  const { first, last } = isByRule(fault)
    ? (fault.nth ?? { first: 1, last: Number.POSITIVE_INFINITY })
    : packetNthOf(fault);
  const chance = fault.chance === undefined ? undefined : { probability: fault.chance, random };
  return { destinationQpn: qpn, psns: psn, opcode, only, first, last, chance, shots };
}
