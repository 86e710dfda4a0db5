/** PCs of this process as hosts of our HCAs: see README.md. */

export { BootError, type BootFiles } from './boot.ts';
export { CorePatchError, coreVersion } from './core.ts';
export type { PageTables } from './page-tables.ts';
export { type PcConfig, pcParameters } from './parameters.ts';
export type { Pc, PcSnapshot } from './pc.ts';
export type { PcTimeAccount } from './pc-clock.ts';
export { PcMachine, type PcMachineOptions } from './pc-machine.ts';
export { type PcProfileCounts, type ProfileMode, UNTIL_HALT } from './pc-profile.ts';
