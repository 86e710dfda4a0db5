export { NicCounters } from './counters.ts';
export { macAddressOf, Nic, type NicSetup } from './nic.ts';
export { type NicConfig, nicFunctionParameters, nicParameters } from './parameters.ts';
