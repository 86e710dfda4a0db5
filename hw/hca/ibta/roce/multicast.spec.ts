/**
 * Datagrams to multicast groups over ports of Ethernet with RoCE: members at both ends of the cable, several at one
 * port, and nodes that are no members. Groups are those that Linux' rdma_cm makes of 224.129.2.3 (cma_iboe_set_mgid):
 * for RoCE v1 ff0e::ffff:e081:0203, for v2 the mapped address.
 */
import { describe, expect, test } from 'vitest';
import { mcgEntry } from '../../../../abi/mcg.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { errorsOf, headerOf, readFrame } from '../../../../analyser/independent/index.ts';
import { type DataPathBench, type DataPathNode, dataPathBench } from '../../testing/data-path-bench.ts';
import { pattern, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramTo } from '../../testing/datagrams.ts';
import { GID_INDEX, gidOfNode, type RoceForm } from '../../testing/roce-ends.ts';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

interface Group {
  readonly gid: Uint8Array;
  readonly mac: Uint8Array;
  /** The end of the 40 bytes that receivers get: the group's address. */
  readonly address: string;
}

/** MACs: RFC 2464, 7 (33-33 and the last four bytes) and RFC 1112, 6.4 (01-00-5e and the low 23 bits). */
const groups: Readonly<Record<RoceForm, Group>> = {
  v1: {
    gid: hex('ff0e0000000000000000ffffe0810203'),
    mac: hex('3333e0810203'),
    address: 'ff0e0000000000000000ffffe0810203',
  },
  'v2 over IPv4': {
    gid: hex('00000000000000000000ffffe0810203'),
    mac: hex('01005e010203'),
    address: 'e0810203',
  },
  'v2 over IPv6': {
    gid: hex('ff0e000000000000000000000000abcd'),
    mac: hex('33330000abcd'),
    address: 'ff0e000000000000000000000000abcd',
  },
};

/** Address vectors as software fills them in. */
const vectors = {
  'Linux, which has a LID of groups': { destinationLid: 0xc000 },
  'libmlx4 of today, which has no LID': { destinationLid: 0 },
  'libmlx4 of yore, which forces loopback': { destinationLid: 0xc000, forceLoopback: 1 },
} as const;

type Member = ReturnType<typeof memberAt>;
type Joined = { readonly qpn: number; readonly blockLoopback?: 0 | 1 };

function memberAt(node: DataPathNode, qkey?: number) {
  const made = datagramQp(node, qkey === undefined ? {} : { fields: { qkey } });
  const region = new Region(node, 4096);
  return { ...made, region };
}

/** The bench, two QPs at either end that have receives, and a fifth that has joined no group. */
async function scene(roce: RoceForm) {
  const bench = await dataPathBench({ roce, ethernet: { receiveFifoFrames: 64 } });
  const [a1, a2, b1, b2, stranger] = [bench.a, bench.a, bench.b, bench.b, bench.b].map((node) =>
    memberAt(node),
  ) as [Member, Member, Member, Member, Member];
  await bench.run(5);
  for (const { qp, region } of [a1, a2, b1, b2, stranger])
    for (let count = 0; count < 4; count++) qp.receive([region.part(count * 1000, 600)]);
  return { bench, a1, a2, b1, b2, stranger };
}

const join = (node: DataPathNode, mgid: Uint8Array, members: readonly Joined[]): void =>
  node.groups.set(7, mcgEntry.encode({ memberCount: members.length, mgid, members: [...members] }));

/** Payloads that a member received since the last query, with the end of the header ahead of each. */
function taken({ cq, region }: Member, address: string): number[][] {
  return cq
    .drain()
    .filter(({ isSend }) => !isSend)
    .map(({ byteCount, syndrome, wqeCounter }) => {
      expect(syndrome).toBe(0);
      const bytes = region.read(wqeCounter * 1000, byteCount);
      expect(Buffer.from(bytes.subarray(40 - address.length / 2, 40)).toString('hex')).toBe(address);
      return [...bytes.subarray(40)];
    });
}

/** The frames that a node sends from now on. */
function framesOf({ a }: DataPathBench): Uint8Array[] {
  const frames: Uint8Array[] = [];
  const { port } = a.ethernet!;
  const { send } = port;
  port.send = (bytes, at, length, fromPs) => {
    frames.push(bytes.slice(at, at + length));
    send.call(port, bytes, at, length, fromPs);
  };
  return frames;
}

const forms: readonly RoceForm[] = ['v1', 'v2 over IPv4', 'v2 over IPv6'];

describe.each(forms)('a datagram to a group, by RoCE %s', (roce) => {
  const { gid, mac, address } = groups[roce];
  const payload = pattern(5, 33);
  const send = ({ qp }: Member, vector: object = {}, qkey?: number): void => {
    const to = datagramTo(
      0xff_ffff,
      0,
      { sourceGidIndex: GID_INDEX, hopLimit: 1, destinationGid: gid, ...vector },
      ...(qkey === undefined ? [] : [qkey]),
    );
    qp.send({ opcode: WqeOpcode.SEND, datagram: { ...to, destinationMac: mac }, inline: payload });
  };

  test.each(Object.entries(vectors))(
    'sheet 5.6: reaches every member at either end once, the sender too, as %s writes it',
    async (_, vector) => {
      const { bench, a1, a2, b1, b2, stranger } = await scene(roce);
      const frames = framesOf(bench);
      join(bench.a, gid, [{ qpn: a1.qp.qpn }, { qpn: a2.qp.qpn }]);
      join(bench.b, gid, [{ qpn: b1.qp.qpn }, { qpn: 0x777 }, { qpn: b2.qp.qpn }]);
      send(a1, vector);
      await bench.run(30);
      for (const member of [a1, a2, b1, b2]) expect(taken(member, address)).toEqual([[...payload]]);
      expect(taken(stranger, address)).toEqual([]);
      expect(frames).toHaveLength(1);
      const packet = readFrame(frames[0]!);
      if (typeof packet !== 'object') return expect.fail(packet ?? 'no packet');
      expect(errorsOf(packet)).toEqual([]);
      expect(headerOf(packet, 'ETHERNET')!.digits['destination']).toBe(Buffer.from(mac).toString('hex'));
      for (const { dataPath } of [bench.a, bench.b]) expect(dataPath.parts.violations.report()).toEqual({});
    },
  );

  test('sheet 5.6: does not come back to a sender that blocks it, and does to the other members of its port', async () => {
    const { bench, a1, a2, b1 } = await scene(roce);
    join(bench.a, gid, [
      { qpn: a1.qp.qpn, blockLoopback: 1 },
      { qpn: a2.qp.qpn, blockLoopback: 1 },
    ]);
    join(bench.b, gid, [{ qpn: b1.qp.qpn, blockLoopback: 1 }]);
    send(a1);
    await bench.run(30);
    expect([a1, a2, b1].map((member) => taken(member, address))).toEqual([
      [],
      [[...payload]],
      [[...payload]],
    ]);
    send(b1);
    await bench.run(30);
    expect([a1, a2, b1].map((member) => taken(member, address).length)).toEqual([1, 1, 0]);
  });

  test('reaches the far members of a sender that has not joined, and none at its own port', async () => {
    const { bench, a1, a2, b1, b2 } = await scene(roce);
    join(bench.b, gid, [{ qpn: b1.qp.qpn }]);
    send(a1);
    await bench.run(30);
    expect([a1, a2, b1, b2].map((member) => taken(member, address).length)).toEqual([0, 0, 1, 0]);
  });

  test('IBTA 10.5: of another group, or with another Q_Key, reaches none', async () => {
    const { bench, a1, a2, b1, b2 } = await scene(roce);
    const other = gid.with(15, gid[15]! ^ 1);
    join(bench.a, other, [{ qpn: a2.qp.qpn }]);
    join(bench.b, gid, [{ qpn: b1.qp.qpn }]);
    send(a1, {}, 0x2222_2222);
    await bench.run(30);
    expect([a1, a2, b1, b2].map((member) => taken(member, address).length)).toEqual([0, 0, 0, 0]);
    expect(bench.b.address.qkeyViolations).toBe(1);
    send(a1);
    await bench.run(30);
    expect([a1, a2, b1, b2].map((member) => taken(member, address).length)).toEqual([0, 0, 1, 0]);
  });

  test('is not what a datagram to one host is', async () => {
    const { bench, a1, a2, b1, b2 } = await scene(roce);
    join(bench.a, gid, [{ qpn: a1.qp.qpn }, { qpn: a2.qp.qpn }]);
    const frames = framesOf(bench);
    // A datagram to QP a2 at its own port: it uses no cable.
    const to = datagramTo(a2.qp.qpn, 0, {
      sourceGidIndex: GID_INDEX,
      hopLimit: 1,
      destinationGid: gidOfNode(roce, 1),
    });
    a1.qp.send({ opcode: WqeOpcode.SEND, datagram: to, inline: payload });
    await bench.run(30);
    expect([a1, a2, b1, b2].map(({ cq }) => cq.drain().filter(({ isSend }) => !isSend).length)).toEqual([
      0, 1, 0, 0,
    ]);
    expect(frames).toEqual([]);
  });
});
