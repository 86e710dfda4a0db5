/**
 * A scene is a story about one situation that rarely arises by chance: programs of its own, with other numbers and hardware each time, and its
 * own judge.
 *
 *     seed ─► draw: arguments, hardware, faults ─► its programs on a machine ─► accusations, return values ─► judge
 *
 * Stories of players (draw-story.ts) find unexpected errors; scenes vary one known situation in every way.
 */
import type { FaultEntry } from '../../../machine/faults/index.ts';
import type { ProgramContext, Report } from '../../../machine/index.ts';
import type { ParameterValues } from '../../../machine/profile/index.ts';
import type { Again, Climate } from '../../story.ts';
import type { Draws } from './draws.ts';
import { Stage } from './stage.ts';

/** The scene of a story, as plain data. */
export interface ScenePlan {
  readonly name: string;
  /** Arguments of each of its programs. */
  readonly args: unknown;
  /** Simulated time that it may take in addition to that of other stories. */
  readonly sleepsSeconds?: number;
}

/** Result of a scene's `draw`. */
export interface Draft<Args = unknown> {
  readonly args: Args;
  /** Parameters that the scene needs; they win over those of the drawn hardware. */
  readonly set?: ParameterValues;
  /** Whether the rest of the hardware is drawn as for other stories; left out: it is the default machine's. */
  readonly hasDrawnHardware?: boolean;
  readonly faults?: readonly FaultEntry[];
  /** Climate of the scene; omitted: calm. Judges tolerate more in a `broken` one. */
  readonly climate?: Climate;
  /** Simulated time that its programs sleep, if it is minutes or more. */
  readonly sleepsSeconds?: number;
  /** Second play, with the same report; left out: drawn as for other stories. */
  readonly again?: Again;
}

/** Arguments that a function draws; its literals declare them. */
export type ArgsOf<D extends (random: Draws) => Draft<unknown>> = ReturnType<D>['args'];

/** Input of a scene's judge. */
export interface Played<Args, Told> {
  readonly args: Args;
  /** Return value of each program. */
  readonly told: Told;
  readonly set: ParameterValues;
  readonly faults: readonly FaultEntry[];
  readonly report: Report;
}

/** Needs of a scene, and rules that judges do not apply to it. */
interface Traits {
  /** The situation, in one sentence. */
  readonly about: string;
  /** A play takes seconds: few seeds draw this scene. */
  readonly isSlow?: true;
  /** The only cable on which it holds; left out: either. */
  readonly cable?: 'infiniband' | 'ethernet';
  /** Rules of the interface that its programs break on purpose, by their names in analyser/lint/rules.ts. */
  readonly breaksRules?: readonly string[];
  /** The host may carry out reads that the device has abandoned when their memory has another owner. */
  readonly hasLateReads?: true;
  /** Its programs take memory away from the device, whose reads are refused. */
  readonly hasRefusedReads?: true;
  /** Its datagrams to groups leave by the cable and also return to the port: both ledgers count them. */
  readonly sendsToGroups?: true;
  /** A device is reset while it has requests under way. */
  readonly hasResets?: true;
}

/** A program of a scene; the judge receives its return value. */
type Play<Args, Told> = (stage: Stage<Args>) => Promise<Told>;

/** A program, and the host that it runs on. */
interface Placed<Args, Told> {
  readonly node: number;
  readonly play: Play<Args, Told>;
}

/** A scene as its author writes it. */
interface Specification<Args, Told extends readonly unknown[]> extends Traits {
  draw(random: Draws): Draft<Args>;
  /**
   * Programs: the first at host 0 and the second at host 1, unless {@link on} places them.
   */
  readonly programs: { readonly [P in keyof Told]: Play<Args, Told[P]> | Placed<Args, Told[P]> };
  /**
   * @returns the contradictions beyond the accusations of the programs; empty if there are none
   */
  judge?(played: Played<Args, Told>): readonly string[];
}

/** Outcome of one program. */
interface Result {
  readonly wrong: readonly string[];
  readonly told: unknown;
}

/** A scene before the list of all scenes gives it its name (all.ts). */
export interface Unnamed extends Traits {
  readonly programs: readonly {
    readonly node: number;
    run(context: ProgramContext, args: unknown): Promise<Result>;
  }[];
  draw(random: Draws): Draft;
  judge(played: {
    readonly args: unknown;
    readonly results: readonly unknown[];
    readonly set: ParameterValues;
    readonly faults: readonly FaultEntry[];
    readonly report: Report;
  }): string[];
}

/** A scene as a story plays it. */
export interface Scene extends Unnamed {
  /** Words with hyphens. */
  readonly name: string;
}

/** Findings of one program that a scene reports. */
const wrongMax = 5;

/** Places a program at a host. */
export const on = <Args, Told>(node: number, play: Play<Args, Told>): Placed<Args, Told> => ({ node, play });

/** Makes a scene of its specification. */
export function scene<Args, const Told extends readonly unknown[] | []>({
  draw,
  programs,
  judge = () => [],
  ...traits
}: Specification<Args, Told>): Unnamed {
  const cast = (programs as readonly (Play<Args, unknown> | Placed<Args, unknown>)[]).map((program, at) =>
    typeof program === 'function' ? { node: at, play: program } : program,
  );
  return {
    ...traits,
    programs: cast.map(({ node, play }) => ({
      node,
      run: async (context, args) => {
        const stage = new Stage(context, args as Args);
        const told = (await play(stage)) ?? null;
        await stage.close();
        return { wrong: stage.wrong, told };
      },
    })),
    draw,
    judge: ({ args, results, ...played }) => {
      const each = results as readonly Result[];
      const wrong = each.flatMap((one, at) =>
        one.wrong.slice(0, wrongMax).map((what) => `program ${at}: ${what}`),
      );
      const told = each.map((one) => one.told) as unknown[] as Told;
      return [...wrong, ...judge({ ...played, args: args as Args, told })];
    },
  };
}
