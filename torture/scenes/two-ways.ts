/**
 * Several QPs share a slow link: READ responses compete with WRITEs of the same side, and long messages of one QP with short ones of another. No
 * direction and no QP starves, and the link alternates by the parameters: responses before a request (`hca.responseBurstPackets`), and packets of
 * one message in a row (`hca.burstPackets`; docs/reference/timing.md).
 */
import type { ArgsOf, Draft, Draws, Ended, Played, Stage } from './language/index.ts';
import { connect, isWell, mtuOf, psPerNs, psPerUs, READ, scene, times, WRITE } from './language/index.ts';

function draw(random: Draws) {
  const isTwoWay = random.chance(0.65);
  const args = {
    // Requests of node 0, and whether node 1 writes to it at the same time.
    opcode: isTwoWay ? READ : WRITE,
    isTwoWay,
    qpCount: isTwoWay ? 2 + random.below(2) : 2,
    // Messages of each QP, and packets of each.
    count: isTwoWay ? 30 : 4,
    packets: isTwoWay ? 2 + random.below(6) : 96,
    // Number of messages of one packet that replace the last QP's messages.
    shortCount: isTwoWay ? 0 : 384,
    mtuCode: isTwoWay ? 4 : 3 + random.below(2),
  };
  // A link of one gigabyte a second: neither the slot nor the memory holds anything up.
  const links = [
    ['SDR', '4'],
    ['QDR', '1'],
    ['DDR', '1'],
  ] as const;
  const turns = isTwoWay
    ? { 'hca.responseBurstPackets': 1 + random.below(4) }
    : { 'hca.burstPackets': 6 + random.below(11) };
  const [speed, lanes] = random.oneOf(links);
  return { args, set: { 'wire.speed': speed, 'wire.lanes': lanes, ...turns } } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Messages of one side. */
const dueOf = ({ qpCount, count, shortCount }: Args): number =>
  shortCount === 0 ? qpCount * count : (qpCount - 1) * count + shortCount;

/** Posts all at once, and notes when each is done; the second host writes to the first meanwhile, or has nothing to do. */
async function player(stage: Stage<Args>): Promise<readonly Ended[]> {
  const { opcode: asked, isTwoWay, qpCount, count, packets, mtuCode, shortCount } = stage.args;
  const lengthBytes = packets * mtuOf(mtuCode);
  const most = Math.max(count, shortCount);
  const cap = { maxSendWr: most };
  const side = await connect(stage, { areaBytes: 2 * lengthBytes, qpCount, cap, mtuCode });
  await stage.meet('begin');
  const isAsking = stage.node === 0 || isTwoWay;
  const opcode = stage.node === 0 ? asked : WRITE;
  // READs and WRITEs use separate parts.
  const offset = opcode === WRITE ? lengthBytes : 0;
  for (let at = 0; at < most && isAsking; at++)
    for (let qp = 0; qp < qpCount; qp++) {
      const isShort = shortCount > 0 && qp === qpCount - 1;
      if (at >= (isShort ? shortCount : count)) continue;
      side.post(qp, opcode, { qp, offset, lengthBytes: isShort ? mtuOf(mtuCode) : lengthBytes });
    }
  const patience = { napPs: 300 * psPerNs, patiencePs: 100_000 * psPerUs };
  const ended = isAsking ? await side.watch(dueOf(stage.args), patience) : [];
  await stage.meet('over');
  return ended;
}

type Both = readonly [readonly Ended[], readonly Ended[]];

function judge({ args, told, report }: Played<Args, Both>): string[] {
  const due = dueOf(args);
  const found = told.flatMap((ended, node) =>
    ended.every(isWell) && ended.length === (node === 0 || args.isTwoWay ? due : 0)
      ? []
      : [`node ${node}: ${ended.length} of ${due} requests ended, not all of them well`],
  );
  if (found.length > 0) return found;
  const { hca } = report.config;
  if (!args.isTwoWay) return judgeTurns(told[0], args, hca.burstPackets);
  const shares = told.flatMap((ended, node) => judgeQps(ended, args, node));
  return [...shares, ...judgeWays(told, args, hca.responseBurstPackets)];
}

/** When the first QP has received everything that it requested, every other has at least half of it. */
function judgeQps(ended: readonly Ended[], { count, qpCount }: Args, node: number): string[] {
  const done = times(qpCount, () => 0);
  for (const { id } of ended) {
    if (++done[id]! < count) continue;
    const least = Math.min(...done);
    return least >= count / 2 ? [] : [`node ${node}: a QP has had all of ${count}, another ${least}`];
  }
  return [];
}

/** While both directions have work, each has its share; some messages are in flight at the edges. */
function judgeWays(told: Both, { qpCount, count }: Args, burst: number): string[] {
  const endPs = Math.min(...told.map((ended) => ended.at(-1)!.atPs));
  const [read = 0, written = 0] = told.map((ended) => ended.filter(({ atPs }) => atPs <= endPs).length);
  const edge = 4 * qpCount;
  const what = `${written} messages were written while ${read} were read, of ${count * qpCount}`;
  return [
    ...(written < read / burst / 2 - edge ? [`${what}: requests starve`] : []),
    ...(read < written / 2 - edge ? [`${what}: responses starve`] : []),
  ];
}

/** Long messages of one QP go in bursts, and after each burst one short message of the other. */
function judgeTurns(ended: readonly Ended[], { count, packets }: Args, burst: number): string[] {
  const end = ended.findLastIndex(({ id }) => id === 0);
  const short = ended.slice(0, end).filter(({ id }) => id === 1).length;
  const due = (count * packets) / burst;
  // Packets that wait in front of the wire count for either.
  const isRight = short <= 2 * due + 32 && short >= due / 2 - 32;
  const what = `${short} short messages of one QP went beside ${count * packets} packets of another`;
  return isRight ? [] : [`${what} in bursts of ${burst}`];
}

export const twoWays = scene({
  about: 'READs and WRITEs of several QPs share a slow link in both directions',
  draw,
  programs: [player, player],
  judge,
});
