/**
 * A scene is a story made on purpose: programs of its own around one situation that hardly ever arises by chance, drawn with
 * other numbers and on other hardware each time, and judged by what it expects to see itself.
 *
 *     seed ─► scene, arguments, hardware, faults ─► its programs on a machine ─► their results, report ─► its judge
 *
 * Stories of players (draw-story.ts) find what no author thought of; scenes vary one known situation in every way.
 */

import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, Report } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import type { Random } from '../../sim/index.ts';
import type { Again, Climate } from '../story.ts';

/** How a story says which scene it is: plain data, like all of a story. */
export interface ScenePlan {
  readonly name: string;
  /** Given to each of its programs. */
  readonly args: JsonValue;
  /** Simulated time that it may take beyond that of other stories. */
  readonly sleepsSeconds?: number;
}

/** What a scene draws. */
export interface SceneDraft {
  readonly args: JsonValue;
  /** Parameters that the scene needs; they win over those of the drawn hardware. */
  readonly set?: ParameterValues;
  /** Whether the rest of the hardware is drawn as for other stories, or the default machine's. */
  readonly hasDrawnHardware: boolean;
  readonly faults?: readonly FaultEntry[];
  /** Left out: calm. What `broken` may leave behind is not held against it. */
  readonly climate?: Climate;
  /** Simulated time that its programs sleep, where that is minutes and more. */
  readonly sleepsSeconds?: number;
  /** How it is played once more, with the same report; left out: some are, in any way. */
  readonly again?: Again;
}

/** One program of a scene: a function that its module exports. */
export interface SceneProgram {
  readonly node: number;
  readonly exportName: string;
}

/** What a scene's judge sees. */
export interface ScenePlayed {
  readonly args: JsonValue;
  readonly set: ParameterValues;
  readonly faults: readonly FaultEntry[];
  /** What each program returned; null of one that did not end. */
  readonly results: readonly (JsonValue | null)[];
  readonly report: Report;
}

export interface Scene {
  /** Words with hyphens; names the scene in stories and tables. */
  readonly name: string;
  /** What happens, in one sentence. */
  readonly about: string;
  /** `import.meta.url` of the module that exports its programs. */
  readonly module: string;
  readonly programs: readonly SceneProgram[];
  /** A play takes seconds: few seeds draw this scene. */
  readonly isSlow?: true;
  /** It is about this cable, or counts commands or packets as drivers of this one need them; left out: hosts may be on either. */
  readonly cable?: 'infiniband' | 'ethernet';
  draw(random: Random): SceneDraft;
  /** Rules of the interface that its programs break on purpose: names of analyser/lint/rules.ts. */
  readonly breaksRules?: readonly string[];
  /** Whether leftovers of objects and hardware are judged as of any story; default true. */
  readonly leavesNothing?: false;
  /**
   * Reads that the device has abandoned wait at the host, and may be carried out when their memory has another owner.
   */
  readonly hasLateReads?: true;
  /** Its programs take memory away from under the device, whose reads are refused. */
  readonly hasRefusedReads?: true;
  /** Its datagrams to groups leave by the cable and return to the port: both ledgers have them. */
  readonly sendsToGroups?: true;
  /** A device is reset while it has requests under way. */
  readonly hasResets?: true;
  /** @returns the contradictions; empty when all is well */
  judge(played: ScenePlayed): string[];
}
