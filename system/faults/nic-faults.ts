/** Faults of a conventional NIC: what a plan does to frames on its cable and to its port. */
import { ConfigurationError } from '../../base/assert.ts';
import type { Nic } from '../../hw/nic/index.ts';
import type { Fault } from './kinds.ts';
import { faultsOf } from './plan.ts';

/** Faults that mean something to a NIC; interrupts and reads are the root complex's. */
const kinds: ReadonlySet<Fault['kind']> = new Set(['interrupt', 'read', 'packet', 'port', 'cable']);

/**
 * Injects the faults of a node into its NIC; to be called once, before time starts.
 * @throws ConfigurationError for a fault that only an HCA can have
 */
export function injectNicFaults(faults: readonly Fault[], node: number, { port, lp }: Nic): void {
  for (const fault of faults)
    if (!kinds.has(fault.kind))
      throw new ConfigurationError(
        'fault',
        fault.kind,
        `one of ${[...kinds].join(', ')} with machine.adapter=nic`,
      );
  for (const { packet, nth, delay } of faultsOf(faults, node, 'packet'))
    for (let place = nth.first; place <= nth.last; place++) {
      if (packet === 'corrupted') port.faults.corruptFrame(place);
      else port.faults.delayFrame(place, delay!);
    }
  const switches = [
    ...faultsOf(faults, node, 'port').map((fault) => ({ ...fault, isUp: fault.port === 'up' })),
    ...faultsOf(faults, node, 'cable').map((fault) => ({ ...fault, isUp: fault.cable === 'plugged' })),
  ];
  const handler = lp.queue.addHandler((isUp) => port.setEnabled(isUp === 1));
  for (const { at, after, isUp, for: lastsPs } of switches) {
    if (after !== undefined || at === undefined)
      throw new ConfigurationError(
        'after',
        after ?? 'left out',
        'left out, and at given, with machine.adapter=nic',
      );
    lp.queue.schedule(at, handler, isUp ? 1 : 0);
    if (lastsPs !== undefined) lp.queue.schedule(at + lastsPs, handler, isUp ? 0 : 1);
  }
}
