/** Kinds of actions of rough guests, their weights and counts. */
import type { FieldCoverage } from './hostile-fields.ts';

interface KindRow {
  readonly meaning: string;
  /**
   * Relative frequency of the kind, at stages where it is used. Messages, accesses, WQEs and doorbells are sent several
   * at once, so that each kind is used about as often as commands, which take the longest.
   */
  readonly weight: number;
}

const row = (weight: number, meaning: string): KindRow => ({ meaning, weight });

/** Actions; each is counted. */
export const kindTable = {
  message: row(2.7, 'vfio-user messages of any form'),
  configuration: row(2.2, 'accesses of configuration space'),
  register: row(2.2, 'accesses of BAR0'),
  command: row(4, 'commands with random mailboxes'),
  context: row(4, 'contexts that commands create or change'),
  wqe: row(1.8, 'work requests and receives'),
  doorbell: row(1.2, 'stores to doorbell pages'),
  blueFlame: row(0.4, 'BlueFlame posts'),
  map: row(0.3, 'memory mapped and taken back'),
  interrupt: row(0.5, 'vectors set, masked, taken away'),
  memory: row(1, 'stores into what the device reads'),
  time: row(0.5, 'pauses'),
  reset: row(0.05, 'resets'),
} as const satisfies Readonly<Record<string, KindRow>>;
export type Kind = keyof typeof kindTable;
export type KindCounts = Record<Kind, number>;
export const kinds = Object.keys(kindTable) as Kind[];

/** The first kinds: a campaign plays a fixed number of each; the others accompany them. */
export const countedKinds: readonly Kind[] = kinds.slice(0, kinds.indexOf('blueFlame'));

export const noCounts = (): KindCounts => Object.fromEntries(kinds.map((kind) => [kind, 0])) as KindCounts;

/** Number of times that each command ended with each status; -1: it had not ended. */
export type CommandCoverage = Map<string, Map<number, number>>;

/** Coverage of rough guests. */
export interface RoughCoverage {
  readonly commands: CommandCoverage;
  readonly fields: FieldCoverage;
}

export const noRoughCoverage = (): RoughCoverage => ({ commands: new Map(), fields: new Map() });

export function noteCommand(coverage: CommandCoverage, name: string, status: number): void {
  const statuses = coverage.get(name) ?? new Map<number, number>();
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  coverage.set(name, statuses);
}

/** Adds another story's coverage. */
export function addCoverage(to: RoughCoverage, { commands, fields }: RoughCoverage): void {
  for (const [name, statuses] of commands)
    for (const [status, count] of statuses) {
      const counts = to.commands.get(name) ?? new Map<number, number>();
      counts.set(status, (counts.get(status) ?? 0) + count);
      to.commands.set(name, counts);
    }
  for (const [name, { accepted, refused }] of fields) {
    const counts = to.fields.get(name) ?? { accepted: 0, refused: 0 };
    counts.accepted += accepted;
    counts.refused += refused;
    to.fields.set(name, counts);
  }
}
