/** Stock Linux guests on served HCAs: see README.md. */

export type { CommandResult } from './agent.ts';
export { GuestError } from './guest-error.ts';
export {
  type GuestCommandResult,
  type GuestReport,
  guestFaultsOf,
  guestReportOf,
  guestReportSchema,
  renderGuestReport,
} from './guest-report.ts';
export type { VectorComparison } from './interrupts.ts';
export { type GuestFiles, guestFiles } from './kernel-choice.ts';
export { defaultCacheFolder } from './packages/cache.ts';
export { kernelNames } from './packages/kits.ts';
export { silentProgress, terminalProgress } from './progress.ts';
export * from './scenarios/index.ts';
export { GuestSession, type SessionOptions, type SessionResult, type SessionVersions } from './session.ts';
