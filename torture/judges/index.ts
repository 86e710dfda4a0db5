/**
 * The judges. None shares code with the device: verbs come from the standard, bytes from the story, times from the programs' own
 * clocks.
 */
import type { Played } from '../run-story.ts';
import { sceneOf } from '../scenes/index.ts';
import type { Story } from '../story.ts';
import { judgeAnswers } from './answers.ts';
import { judgeAtomics } from './atomics.ts';
import { judgeBytes } from './bytes.ts';
import { judgeCompletions } from './completions.ts';
import { judgeCounts } from './counts.ts';
import { judgeEnding } from './ending.ts';
import { judgeEvents } from './events.ts';
import { judgeFrames } from './frames.ts';
import { judgeHeld } from './held.ts';
import { judgeIwarp } from './iwarp.ts';
import { judgeLinks } from './links.ts';
import { judgeLiveness } from './liveness.ts';
import { judgePackets } from './packets.ts';
import { judgePhysics } from './physics.ts';
import { judgeReport } from './report.ts';
import { judgeRequester } from './requester.ts';
import { judgeRules } from './rules.ts';
import { judgeStalls } from './stalls.ts';

export interface Judge {
  readonly name: string;
  /** @returns the contradictions; empty when all is well */
  judge(played: Played): string[];
}

/** Judges of hardware and drivers, for every story. */
const ofHardware: readonly Judge[] = [
  { name: 'held', judge: judgeHeld },
  { name: 'packets', judge: judgePackets },
  { name: 'frames', judge: judgeFrames },
  { name: 'links', judge: judgeLinks },
  { name: 'iwarp', judge: judgeIwarp },
  { name: 'answers', judge: judgeAnswers },
  { name: 'stalls', judge: judgeStalls },
  { name: 'requester', judge: judgeRequester },
  { name: 'rules', judge: judgeRules },
];

/** Judges of stories of players. */
export const judges: readonly Judge[] = [
  { name: 'ending', judge: judgeEnding },
  { name: 'completions', judge: judgeCompletions },
  { name: 'events', judge: judgeEvents },
  { name: 'bytes', judge: judgeBytes },
  { name: 'atomics', judge: judgeAtomics },
  { name: 'report', judge: judgeReport },
  { name: 'counts', judge: judgeCounts },
  { name: 'physics', judge: judgePhysics },
  { name: 'liveness', judge: judgeLiveness },
  ...ofHardware,
];

/** Each scene checks what its own programs must see. */
const ofScenes: readonly Judge[] = [
  { name: 'ending', judge: judgeEnding },
  { name: 'scene', judge: judgeScene },
  ...ofHardware,
];

export const judgesOf = ({ scene }: Story): readonly Judge[] => (scene === undefined ? judges : ofScenes);

function judgeScene({ story, results, report, error }: Played): string[] {
  const { scene, set, faults } = story;
  if (scene === undefined) return [];
  const missing = results.flatMap((result, program) =>
    result === null && error === undefined ? [`program ${program} of ${scene.name} did not end`] : [],
  );
  const { judge } = sceneOf(scene);
  const found =
    missing.length > 0 || error !== undefined
      ? []
      : judge({ args: scene.args, set, faults, results, report });
  return [...missing, ...found].map((what) => `${scene.name}: ${what}`);
}

export { transportPacketIn } from './answers/transport-packet.ts';
export { judgeCosts } from './costs.ts';
export { cableEndsOf, isIntact, type SeenFrame } from './ethernet/cable-end.ts';
export { packetIn } from './ethernet/frame.ts';
