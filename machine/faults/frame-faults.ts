/** Faults of packets on a cable of Ethernet, whatever is plugged into it: a packet is a frame. */
import { ConfigurationError } from '../../base/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { FaultLog } from './fault-log.ts';
import type { Fault, FaultOf } from './kinds.ts';
import { effectOf, randomOf, selectionOf } from './packet-effects.ts';
import { faultsOf } from './plan.ts';

/**
 * Injects the faults of packets that a port sends; to be called once, before time starts.
 * @param end the node that faults name, and the name of the port among those that draw random numbers
 * @param seed of what faults leave to chance
 * @param roce of the port
 * @throws ConfigurationError for a mark of congestion where packets have no IP header, and for PAUSE frames of a port that sends none
 */
export function injectFrameFaults(
  faults: readonly Fault[],
  { node, name }: { readonly node: number; readonly name: string },
  port: EthernetPort,
  log: FaultLog,
  seed: number,
  roce: HcaRoce,
): void {
  for (const fault of faultsOf(faults, node, 'packet')) {
    const effect = effectOf(fault);
    if (effect.kind === 'congested') checkMark(fault, roce);
    if (fault.only === 'pauses' && !port.flowControl.isThere)
      throw new ConfigurationError(
        'only',
        fault.only,
        'other frames of an end of a cable without flow control',
      );
    const selection = selectionOf(fault, randomOf(faults, fault, name, seed));
    port.faults.addRule(effect, selection, { fired: () => log.fired(fault) });
  }
}

/** How a port of Ethernet carries RDMA. */
export type HcaRoce = MachineConfig['hca']['capability']['roce'];

/** @throws ConfigurationError for a mark on packets that have no IP header */
export function checkMark({ packet }: FaultOf<'packet'>, roce: HcaRoce): void {
  if (roce === 'v2') return;
  const expected =
    'another effect on a cable of Ethernet, but with hca.capability.roce=v2, whose IP headers have a mark';
  throw new ConfigurationError('packet', packet, expected);
}
