/**
 * The judges. None shares code with the device: they know the verbs from the standard, bytes from the story, and times from
 * the programs' own clocks.
 */
import type { Played } from '../run-story.ts';
import { judgeAtomics } from './atomics.ts';
import { judgeBytes } from './bytes.ts';
import { judgeCompletions } from './completions.ts';
import { judgeCounts } from './counts.ts';
import { judgeEnding } from './ending.ts';
import { judgeEvents } from './events.ts';
import { judgeHeld } from './held.ts';
import { judgePhysics } from './physics.ts';
import { judgeReport } from './report.ts';
import { judgeRules } from './rules.ts';

export interface Judge {
  readonly name: string;
  /** @returns what cannot be; empty when all is well */
  judge(played: Played): string[];
}

export const judges: readonly Judge[] = [
  { name: 'ending', judge: judgeEnding },
  { name: 'completions', judge: judgeCompletions },
  { name: 'events', judge: judgeEvents },
  { name: 'bytes', judge: judgeBytes },
  { name: 'atomics', judge: judgeAtomics },
  { name: 'report', judge: judgeReport },
  { name: 'counts', judge: judgeCounts },
  { name: 'physics', judge: judgePhysics },
  { name: 'held', judge: judgeHeld },
  { name: 'rules', judge: judgeRules },
];
