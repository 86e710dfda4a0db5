/**
 * Several QPs share a slow link: READs that are answered meet WRITEs of the same side, and long messages of one QP short ones
 * of another. No direction and no QP starves, and what the parameters say of turns is kept: so many responses, then a request
 * (`hca.responseBurstPackets`), and so many packets of one message in a row (`hca.burstPackets`; docs/reference/timing.md).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import { connectWithPeer, type Ended, leave, nowPs, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  /** What node 0 asks for, and whether node 1 writes to it meanwhile. */
  readonly opcode: number;
  readonly isTwoWay: boolean;
  readonly qpCount: number;
  /** Messages of each QP, and packets of each. */
  readonly count: number;
  readonly packets: number;
  /** In place of the last QP's messages: so many of one packet. */
  readonly shortCount: number;
  readonly mtuCode: number;
}

interface Told {
  readonly postedPs: number;
  readonly ended: readonly Ended[];
}

const mtuBytes = ({ mtuCode }: Pick<Args, 'mtuCode'>): number => 128 << mtuCode;
/** Messages of one side. */
const dueOf = ({ qpCount, count, shortCount }: Args): number =>
  shortCount === 0 ? qpCount * count : (qpCount - 1) * count + shortCount;
const lengthOf = (args: Args): number => args.packets * mtuBytes(args);

function draw(random: Random): SceneDraft {
  const isTwoWay = random.chance(0.65);
  const args: Args = {
    opcode: isTwoWay ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
    isTwoWay,
    qpCount: isTwoWay ? 2 + random.below(2) : 2,
    count: isTwoWay ? 30 : 4,
    packets: isTwoWay ? 2 + random.below(6) : 96,
    shortCount: isTwoWay ? 0 : 384,
    mtuCode: isTwoWay ? 4 : 3 + random.below(2),
  };
  // A link of one gigabyte a second: neither the slot nor the memory holds anything up.
  const slow = [
    { 'wire.speed': 'SDR', 'wire.lanes': '4' },
    { 'wire.speed': 'QDR', 'wire.lanes': '1' },
    { 'wire.speed': 'DDR', 'wire.lanes': '1' },
  ];
  const turns = isTwoWay
    ? { 'hca.responseBurstPackets': 1 + random.below(4) }
    : { 'hca.burstPackets': 6 + random.below(11) };
  return { args: { ...args }, set: { ...slow[random.below(3)]!, ...turns }, hasDrawnHardware: false };
}

/** Posts all at once, and notes when each is done. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  return play(program, args, args.opcode);
}

/** Writes to the other side meanwhile, or has nothing to do. */
export async function other(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  return play(program, args, args.isTwoWay ? IBV_WR_RDMA_WRITE : undefined);
}

async function play(program: ProgramContext, args: Args, opcode: number | undefined): Promise<JsonValue> {
  const { qpCount, count, mtuCode, shortCount } = args;
  const lengthBytes = lengthOf(args);
  const side = await connectWithPeer(program, {
    areaBytes: 2 * lengthBytes,
    qpCount,
    cap: { maxSendWr: Math.max(count, shortCount) },
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'] },
  });
  await barrier(program, 'begin');
  const postedPs = nowPs(program);
  // What is read lies elsewhere than what is written.
  const offset = opcode === IBV_WR_RDMA_WRITE ? lengthBytes : 0;
  for (let index = 0; index < Math.max(count, shortCount) && opcode !== undefined; index++)
    for (const [qp, one] of side.qps.entries()) {
      const isShort = shortCount > 0 && qp === qpCount - 1;
      if (index >= (isShort ? shortCount : count)) continue;
      post(one, requestOf(side, qp, opcode, { offset, lengthBytes: isShort ? mtuBytes(args) : lengthBytes }));
    }
  const ended =
    opcode === undefined
      ? []
      : await watchCompletions(side, dueOf(args), {
          napPs: 300 * psPerNs,
          patiencePs: 100_000 * psPerUs,
        });
  await barrier(program, 'over');
  await leave(side);
  return { postedPs, ended } as unknown as JsonValue;
}

function judge({ args: given, results, report }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const told = results as unknown as [Told, Told];
  const due = dueOf(args);
  const found = told.flatMap(({ ended }, node) => {
    const isWell = ended.every(({ status }) => status === IBV_WC_SUCCESS);
    const isAll = ended.length === (node === 0 || args.isTwoWay ? due : 0);
    return isWell && isAll
      ? []
      : [`node ${node}: ${ended.length} of ${due} requests ended, not all of them well`];
  });
  if (found.length > 0) return found;
  const { hca } = report.config;
  if (!args.isTwoWay) return judgeTurns(told[0].ended, args, hca.burstPackets);
  const shares = told.flatMap(({ ended }, node) => judgeQps(ended, args, node));
  return [...shares, ...judgeWays(told, args, hca.responseBurstPackets)];
}

/** When the first QP has all that it asked for, no other has less than half of it. */
function judgeQps(ended: readonly Ended[], { count, qpCount }: Args, node: number): string[] {
  const done = new Array<number>(qpCount).fill(0);
  for (const { id } of ended) {
    done[id] = done[id]! + 1;
    if (done[id]! < count) continue;
    const least = Math.min(...done);
    return least >= count / 2 ? [] : [`node ${node}: a QP has had all of ${count}, another ${least}`];
  }
  return [];
}

/** As long as both directions have work, each has its part; some messages are under way at the edges. */
function judgeWays(
  [reads, writes]: readonly [Told, Told],
  { qpCount, count }: Args,
  burst: number,
): string[] {
  const endPs = Math.min(reads.ended.at(-1)!.atPs, writes.ended.at(-1)!.atPs);
  const doneBy = ({ ended }: Told): number => ended.filter(({ atPs }) => atPs <= endPs).length;
  const [read, written] = [doneBy(reads), doneBy(writes)];
  const edge = 4 * qpCount;
  const found: string[] = [];
  if (written < read / burst / 2 - edge)
    found.push(
      `${written} messages were written while ${read} were read, of ${count * qpCount}: requests starve`,
    );
  if (read < written / 2 - edge)
    found.push(
      `${read} messages were read while ${written} were written, of ${count * qpCount}: responses starve`,
    );
  return found;
}

/** Long messages of one QP go in bursts, and behind each burst one short message of the other. */
function judgeTurns(ended: readonly Ended[], { count, packets }: Args, burst: number): string[] {
  const end = ended.findLastIndex(({ id }) => id === 0);
  const short = ended.slice(0, end).filter(({ id }) => id === 1).length;
  const due = (count * packets) / burst;
  // What stands in the queue before the wire counts for either.
  const isRight = short <= 2 * due + 32 && short >= due / 2 - 32;
  return isRight
    ? []
    : [
        `${short} short messages of one QP went beside ${count * packets} packets of another in bursts of ${burst}`,
      ];
}

export const twoWays: Scene = {
  name: 'two-ways',
  about: 'READs and WRITEs of several QPs share a slow link in both directions',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'asker' },
    { node: 1, exportName: 'other' },
  ],
  draw,
  judge,
};
