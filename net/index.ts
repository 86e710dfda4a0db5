export { NetCounts } from './counts.ts';
export { Network, netConfigOf } from './network.ts';
export * from './parameters.ts';
export type { Cpu, NetPlatform, UserMemory } from './platform.ts';
export * from './socket/index.ts';
export { addressText, type NetAddresses } from './stack/index.ts';
