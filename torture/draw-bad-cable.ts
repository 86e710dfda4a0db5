/**
 * Cables that treat a share of all packets badly for as long as the story lasts: lost, damaged in header or payload, doubled, passed by
 * others, late, or all of it, either way or one way. Added to a finished story from random numbers of its own, so that the rest of it
 * stays as it was.
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { Random } from '../sim/index.ts';
import type { Story } from './story.ts';

/** Of the stories without faults. */
const share = 0.2;

/** @returns the story, in some cases on a bad cable */
export function withBadCable(random: Random, story: Story): Story {
  if (story.climate !== 'calm' || story.faults.length > 0 || !random.chance(share)) return story;
  const nodes = random.chance(0.7) ? [0, 1] : [random.below(2)];
  const all = badly(random);
  const kinds = random.chance(0.3) ? all : [all[random.below(all.length)]!];
  const faults = nodes.flatMap((node) => kinds.map((kind) => ({ ...kind, node, seed: random.uint32() })));
  return { ...story, climate: 'lossy', faults };
}

/** Each way in which a packet may be treated badly, up to one packet in ten. */
function badly(random: Random): FaultEntry[] {
  const chance = `${1 + random.below(10)}%`;
  const delay = `${1 + random.below(random.chance(0.5) ? 2_000 : 40_000)}ns`;
  return [
    { packet: 'lost', chance },
    { packet: 'corrupted', where: 'header', chance },
    { packet: 'corrupted', where: 'payload', crc: 'icrc', chance },
    { packet: 'duplicated', delay, chance },
    { packet: 'reordered', by: 1 + random.below(6), delay, chance },
    { packet: 'late', delay, chance },
  ];
}
