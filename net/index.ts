export { Network } from './network.ts';
export * from './parameters.ts';
export * from './socket/index.ts';
export { type InterfaceSetup, ipv6Of, linkLocalOf } from './stack/index.ts';
