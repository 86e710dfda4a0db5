/** Faults of packets on an Ethernet cable, for any adapter: a packet is a frame. */
import { ConfigurationError } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { FaultLog } from './fault-log.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { effectOf, randomOf, selectionOf } from './packet-effects.ts';
import { faultsOf } from './plan.ts';

/**
 * Injects the faults of packets that a port sends; must be called once, before time starts.
 * @param end node number that faults name, and the port's name for the random numbers
 * @param seed for random choices of faults
 * @param roce of the port
 * @throws ConfigurationError for a congestion mark if packets have no IP header, and for PAUSE frames of a port that
 * sends none
 */
export function injectFrameFaults(
  faults: readonly Fault[],
  { node, name }: { readonly node: number; readonly name: string },
  port: EthernetPort,
  log: FaultLog,
  seed: number,
  roce: HcaRoce,
): void {
  for (const fault of faultsOf(faults, node, 'packet'))
    injectFrameFault(fault, port, randomOf(faults, fault, name, seed), log, roce);
}

/** Injects one of these faults, whichever node it names. @throws ConfigurationError as {@link injectFrameFaults} */
export function injectFrameFault(
  fault: FaultOf<'packet'>,
  port: EthernetPort,
  random: Random,
  log: FaultLog,
  roce: HcaRoce,
): void {
  const effect = effectOf(fault);
  if (effect.kind === 'congested') checkMark(fault, roce);
  if (fault.only === 'pauses' && !port.flowControl.isThere)
    throw new ConfigurationError(
      'only',
      fault.only,
      'other frames of an end of a cable without flow control',
    );
  port.faults.addRule(effect, selectionOf(fault, random), { fired: () => log.fired(fault) });
}

/** RDMA protocol of an Ethernet port. */
export type HcaRoce = MachineConfig['hca']['capability']['roce'];

/** @throws ConfigurationError for a mark on packets without an IP header */
export function checkMark({ packet }: FaultOf<'packet'>, roce: HcaRoce): void {
  if (roce === 'v2') return;
  const expected =
    'another effect on a cable of Ethernet, but with hca.capability.roce=v2, whose IP headers have a mark';
  throw new ConfigurationError('packet', packet, expected);
}
