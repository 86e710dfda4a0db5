/**
 * Messages both ways over a link whose receive buffers are nearly always full: every packet waits for credits, which return when the peer has
 * written another packet to memory; so does a packet that a fault delays or duplicates, which precedes all others when it is due. All succeed.
 *
 *     packets ══► buffer of a few packets ──(slow)──► memory
 *        ▲                        └── credits, some packets at a time
 */

import { type Messages, playWell } from './both-ways.ts';
import type { Draft, Draws, FaultEntry, Stage } from './language/index.ts';
import { mtuOf, READ, scene, times, WRITE } from './language/index.ts';

/**
 * A packet is held back until others have passed it or a time is over, or is duplicated later: it then needs its own
 * credits.
 */
function drawFault(random: Draws): FaultEntry {
  const which = { node: random.below(2), nth: 1 + random.below(60) };
  const delay = `${1 + random.below(random.chance(0.5) ? 3000 : 60_000)}ns`;
  return random.chance(0.5)
    ? { packet: 'duplicated', delay, ...which }
    : { packet: 'reordered', by: 1 + random.below(20), delay, ...which };
}

function draw(random: Draws): Draft<Messages> {
  const mtuCode = 1 + random.below(5);
  const isFaulty = random.chance(0.8);
  const kinds = random.oneOf([[WRITE], [READ], [WRITE, READ]]);
  const packets = 1 + random.below(12);
  const args = {
    qpCount: 1 + random.below(4),
    opcodes: times(2 + random.below(6), () => random.oneOf(kinds)),
    lengthBytes: Math.max(1, Math.min(16_384, packets * mtuOf(mtuCode)) - random.below(200)),
    mtuCode,
    isTwoWay: random.chance(0.6),
  };
  const set = {
    'host.memory.sizeMib': 64,
    'wire.speed': 'SDR',
    'wire.lanes': random.chance(0.6) ? '1' : '4',
    'wire.cableMetres': random.chance(0.7) ? 0 : 1 + random.below(200),
    'wire.cablePsPerMetre': 4000,
    // A byte takes 4 ns in one lane.
    'hca.coreClockMHz': random.chance(0.4) ? 250 : 427,
    'wire.receiveBufferBytes': 8448 + (random.chance(0.5) ? 0 : 64 * random.below(40)),
    'wire.creditReturnBytes': 64 << random.below(5),
    'dma.writeIssueCycles': random.chance(0.7) ? 20 + random.below(900) : 1,
  };
  if (!isFaulty) return { args, set };
  return { args, set, faults: times(1 + random.below(3), () => drawFault(random)), climate: 'lossy' };
}

const player = (stage: Stage<Messages>): Promise<void> =>
  playWell(stage, { timeoutCode: 12, settleMs: 2, wait: (side, count) => side.completions(count) });

export const fullReceiveBuffers = scene({
  about: 'messages wait for the credits of a link with small receive buffers, also such as faults hold back',
  cable: 'infiniband',
  draw,
  programs: [player, player],
});
