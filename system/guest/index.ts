/** Stock Linux guests on served HCAs: see README.md. */

export type { CommandResult } from './agent.ts';
export { GuestError } from './guest-error.ts';
export type { VectorComparison } from './interrupts.ts';
export { defaultCacheFolder } from './packages/cache.ts';
export { kernelNames } from './packages/kits.ts';
export { silentProgress, terminalProgress } from './progress.ts';
export { GuestSession, type SessionOptions, type SessionResult, type SessionVersions } from './session.ts';
