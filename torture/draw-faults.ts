/** Faults of a story, by its climate: none when calm, packets when lossy, everything when broken. */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { Random } from '../sim/index.ts';
import type { Climate } from './story.ts';

export function drawFaults(random: Random, climate: Climate): FaultEntry[] {
  if (climate === 'calm' || climate === 'flawed') return drawHarmless(random);
  const faults: FaultEntry[] = [];
  const packetCount = 1 + random.below(random.chance(0.3) ? 12 : 3);
  for (let count = 0; count < packetCount; count++) faults.push(packetFault(random));
  if (climate === 'lossy') return faults;
  const count = 1 + random.below(3);
  for (let index = 0; index < count; index++) faults.push(deviceFault(random));
  return faults;
}

/** What programs notice by their clocks at most. */
function drawHarmless(random: Random): FaultEntry[] {
  if (random.chance(0.1)) return [lateInterrupt(random)];
  if (!random.chance(0.1)) return [];
  const count = 1 + random.below(4);
  return Array.from({ length: count }, () =>
    random.chance(0.7) ? spuriousInterrupt(random) : lateInterrupt(random),
  );
}

function packetFault(random: Random): FaultEntry {
  const node = random.below(2);
  const first = 1 + random.below(random.chance(0.5) ? 12 : 200);
  const nth = random.chance(0.2) ? `${first}-${first + random.below(6)}` : first;
  if (random.chance(0.3)) return { packet: 'late', nth, delay: `${1 + random.below(20_000)}ns`, node };
  switch (random.below(5)) {
    case 0:
      return { packet: 'lost', nth, node };
    case 1:
      return { packet: 'duplicated', nth, delay: `${1 + random.below(rangeNs(random))}ns`, node };
    case 2:
      return {
        packet: 'reordered',
        nth,
        by: 1 + random.below(random.chance(0.5) ? 1 : 20),
        delay: `${1 + random.below(rangeNs(random))}ns`,
        node,
      };
    default:
      return { packet: 'corrupted', nth, node };
  }
}

/** Shorter than a round trip, some round trips, or longer than many a time-out. */
const rangeNs = (random: Random): number => [1000, 30_000, 3_000_000][random.below(3)]!;

const spuriousInterrupt = (random: Random): FaultEntry => ({
  interrupt: 'spurious',
  vector: random.below(4),
  nth: 1 + random.below(30),
  node: random.below(2),
});

const lateInterrupt = (random: Random): FaultEntry => ({
  interrupt: 'late',
  nth: 1 + random.below(20),
  delay: `${1 + random.below(200_000)}ns`,
  node: random.below(2),
});

function deviceFault(random: Random): FaultEntry {
  const node = random.below(2);
  const after = 'RTR2RTS_QP';
  const delay = `${random.below(100_000)}ns`;
  switch (random.below(7)) {
    case 0:
      return { interrupt: 'lost', nth: 1 + random.below(30), node };
    case 1:
      return { interrupt: 'spurious', vector: random.below(4), nth: 1 + random.below(30), node };
    case 2:
      return lateInterrupt(random);
    case 3:
      return {
        read: ['any', 'wqeRead', 'payloadRead', 'translation', 'context'][random.below(5)]!,
        nth: 1 + random.below(200),
        answer: ['lost', 'unsupportedRequest', 'completerAbort', 'poisoned'][random.below(4)]!,
        node,
      };
    case 4:
      return { port: 'down', after, delay, for: `${1 + random.below(300)}us`, node };
    case 5:
      return { cable: 'pulled', after, delay, for: `${1 + random.below(300)}us`, node };
    default:
      return { device: 'gone', after, delay, node };
  }
}
