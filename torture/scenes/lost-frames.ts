/**
 * Messages both ways over Ethernet without flow control, to ports that hold a few frames and drop others, and over a cable that loses, damages,
 * duplicates and delays some. Each message succeeds and arrives once, or uses up its retries, which takes more losses than retries; without
 * losses no packet is retransmitted (IBTA vol 1, 9.7.5, 9.9.2).
 */

import { missingFrames } from '../ethernet-cable.ts';
import { countOf, type Messages, type Outcome, playBothWays } from './both-ways.ts';
import type { Draft, Draws, FaultEntry, Played, Stage } from './language/index.ts';
import { isWell, mtuOf, psPerMs, READ, SEND, scene, sumOf, times, WRITE } from './language/index.ts';

const retryCount = 7;

export function drawFault(random: Draws): FaultEntry {
  const which = {
    node: random.below(2),
    shots: 1 + random.below(3),
    ...(random.chance(0.5)
      ? { nth: `${1 + random.below(40)}-` }
      : { chance: `${1 + random.below(20)}%`, seed: random.uint32() }),
  };
  const delay = `${1 + random.below(random.chance(0.5) ? 3000 : 60_000)}ns`;
  const kind = random.below(6);
  if (kind === 0) return { packet: 'duplicated', delay, ...which };
  if (kind === 1) return { packet: 'reordered', by: 1 + random.below(6), delay, ...which };
  if (kind === 2) return { packet: 'late', delay, ...which };
  if (kind > 3) return { packet: 'lost', ...which };
  const crc = random.maybe(0.5, () => ({ crc: 'icrc' }));
  const where = random.maybe(0.5, () => ({ where: random.oneOf(['header', 'payload']) }));
  return { packet: 'corrupted', ...crc, ...where, ...which };
}

function draw(random: Draws): Draft<Messages> {
  const mtuCode = 1 + random.below(5);
  const mtu = mtuOf(mtuCode);
  const kinds = [WRITE, READ, SEND].filter(() => random.chance(0.6));
  const args = {
    qpCount: 1 + random.below(4),
    opcodes: times(1 + random.below(6), () => random.oneOf(kinds.length === 0 ? [WRITE] : kinds)),
    lengthBytes: Math.max(1, Math.min(16_384, (1 + random.below(12)) * mtu) - random.below(200)),
    mtuCode,
    isTwoWay: random.chance(0.5),
  };
  const set = {
    'host.memory.sizeMib': 64,
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
    'driver.usesPause': random.chance(0.1),
    'ethernet.mtuBytes': mtu + 96 + random.below(200),
    'ethernet.gigabitsPerSecond': random.oneOf([1, 10, 25, 40, 100, 400]),
    'ethernet.receiveFifoFrames': 1 + random.below(random.chance(0.6) ? 4 : 40),
    'ethernet.cableMetres': random.chance(0.5) ? 2 : random.below(2000),
    'dma.writeIssueCycles': random.chance(0.6) ? 1 + random.below(100) : 1,
  };
  const faults = random.chance(0.6) ? times(1 + random.below(3), () => drawFault(random)) : [];
  return { args, set, faults, climate: 'lossy' };
}

const player = (stage: Stage<Messages>): Promise<Outcome> =>
  playBothWays(stage, {
    timeoutCode: 13,
    settleMs: 20,
    wait: (side, count) => side.completions(count, 4000 * psPerMs),
  });

function judge({ args, told, report }: Played<Messages, readonly Outcome[]>): string[] {
  const count = countOf(args);
  const losses = lossesOf(report);
  const found: string[] = [];
  let failed = 0;
  for (const node of args.isTwoWay ? [0, 1] : [0]) {
    const own = told[node]!.ended.filter(({ id }) => id < count);
    const there = told[1 - node]!;
    if (own.length !== count) found.push(`node ${node}: ${own.length} of ${count} messages ended`);
    for (const one of own) {
      const what = `message ${one.id} of node ${node}`;
      if (isWell(one) && there.missing.includes(one.id))
        found.push(`${what} ended well, and is not at the other`);
      if (isWell(one) && told[node]!.misread.includes(one.id)) found.push(`${what} has brought other bytes`);
      if (one.status === 'RETRY_EXC_ERR') failed++;
      else if (!isWell(one) && one.status !== 'WR_FLUSH_ERR') found.push(`${what} ended in ${one.status}`);
      else if (!isWell(one) && failed === 0 && losses <= retryCount)
        found.push(`${what} was flushed, and nothing had failed`);
    }
    const taken = there.ended.filter((one) => one.id >= count && isWell(one)).map(({ id }) => id);
    if (new Set(taken).size !== taken.length) found.push(`messages of node ${node} came twice`);
  }
  if (failed > 0 && losses <= retryCount)
    found.push(`retries were used up with ${losses} frames lost, ${retryCount} of them need more`);
  if (losses === 0 && !hasOrderFaults(report)) found.push(...retransmittedIn(report));
  return found;
}

type Report = Played<Messages, unknown>['report'];

/** Words for what was sent again. */
export const retransmittedIn = ({ wire }: Report): string[] =>
  wire.flatMap(({ from, retransmitted }) =>
    Object.entries(retransmitted).map(
      ([opcode, { packets }]) => `node ${from} sent ${packets} ${opcode} again, and nothing was lost`,
    ),
  );

const lossesOf = ({ nodes }: Report): number =>
  sumOf(nodes.flatMap((node) => Object.values(missingFrames(node))));

/** A frame that others passed was missing when it was due, and a NAK that arrives twice counts twice. */
const hasOrderFaults = ({ nodes }: Report): boolean =>
  nodes.some(({ hca }) => {
    const { heldBackFrames = 0, copiedFrames = 0 } = hca.ethernet?.transmitted ?? {};
    return heldBackFrames + copiedFrames > 0;
  });

export const lostFrames = scene({
  about:
    'messages over Ethernet to ports that hold a few frames and drop the next, on a cable that loses some',
  cable: 'ethernet',
  draw,
  programs: [player, player],
  judge,
});
