export type { LinkIdentity } from './config-space.ts';
export { functionWires } from './function-blocks.ts';
export { checkFunctionConfig, type FunctionConfig, functionParameters } from './function-parameters.ts';
export type { AccessObserver, BarTarget } from './function-port.ts';
export { PcieFunction } from './pcie-function.ts';
