/** Stock Linux guests on served HCAs: see README.md. */

export {
  budgetOf,
  figuresBetween,
  type GuestBudget,
  heldToBudget,
  type RunCost,
  readBudget,
} from './budget.ts';
export { guestsByHand, quoted } from './by-hand.ts';
export { GuestError } from './guest-error.ts';
export type { GuestChoice } from './guest-options.ts';
export {
  type GuestCommandResult,
  type GuestReport,
  guestFaultsOf,
  guestReportOf,
  peerFaultsOf,
  renderGuestReport,
} from './guest-report.ts';
export { GuestSession, type SessionResult } from './guest-session.ts';
export * from './inside/index.ts';
export { guestFiles } from './kernel-choice.ts';
export { defaultCacheFolder } from './packages/cache.ts';
export { insideKernelNames, kernelNames } from './packages/kits.ts';
export { silentProgress, terminalProgress } from './progress.ts';
export * from './scenarios/index.ts';
export { makeTemporaryFolder } from './temporary-folder.ts';
