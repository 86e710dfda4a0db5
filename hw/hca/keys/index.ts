/** Interface of this room: see README.md. */

export { KeyEntry, type KeyStores } from './key-entry.ts';
export type { KeySteps } from './key-steps.ts';
export { KeyRefusal } from './key-steps.ts';
export { KeyUnit } from './key-unit.ts';
export { releaseRegion } from './windows.ts';
