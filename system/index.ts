export type { FaultEntry, FaultKind, FaultPlan } from './faults/index.ts';
export { Machine, type MachineOptions } from './machine.ts';
export { type Partition, partitions } from './partition/placement.ts';
export * from './profile/index.ts';
export type * from './program.ts';
export * from './report/index.ts';
export type { RunFacts } from './run-facts.ts';
