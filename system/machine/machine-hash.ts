/** The hash of a machine that is not made yet, from its options: equal exactly when parameters, seed and faults are. */
import { checkedFaults, faultText } from './faults/index.ts';
import type { MachineOptions } from './machine.ts';
import { configHashOf, configurationOf } from './profile/index.ts';

/** Hash of the effective configuration of these options: parameters, seed, and faults. */
export function machineHashOf({ profile, set = {}, seed, faults = [] }: MachineOptions): string {
  const config = configurationOf({
    ...(profile === undefined ? {} : { profile }),
    set: { ...set, ...(seed === undefined ? {} : { 'machine.seed': seed }) },
  });
  return configHashOf(config, checkedFaults(faults, config.machine.nodeCount).map(faultText));
}
