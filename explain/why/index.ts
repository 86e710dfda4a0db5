/** Interface of this room: why requests fail or never end (README.md). */

export type { Cause } from './cause.ts';
export { diagnosedGuests } from './diagnose.ts';
export { ProgramLines } from './program-lines.ts';
export { causesOf, diagnosedRun, MotionWatch } from './run.ts';
export { causeLines } from './text.ts';
