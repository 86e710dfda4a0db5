export * from './device.ts';
export type { GuestMemory } from './memory.ts';
