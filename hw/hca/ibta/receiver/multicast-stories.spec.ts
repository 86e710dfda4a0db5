/**
 * Datagrams to groups whose members join and leave, sent by members and by others at both ends of a cable,
 * concurrently. Judged by sets alone: every member at either end receives one copy of each datagram, with the group's
 * address and the sender's number, except a sender that wants none of its own, members with another Q_Key, and those
 * without a receive. Datagrams of one sender arrive in order.
 */
import { expect, test } from 'vitest';
import { mcgEntry } from '../../../../abi/mcg.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Random } from '../../../../sim/index.ts';
import {
  type BenchOptions,
  type DataPathNode,
  dataPathBench,
  tightest,
} from '../../testing/data-path-bench.ts';
import { type Cq, type Qp, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';
import { GID_INDEX, type RoceForm } from '../../testing/roce-ends.ts';

/** Stories: `npm run fuzz` sets them, and the seed. */
const stories = Math.ceil(Number(process.env['HOSTILE_PACKETS'] ?? 4_000) / 500);
const firstSeed = Number(process.env['HOSTILE_SEED'] ?? 23) * 1000;

const grhBytes = 40;
const bytesMax = 600;
const strideBytes = 1024;
const receivesMax = 16;
const roundCount = 6;
const otherKey = 0x2222_2222;
/** InfiniBand and the forms of RoCE; groups of IPv4 are 239.0.0.1 and so on. */
const networks: readonly (RoceForm | undefined)[] = [undefined, 'v1', 'v2 over IPv4', 'v2 over IPv6'];
const ofIpv6 = (last: number) => Uint8Array.from([0xff, 0x12, 0x40, 0x1b, ...Array(11).fill(0), last]);
const ofIpv4 = (last: number) => Uint8Array.from([...Array(10).fill(0), 0xff, 0xff, 239, 0, 0, last]);
const groupsOf = (roce: RoceForm | undefined): Uint8Array[] =>
  [1, 2, 3].map(roce === 'v2 over IPv4' ? ofIpv4 : ofIpv6);

interface Received {
  readonly from: number;
  readonly group: number;
  readonly bytes: string;
}

interface Member {
  readonly node: DataPathNode;
  readonly qp: Qp;
  readonly cq: Cq;
  readonly region: Region;
  readonly hasOtherKey: boolean;
  readonly isDry: boolean;
  posted: number;
  /** Datagrams that the member must receive, by sender. */
  readonly due: Map<number, Received[]>;
}

function memberAt(node: DataPathNode, random: Random): Member {
  const hasOtherKey = random.chance(0.2);
  const made = datagramQp(node, hasOtherKey ? { fields: { qkey: otherKey } } : {});
  const region = new Region(node, receivesMax * strideBytes);
  return { node, ...made, region, hasOtherKey, isDry: random.chance(0.15), posted: 0, due: new Map() };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Fills the queue of receives up. */
function postReceives(member: Member, places: number): void {
  for (; member.posted < places; member.posted++) {
    const at = (member.posted % receivesMax) * strideBytes;
    member.qp.receive([member.region.part(at, grhBytes + bytesMax)]);
  }
}

/** Returns the datagrams that the member received, by sender. */
function taken({ cq, region }: Member, addresses: readonly string[]): Map<number, Received[]> {
  const all = new Map<number, Received[]>();
  for (let one = cq.poll(); one !== undefined; one = cq.poll()) {
    expect(one.syndrome).toBe(0);
    if (one.isSend) continue;
    expect(cq.source.hasGrh).toBe(true);
    const at = (one.wqeCounter % receivesMax) * strideBytes;
    const bytes = region.read(at, one.byteCount);
    const received = {
      from: cq.source.qpn,
      group: addresses.indexOf(hex(bytes.subarray(grhBytes - addresses[0]!.length / 2, grhBytes))),
      bytes: hex(bytes.subarray(grhBytes)),
    };
    all.set(received.from, [...(all.get(received.from) ?? []), received]);
  }
  cq.publishConsumer();
  return all;
}

async function play(seed: number): Promise<void> {
  const random = new Random(seed, 'multicast stories');
  const roce = networks[random.below(networks.length)];
  const options: BenchOptions = {
    ...(random.chance(0.5) ? { hca: tightest } : {}),
    ...(roce === undefined ? {} : { roce, ethernet: { receiveFifoFrames: 256 } }),
  };
  const bench = await dataPathBench(options);
  const groups = groupsOf(roce);
  const members = [bench.a, bench.b].flatMap((node) =>
    Array.from({ length: 2 + random.below(3) }, () => memberAt(node, random)),
  );
  await bench.run(5);
  // Each buffer's 40 bytes before the payload end with the group's GID or IPv4 address.
  const names = groups.map((gid) => hex(gid.subarray(roce === 'v2 over IPv4' ? 12 : 0)));
  for (let round = 0; round < roundCount; round++) {
    for (const member of members)
      if (!member.isDry) postReceives(member, member.posted + receivesMax - backlogOf(member));
    const joined = groups.map((mgid, index) =>
      [bench.a, bench.b].map((node) => {
        const own = members
          .filter((member) => member.node === node && random.chance(0.6))
          .map((member) => ({ member, blockLoopback: random.chance(0.5) ? (1 as const) : (0 as const) }));
        const known = own.map(({ member, blockLoopback }) => ({ qpn: member.qp.qpn, blockLoopback }));
        // An absent member is skipped.
        const entry = random.chance(0.3) ? [{ qpn: 0x7777 }, ...known] : known;
        node.groups.set(index, mcgEntry.encode({ memberCount: entry.length, mgid, members: entry }));
        return own;
      }),
    );
    const sends = 1 + random.below(5);
    for (let number = 0; number < sends; number++) {
      const sender = members[random.below(members.length)]!;
      const group = random.below(groups.length);
      const payload = Uint8Array.from({ length: 1 + random.below(20) }, () => random.below(256));
      const lid = roce === undefined ? 0xc001 + group : random.chance(0.5) ? 0xc000 : 0;
      const source = roce === undefined ? {} : { sourceGidIndex: GID_INDEX, hopLimit: 1 };
      const to = datagramTo(0xffffff, lid, { grhPresent: 1, destinationGid: groups[group]!, ...source });
      const mac = roce === undefined ? [] : [1, 0, 0x5e, 0, 0, group];
      const address = { ...to, destinationMac: Uint8Array.from([...Array(6 - mac.length).fill(0), ...mac]) };
      sender.qp.send({ opcode: WqeOpcode.SEND, datagram: address, inline: payload });
      for (const { member, blockLoopback } of joined[group]!.flat()) {
        const isOwn = member === sender && blockLoopback === 1;
        if (isOwn || member.hasOtherKey || member.isDry) continue;
        const list = member.due.get(sender.qp.qpn) ?? [];
        list.push({ from: sender.qp.qpn, group, bytes: hex(payload) });
        member.due.set(sender.qp.qpn, list);
      }
      if (random.chance(0.3)) await bench.run(1);
    }
    await bench.run(40);
    for (const member of members) {
      const got = taken(member, names);
      expect(got, `seed ${seed}, round ${round}, QP ${member.qp.qpn}`).toEqual(member.due);
      member.due.clear();
    }
  }
}

/** Returns the receives posted and not used, once all expected datagrams have arrived. */
const backlogOf = ({ qp, posted }: Member): number => {
  const consumed = qp.node.dataPath.blocks.receives.consumedCounter(qp.slot);
  return posted - consumed;
};

test(`stories of groups: ${stories} from ${firstSeed}`, async () => {
  for (let story = 0; story < stories; story++) await play(firstSeed + story);
});
