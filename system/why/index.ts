/** Interface of this room: why requests fail or never end (README.md). */
export type { Finding } from './finding.ts';
export { type DiagnosedRun, diagnosedRun, findingsOf, MotionWatch } from './run.ts';
export { findingLines } from './text.ts';
