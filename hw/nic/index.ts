export { Nic } from './nic.ts';
export { nicWires } from './nic-blocks.ts';
export { macAddressOf } from './nic-setup.ts';
export { nicFunctionParameters, nicParameters } from './parameters.ts';
