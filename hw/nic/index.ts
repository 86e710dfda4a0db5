export { NicCounters } from './counters.ts';
export { Nic } from './nic.ts';
export { macAddressOf, type NicSetup } from './nic-setup.ts';
export { type NicConfig, nicFunctionParameters, nicParameters } from './parameters.ts';
