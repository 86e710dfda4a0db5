/** What the options of a machine that is not made yet come to, and its hash: equal exactly when parameters, seed and faults are. */
import { checkedFaults, faultText } from './faults/index.ts';
import type { MachineOptions } from './machine.ts';
import { configHashOf, configurationOf, type MachineConfig } from './profile/index.ts';

/** Every parameter, the seed among them, and each fault as the option that says it. */
export function effectiveOf({ profile, set = {}, seed, faults = [] }: MachineOptions): {
  readonly config: MachineConfig;
  readonly faults: readonly string[];
} {
  const config = configurationOf({
    ...(profile === undefined ? {} : { profile }),
    set: { ...set, ...(seed === undefined ? {} : { 'machine.seed': seed }) },
  });
  return { config, faults: checkedFaults(faults, config.machine.nodeCount).map(faultText) };
}

/** Hash of the effective configuration of these options: parameters, seed, and faults. */
export function machineHashOf(options: MachineOptions): string {
  const { config, faults } = effectiveOf(options);
  return configHashOf(config, faults);
}
