/**
 * Limits of what the faults of a story can do to packets, which decide what the standard allows in it (IBTA 9.7.1,
 * 9.8.2, 9.8.3); and the frames that an Ethernet cable lost or dropped.
 */
import type { FaultEntry } from '../machine/faults/index.ts';
import type { Report } from '../machine/index.ts';
import { isOnEthernet, mayDropFrames, missingFrames } from './ethernet-cable.ts';
import type { Story } from './story.ts';

/** Fields that name packets otherwise than by number: without a number, such a fault concerns all that they name (docs/how-to/faults.md). */
const rules = ['qpn', 'psn', 'opcode', 'only', 'chance', 'shots'];

/** Packets that a fault concerns at most. */
function packetsOf(fault: FaultEntry): number {
  const isRule = rules.some((field) => fault[field] !== undefined);
  const text = String(fault['nth'] ?? (isRule ? 'every' : 1));
  const shots = Number(fault['shots'] ?? Number.POSITIVE_INFINITY);
  if (text === 'every' || text.endsWith('-')) return shots;
  const [first, last] = text.split('-').map(Number);
  return Math.min(shots, last === undefined ? 1 : last - first! + 1);
}

const sumOver = ({ faults }: Story, kinds: readonly string[]): number =>
  faults.reduce((sum, fault) => sum + (kinds.includes(String(fault['packet'])) ? packetsOf(fault) : 0), 0);

/**
 * Maximum number of packets that are lost or overtaken by others. Each may cost a retry, and so may a NAK that arrives
 * twice.
 */
const lossesByFaults = (story: Story): number =>
  sumOver(story, ['corrupted', 'lost', 'reordered', 'duplicated']);

/** Limit of losses before a story is played: unlimited on Ethernet if frames may be dropped. */
export const lossesOf = (story: Story): number =>
  mayDropFrames(story) ? Number.POSITIVE_INFINITY : lossesByFaults(story);

/**
 * Limit of losses afterwards: on Ethernet it includes the frames that did not reach their receiver, as both ends
 * counted them.
 */
export function lossesIn({ story, report }: { readonly story: Story; readonly report: Report }): number {
  if (!isOnEthernet(story)) return lossesOf(story);
  const missing = report.nodes.flatMap((node) => Object.values(missingFrames(node)));
  return missing.reduce((sum, count) => sum + count, lossesByFaults(story));
}

/** Packets at most that arrive twice. */
export const copiesOf = (story: Story): number => sumOver(story, ['duplicated']);

/**
 * Whether messages of unreliable services may arrive out of order, or more than once: their receivers detect no duplicates.
 */
export const isDisordered = (story: Story): boolean => sumOver(story, ['duplicated', 'reordered']) > 0;
