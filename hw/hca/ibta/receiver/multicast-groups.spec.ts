import { describe, expect, test } from 'vitest';
import { mcgEntry } from '../../../../abi/mcg.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import type { DataPathNode } from '../../testing/data-path-bench.ts';
import { pattern, Region } from '../../testing/data-path-verbs.ts';
import { datagramQp, datagramScene, datagramTo } from '../../testing/datagrams.ts';

const GROUP = Uint8Array.from([0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);

describe('a multicast datagram', () => {
  const toGroup = datagramTo(0xffffff, 0xc009, { grhPresent: 1, destinationGid: GROUP });
  const join = (node: DataPathNode, members: readonly { qpn: number; blockLoopback?: 0 | 1 }[]): void =>
    node.groups.set(3, mcgEntry.encode({ memberCount: members.length, mgid: GROUP, members: [...members] }));

  test('sheet 5.6: reaches every member at either end, the sender too unless it does not want to', async () => {
    const { bench, a, b, to } = await datagramScene();
    const second = datagramQp(bench.b);
    const echo = datagramQp(bench.a);
    const own = new Region(bench.a, 1000);
    await bench.run(3);
    join(bench.a, [{ qpn: a.qp.qpn, blockLoopback: 1 }, { qpn: echo.qp.qpn }]);
    join(bench.b, [{ qpn: b.qp.qpn }, { qpn: second.qp.qpn }, { qpn: 0x999 }]);
    a.qp.receive([own.part(0, 200)]);
    echo.qp.receive([own.part(200, 200)]);
    b.qp.receive([to.part(0, 200)]);
    second.qp.receive([to.part(200, 200)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    for (const { cq } of [echo, b, second])
      expect(cq.drain().map(({ byteCount }) => byteCount)).toEqual([70]);
    expect(a.cq.drain().map(({ isSend }) => isSend)).toEqual([true]);
    expect([to.read(40, 30), to.read(240, 30), own.read(240, 30)]).toEqual(Array(3).fill(pattern(9, 30)));
    echo.qp.receive([own.part(200, 200)]);
    echo.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(8, 30) });
    await bench.run(20);
    expect(echo.cq.drain().map(({ isSend }) => isSend)).toEqual([true, false]);
  });

  test('mlx4_qp_detach_common: does not reach members of an entry that software has unlinked and left as it was', async () => {
    const { bench, a, b, to } = await datagramScene();
    const groups = bench.b.groups;
    groups.setHeadCount(8);
    const entry = (mgid: Uint8Array, nextIndex: number, ...qpns: number[]) =>
      mcgEntry.encode({ mgid, nextIndex, memberCount: qpns.length, members: qpns.map((qpn) => ({ qpn })) });
    const other = GROUP.with(15, 77);
    b.qp.receive([to.part(0, 200)]);
    // The other group heads the chain and this one follows; then the head group is left, and this one moves to its
    // place.
    groups.set(3, entry(other, 9, 0x999));
    groups.set(9, entry(GROUP, 0, b.qp.qpn));
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    expect(b.cq.drain()).toHaveLength(1);
    groups.set(3, entry(GROUP, 0, b.qp.qpn));
    // Its last member leaves: the head is empty, and the entry at 9 belongs to no chain.
    groups.set(3, entry(new Uint8Array(16), 0));
    b.qp.receive([to.part(0, 200)]);
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    expect(b.cq.drain()).toEqual([]);
  });

  test('sheet 5.6: is looked for along a chain that leads in a circle, and dropped', async () => {
    const { bench, a, b } = await datagramScene();
    bench.b.groups.setHeadCount(8);
    for (const [index, nextIndex] of [
      [3, 9],
      [9, 10],
      [10, 9],
    ] as const)
      bench.b.groups.set(
        index,
        mcgEntry.encode({
          mgid: GROUP.with(15, index),
          nextIndex,
          memberCount: 1,
          members: [{ qpn: b.qp.qpn }],
        }),
      );
    a.qp.send({
      opcode: WqeOpcode.SEND,
      datagram: datagramTo(0xffffff, 0xc009, { grhPresent: 1, destinationGid: GROUP.with(15, 78) }),
      inline: pattern(9, 30),
    });
    await bench.run(20);
    expect(b.cq.drain()).toEqual([]);
  });

  test('IBTA 10.5: of a group that no QP has joined is dropped', async () => {
    const { bench, a } = await datagramScene();
    a.qp.send({ opcode: WqeOpcode.SEND, datagram: toGroup, inline: pattern(9, 30) });
    await bench.run(20);
    expect(bench.b.port.packets).toHaveLength(1);
    expect([bench.a, bench.b].map(({ dataPath }) => dataPath.parts.violations.report())).toEqual([{}, {}]);
  });
});
