/**
 * The link goes down in mid-traffic in both directions and recovers long before retries are used up: packets that waited for the link or for
 * credits continue, discarded ones are repeated after time-outs, and all requests succeed (IBTA 9.7.6.1.3, 14.2.5.6).
 */

import { type Messages, playWell } from './both-ways.ts';
import type { Draft, Draws, FaultEntry, Stage } from './language/index.ts';
import { psPerUs, READ, scene, times, WRITE } from './language/index.ts';

function draw(random: Draws): Draft<Messages> {
  const qpCount = 1 + random.below(3);
  const isOneWay = random.chance(0.6);
  const kinds = isOneWay ? [WRITE] : random.oneOf([[WRITE], [READ], [WRITE, READ]]);
  const args = {
    qpCount,
    isTwoWay: !isOneWay,
    opcodes: times(4 + random.below(6), () => random.oneOf(kinds)),
    lengthBytes: 2000 + random.below(8000),
    mtuCode: 2 + random.below(4),
  };
  const faults = times(1 + random.below(2), (at): FaultEntry => {
    const isPort = random.chance(0.5);
    const delayUs = 20 + at * 1500 + random.below(random.chance(0.5) ? 100 : 700);
    const forUs = 1 + random.below(random.chance(0.5) ? 30 : 1000);
    const when = { after: 'RTR2RTS_QP', nth: qpCount, delay: `${delayUs}us`, for: `${forUs}us` };
    const node = random.below(2);
    return isPort ? { ...when, node, port: 'down' } : { ...when, node, cable: 'pulled' };
  });
  /** If only one side sends requests, parameters that delay its packets. */
  const few = (share: number, parameters: Readonly<Record<string, number>>) =>
    isOneWay || random.chance(share) ? parameters : {};
  const set = {
    'wire.speed': 'SDR',
    'wire.lanes': isOneWay || random.chance(0.5) ? '4' : '1',
    ...few(0.6, { 'hca.transmitBufferPackets': 2, 'hca.responseBufferPackets': 2 }),
    ...few(0.5, { 'wire.receiveBufferBytes': 8448, 'wire.creditReturnBytes': 64 }),
    ...few(0.5, { 'dma.writeIssueCycles': 900 }),
  };
  return { args, set, faults, climate: 'lossy' };
}

const patience = { napPs: 5 * psPerUs, patiencePs: 200_000 * psPerUs };
const player = (stage: Stage<Messages>): Promise<void> =>
  playWell(stage, { timeoutCode: 10, settleMs: 2, wait: (side, count) => side.watch(count, patience) });

export const linkDown = scene({
  about: 'the link goes down and comes up in the middle of traffic in both directions',
  cable: 'infiniband',
  draw,
  programs: [player, player],
});
