/**
 * Many queue pairs of one host write to the other over Ethernet, faster than its memory accepts packets: its port pauses the far one again and
 * again (IEEE 802.3-2018, annex 31B). No frame is dropped or repeated, each pause ends as soon as there is room, and no queue pair starves.
 *
 *     QPs ──▶ frames ══▶ receive fifo ──(slow)──▶ memory
 *              ▲              └── PAUSE at a share of the fifo, again at half its time; it ends at another share
 */

import { countOf, type Messages, type Outcome, playBothWays } from './both-ways.ts';
import type { Draft, Draws, Ended, Played, Stage } from './language/index.ts';
import { failuresOf, mtuOf, psPerMs, psPerNs, psPerUs, scene, times, WRITE } from './language/index.ts';
import { retransmittedIn } from './lost-frames.ts';

function draw(random: Draws): Draft<Messages> {
  const mtuCode = 1 + random.below(5);
  const mtu = mtuOf(mtuCode);
  const packets = 1 + random.below(8);
  const args = {
    qpCount: 2 + random.below(7),
    // One message of each QP after the other; the other side owns the memory.
    opcodes: times(2 + random.below(10), () => WRITE),
    isTwoWay: false,
    lengthBytes: Math.max(1, packets * mtu - random.below(100)),
    mtuCode,
  };
  const xoff = random.chance(0.5) ? 75 : 1 + random.below(100);
  const set = {
    'host.memory.sizeMib': 64,
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
    'ethernet.mtuBytes': mtu + 96 + random.below(200),
    'ethernet.gigabitsPerSecond': random.oneOf([10, 20, 40, 40]),
    'ethernet.receiveFifoFrames': 1 + random.below(random.chance(0.5) ? 8 : 100),
    'ethernet.pauseXoffPercent': xoff,
    'ethernet.pauseXonPercent': random.oneOf([0, 0, 50, 99]),
    // At least 6.6 µs at 40 Gb/s: shorter than many pauses.
    'ethernet.pauseQuanta': random.chance(0.4) ? 65_535 : 512 + random.below(600),
    'ethernet.cableMetres': random.below(8),
    'dma.writeIssueCycles': 60 + random.below(800),
  };
  return { args, set };
}

const patience = { napPs: 500 * psPerNs, patiencePs: 2000 * psPerMs };
const player = (stage: Stage<Messages>): Promise<Outcome> =>
  playBothWays(stage, { timeoutCode: 18, settleMs: 20, wait: (side, count) => side.watch(count, patience) });

function judge({ args, told, report }: Played<Messages, readonly [Outcome, Outcome]>): string[] {
  const [asked, answered] = told;
  const { qpCount, opcodes } = args;
  const count = countOf(args);
  const { fromPs, ended } = asked;
  const found = failuresOf(ended).slice(0, 3);
  if (answered.missing.length > 0) found.push(`messages ${answered.missing} came with other bytes`);
  if (ended.length !== count) return [...found, `${ended.length} of ${count} messages ended`];
  found.push(...retransmittedIn(report));
  const [tookPs, mostPs] = [ended.at(-1)!.atPs - fromPs, mostPsOf(args, report)];
  if (tookPs > mostPs)
    found.push(`${count} messages took ${tookPs} ps, with all pauses ${mostPs} ps should do`);
  return [...found, ...judgeShares(ended, qpCount, opcodes.length)];
}

/** Least payload of the TLPs in which the device writes, by the machine's defaults. */
const tlpBytes = 128;

/**
 * The time of all bytes at the slower of cable and memory, and for each pause the time until the next frame arrives.
 */
function mostPsOf(args: Messages, { config, nodes }: Played<Messages, unknown>['report']): number {
  const { ethernet, hca, dma } = config;
  const mtu = mtuOf(args.mtuCode);
  const packets = countOf(args) * Math.ceil(args.lengthBytes / mtu);
  const bytePs = 8000 / ethernet.gigabitsPerSecond;
  const frameBytes = 20 + 14 + 40 + 12 + 16 + mtu + 4 + 4;
  // A payload that begins within a TLP takes another one, and so do CQEs and payload split at a page end.
  const tlps = Math.ceil(mtu / tlpBytes) + 2;
  const perPacketPs = Math.max(frameBytes * bytePs, (tlps * dma.writeIssueCycles * 1e6) / hca.coreClockMHz);
  const latencyPs = 2 * ethernet.portLatencyNs * psPerNs + ethernet.cableMetres * ethernet.cablePsPerMetre;
  const pauses = nodes[1]!.hca.ethernet?.flowControl['sentTransitions'] ?? 0;
  const perPausePs = 2 * latencyPs + 4 * frameBytes * bytePs + 2 * psPerUs;
  return 1.2 * packets * perPacketPs + pauses * perPausePs + 100 * psPerUs;
}

/** When the first queue pair has ended all of its messages, each of the others has ended one. */
function judgeShares(ended: readonly Ended[], qpCount: number, messages: number): string[] {
  const done = times(qpCount, () => 0);
  for (const { id } of ended) {
    if (++done[id % qpCount]! < messages) continue;
    const starved = done.indexOf(0);
    return starved < 0 || messages < 4
      ? []
      : [`QP ${id % qpCount} had all of its ${messages} messages before QP ${starved} had one`];
  }
  return [];
}

export const pausedFrames = scene({
  about:
    'many queue pairs write over Ethernet to a host that is slower than its cable, and is spared by pauses',
  cable: 'ethernet',
  draw,
  programs: [player, player],
  judge,
});
