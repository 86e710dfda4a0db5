/** PCs of this process as hosts of our HCAs: see README.md. */

export type { AccessFault, AccessFaultKind } from './access-faults.ts';
export type { BootFiles } from './boot.ts';
export { coreVersion } from './core.ts';
export { coreCode } from './core-code.ts';
export type { ContextCost, KernelConventions, SystemCall } from './kernel-entries.ts';
export type { PageTables } from './page-tables.ts';
export { type PcConfig, pcParameters } from './parameters.ts';
export type { Pc, PcSnapshot } from './pc.ts';
export type { PcTimeAccount } from './pc-clock.ts';
export { PcMachine, type PcPeer } from './pc-machine.ts';
export { type PcProfileCounts, type PcProfileOptions, type ProfileMode, UNTIL_HALT } from './pc-profile.ts';
