export { Nic } from './nic.ts';
export { macAddressOf } from './nic-setup.ts';
export { nicFunctionParameters, nicParameters } from './parameters.ts';
