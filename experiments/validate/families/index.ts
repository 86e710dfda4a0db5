import type { Family } from '../family.ts';
import { fabricFamilies } from './fabrics.ts';
import { guidelinesFamilies } from './guidelines.ts';
import { herdFamilies } from './herd.ts';
import { iwarpFamilies } from './iwarp.ts';
import { kernelTcpFamilies } from './kernel-tcp.ts';
import { perftestFamilies } from './perftest.ts';
import { swarmAndLiteFamilies } from './swarm-and-lite.ts';
import { synchronousFamilies } from './synchronous.ts';
import { timersAndSlotFamilies } from './timers-and-slot.ts';

/** All families: every row of the measurements belongs to exactly one. */
export const families: readonly Family[] = [
  ...perftestFamilies,
  ...herdFamilies,
  ...guidelinesFamilies,
  ...swarmAndLiteFamilies,
  ...timersAndSlotFamilies,
  ...synchronousFamilies,
  ...kernelTcpFamilies,
  ...iwarpFamilies,
  ...fabricFamilies,
];
export { isPublished, refusalOf } from './own-rows.ts';
export { sourceMachines } from './sources.ts';
export { apt } from './streams.ts';
export { isolationLoopNs, isolationMtuBytes, rfpInlineBytes, rfpSectionNs } from './synchronous.ts';
