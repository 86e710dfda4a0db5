/**
 * Many queue pairs of one host write to the other, which puts packets away more slowly than its cable of Ethernet brings them: its port has
 * the far one pause, again and again (IEEE 802.3-2018, annex 31B). Nothing is dropped and nothing sent twice, each pause ends as soon as there
 * is room, and no queue pair waits until others have ended.
 *
 *     QPs ──▶ frames ══▶ receive fifo ──(slow)──▶ memory
 *              ▲              └── PAUSE at a share of the fifo, again at half its time; none any more when it is down to another share
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  failuresOf,
  leave,
  nowPs,
  post,
  requestOf,
} from './pair.ts';
import { differencesOf, patternOf } from './patterns.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** Messages of each QP, and bytes of each. */
  readonly messages: number;
  readonly lengthBytes: number;
  readonly mtuCode: number;
}

interface Told {
  readonly fromPs: number;
  readonly ended: readonly Ended[];
}

/** Least payload of the TLPs in which the device writes, by the machine's defaults, and cycles that each takes. */
const tlpBytes = 128;

function draw(random: Random): SceneDraft {
  const mtuCode = 1 + random.below(5);
  const mtu = 128 << mtuCode;
  const packets = 1 + random.below(8);
  const args: Args = {
    qpCount: 2 + random.below(7),
    messages: 2 + random.below(10),
    lengthBytes: Math.max(1, packets * mtu - random.below(100)),
    mtuCode,
  };
  const xoff = random.chance(0.5) ? 75 : 1 + random.below(100);
  return {
    args: { ...args },
    set: {
      'host.memory.sizeMib': 64,
      'hca.capability.linkLayer': 'ethernet',
      'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
      'ethernet.mtuBytes': mtu + 96 + random.below(200),
      'ethernet.gigabitsPerSecond': [10, 20, 40, 40][random.below(4)]!,
      'ethernet.receiveFifoFrames': 1 + random.below(random.chance(0.5) ? 8 : 100),
      'ethernet.pauseXoffPercent': xoff,
      'ethernet.pauseXonPercent': [0, 0, 50, 99][random.below(4)]!,
      // At 40 Gb/s 6.6 µs and more: shorter than many a stop.
      'ethernet.pauseQuanta': random.chance(0.4) ? 65_535 : 512 + random.below(600),
      'ethernet.cableMetres': random.below(8),
      'dma.writeIssueCycles': 60 + random.below(800),
    },
    hasDrawnHardware: false,
  };
}

const attributesOf = ({ mtuCode }: Args) => ({
  pathMtu: mtuCode as PortAttr['activeMtu'],
  timeoutCode: 18,
  retryCount: 7,
});

/** Posts all at once, one message of each QP after the other. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { qpCount, messages, lengthBytes } = args;
  const count = qpCount * messages;
  const side = await connectWithPeer(program, {
    areaBytes: count * lengthBytes,
    qpCount,
    cqEntries: count,
    cap: { maxSendWr: messages },
    attributes: attributesOf(args),
  });
  for (let id = 0; id < count; id++)
    program.memory.write(side.area.address + id * lengthBytes, patternOf(id, lengthBytes));
  await barrier(program, 'filled');
  const fromPs = nowPs(program);
  for (let id = 0; id < count; id++)
    post(
      side.qps[id % qpCount]!,
      requestOf(side, id, IBV_WR_RDMA_WRITE, { offset: id * lengthBytes, lengthBytes }),
    );
  const ended = await watchCompletions(side, count, { napPs: 500 * psPerNs, patiencePs: 2000 * psPerMs });
  await barrier(program, 'over');
  await leave(side);
  return { fromPs, ended } as unknown as JsonValue;
}

/** Has the memory. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { qpCount, messages, lengthBytes } = args;
  const count = qpCount * messages;
  const side = await connectWithPeer(program, {
    areaBytes: count * lengthBytes,
    qpCount,
    cap: { maxSendWr: 1 },
    attributes: attributesOf(args),
  });
  await barrier(program, 'filled');
  await barrier(program, 'over');
  // An acknowledged WRITE may still be on its way to memory.
  await program.cpu.sleep(20 * psPerMs);
  const wrong: string[] = [];
  for (let id = 0; id < count; id++) {
    const came = program.memory.read(side.area.address + id * lengthBytes, lengthBytes);
    wrong.push(...differencesOf(`message ${id}`, came, patternOf(id, lengthBytes)));
  }
  await leave(side);
  return { wrong };
}

function judge({ args, results, report }: ScenePlayed): string[] {
  const { qpCount, messages } = args as unknown as Args;
  const [{ fromPs, ended }, { wrong }] = results as unknown as [Told, { wrong: string[] }];
  const count = qpCount * messages;
  const found = [...failuresOf(ended), ...wrong.slice(0, 3)];
  if (ended.length !== count) return [...found, `${ended.length} of ${count} messages ended`];
  for (const { from, retransmitted } of report.wire)
    for (const [opcode, { packets }] of Object.entries(retransmitted))
      found.push(`node ${from} sent ${packets} ${opcode} again, and nothing was lost`);
  const tookPs = ended.at(-1)!.atPs - fromPs;
  const mostPs = mostPsOf(args as unknown as Args, report);
  if (tookPs > mostPs)
    found.push(`${count} messages took ${tookPs} ps, with all pauses ${mostPs} ps should do`);
  return [...found, ...judgeShares(ended, qpCount, messages)];
}

/** The slower of cable and memory for all bytes, and for each pause what passes until the next frame is there. */
function mostPsOf(
  { qpCount, messages, lengthBytes, mtuCode }: Args,
  { config, nodes }: ScenePlayed['report'],
): number {
  const { ethernet, hca, dma } = config;
  const mtu = 128 << mtuCode;
  const packets = qpCount * messages * Math.ceil(lengthBytes / mtu);
  const bytePs = 8000 / ethernet.gigabitsPerSecond;
  const frameBytes = 20 + 14 + 40 + 12 + 16 + mtu + 4 + 4;
  const cyclePs = 1e6 / hca.coreClockMHz;
  // A payload that begins within a TLP takes another one, and so do CQEs and what a page's end cuts.
  const tlps = Math.ceil(mtu / tlpBytes) + 2;
  const perPacketPs = Math.max(frameBytes * bytePs, tlps * dma.writeIssueCycles * cyclePs);
  const latencyPs = 2 * ethernet.portLatencyNs * psPerNs + ethernet.cableMetres * ethernet.cablePsPerMetre;
  const pauses = nodes[1]!.hca.ethernet?.flowControl['sentTransitions'] ?? 0;
  const perPausePs = 2 * latencyPs + 4 * frameBytes * bytePs + 2 * psPerUs;
  return 1.2 * packets * perPacketPs + pauses * perPausePs + 100 * psPerUs;
}

/** When the first queue pair has ended all of its messages, each of the others has ended one. */
function judgeShares(ended: readonly Ended[], qpCount: number, messages: number): string[] {
  const done = new Array<number>(qpCount).fill(0);
  for (const { id } of ended) {
    if (++done[id % qpCount]! < messages) continue;
    const starved = done.indexOf(0);
    return starved < 0 || messages < 4
      ? []
      : [`QP ${id % qpCount} had all of its ${messages} messages before QP ${starved} had one`];
  }
  return [];
}

export const pausedFrames: Scene = {
  name: 'paused-frames',
  about:
    'many queue pairs write over Ethernet to a host that is slower than its cable, and is spared by pauses',
  module: import.meta.url,
  programs: askerAndAnswerer,
  cable: 'ethernet',
  draw,
  judge,
};
