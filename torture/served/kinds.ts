/** What rough guests do, how often, and what is counted of it. */
import type { FieldCoverage } from './hostile-fields.ts';

/** What it does; each is counted. */
export const kinds = [
  'message',
  'configuration',
  'register',
  'command',
  'context',
  'wqe',
  'doorbell',
  'blueFlame',
  'map',
  'interrupt',
  'memory',
  'time',
  'reset',
] as const;
export type Kind = (typeof kinds)[number];
export type KindCounts = Record<Kind, number>;

/** Those of which a campaign plays so many of each; the others come along. */
export const countedKinds = [
  'message',
  'configuration',
  'register',
  'command',
  'context',
  'wqe',
  'doorbell',
] as const satisfies readonly Kind[];

/** What each kind is, for the table. */
export const kindMeanings: Readonly<Record<Kind, string>> = {
  message: 'vfio-user messages of any form',
  configuration: 'accesses of configuration space',
  register: 'accesses of BAR0',
  command: 'commands with random mailboxes',
  context: 'contexts that commands create or change',
  wqe: 'work requests and receives',
  doorbell: 'stores to doorbell pages',
  blueFlame: 'BlueFlame posts',
  map: 'memory mapped and taken back',
  interrupt: 'vectors set, masked, taken away',
  memory: 'stores into what the device reads',
  time: 'pauses',
  reset: 'resets',
};

export const noCounts = (): KindCounts => Object.fromEntries(kinds.map((kind) => [kind, 0])) as KindCounts;

/**
 * How often each is chosen beside the others, where it is done at all. Messages, accesses, WQEs and doorbells come several
 * at once, so that of each kind about as many are done as there are commands, which take the longest.
 */
export const usualWeight: KindCounts = {
  message: 2.7,
  configuration: 2.2,
  register: 2.2,
  command: 4,
  context: 4,
  wqe: 1.8,
  doorbell: 1.2,
  blueFlame: 0.4,
  map: 0.3,
  interrupt: 0.5,
  memory: 1,
  time: 0.5,
  reset: 0.05,
};

/** How often each command ended with each status; -1: it had not ended. */
export type CommandCoverage = Map<string, Map<number, number>>;

/** What rough guests have met. */
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

/** Adds what another story has met. */
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
