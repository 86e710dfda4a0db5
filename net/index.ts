export { Network } from './network.ts';
export * from './parameters.ts';
export * from './socket/index.ts';
