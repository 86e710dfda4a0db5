import { describe, expect, test } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { grh } from '../../../../wire/headers.ts';
import { FLAG_GRH, grhPlace, Opcode, operandBytes, PACKET_PAYLOAD_OFFSET } from '../../../../wire/index.ts';
import { dataPathBench } from '../../testing/data-path-bench.ts';
import { Cq, pattern, Qp, Region } from '../../testing/data-path-verbs.ts';
import { runMixedTraffic } from '../../testing/mixed-traffic.ts';

const gidOf = (lid: number): Uint8Array =>
  Uint8Array.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, lid]);

async function pairWithGrh(change: { aPeer?: number; bPeer?: number } = {}) {
  const bench = await dataPathBench();
  const [aCq, bCq] = [new Cq(bench.a), new Cq(bench.b)];
  const [a, b] = [new Qp(bench.a, { sendCq: aCq }), new Qp(bench.b, { sendCq: bCq })];
  const path = { grhPresent: 1, hopLimit: 1, trafficClass: 3, flowLabel: 4 } as const;
  a.connect(b.qpn, 5, 9, 1, { ...path, remoteGid: gidOf(change.aPeer ?? 2) });
  b.connect(a.qpn, 9, 5, 1, { ...path, remoteGid: gidOf(change.bPeer ?? 1) });
  await bench.run(3);
  return { bench, a, b, aCq, bCq };
}

describe('a connection with a GRH', () => {
  test('IBTA 8.3: sends 40 bytes more with every packet, answers included, and the bytes say from where to where', async () => {
    const { bench, a, b, aCq, bCq } = await pairWithGrh();
    const [from, to] = [new Region(bench.a, 1500), new Region(bench.b, 1500)];
    from.fill(3);
    const seen: Uint8Array[] = [];
    bench.b.port.drops = ({ opcode, payloadBytes }) => {
      const { rxBytes, rxWords } = bench.b.port;
      // The record being delivered is the newest: found by its opcode and length.
      for (let offset = 0; offset < rxBytes.length; offset += 16)
        if (rxWords[(offset >> 2) + 4] === opcode && rxWords[(offset >> 2) + 14] === payloadBytes) {
          const place = grhPlace(offset, operandBytes(opcode) + payloadBytes);
          seen.push(rxBytes.slice(place, place + 40));
          break;
        }
      return false;
    };
    b.receive([to.part()]);
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part()] });
    await bench.until(() => bCq.takenCount() === 1);
    await bench.until(() => aCq.takenCount() === 1);
    expect(to.read(0, 1500)).toEqual(pattern(3, 1500));
    // LRH 8, GRH 40, BTH 12, ICRC 4, VCRC 2 around 1024 and 476 bytes.
    expect(bench.a.wire.transmitted.packetBytes).toBe(1500 + 2 * 66);
    // Two acknowledgements of 70 bytes.
    expect(bench.b.wire.transmitted.packetBytes).toBe(140);
    for (const { flags } of [...bench.a.port.packets, ...bench.b.port.packets])
      expect(flags & FLAG_GRH).toBe(FLAG_GRH);
    expect(grh.decode(seen[0]!)).toMatchObject({
      ipVersion: 6,
      trafficClass: 3,
      flowLabel: 4,
      payloadLength: 12 + 1024 + 4,
      nextHeader: 0x1b,
      hopLimit: 1,
      sourceGid: gidOf(1),
      destinationGid: gidOf(2),
    });
    expect(PACKET_PAYLOAD_OFFSET).toBe(64);
  });

  test('carries everything at once in the loopback', async () => {
    const bench = await dataPathBench();
    await runMixedTraffic(
      bench,
      2,
      30,
      5,
      0,
      { a: bench.a, b: bench.a },
      { grhPresent: 1, remoteGid: gidOf(1) },
    );
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
  });

  test('IBTA 9.6: is not reached by packets for another GID, from another one, or without any', async () => {
    for (const change of [{ aPeer: 9 }, { bPeer: 9 }]) {
      const { bench, a, aCq } = await pairWithGrh(change);
      a.send({ opcode: WqeOpcode.SEND, segments: [] });
      await bench.until(() => aCq.poll()?.syndrome === CqeSyndrome.TRANSPORT_RETRY_EXC_ERR);
      expect(bench.b.dataPath.parts.violations.report()).toEqual({ packetForeignGid: 8 });
    }
    const { bench, b, bCq } = await pairWithGrh();
    bench.a.act(() =>
      bench.a.port.inject({ opcode: Opcode.RC_SEND_ONLY, qpn: b.qpn, psn: 5 }, bench.a.lp.nowPs),
    );
    await bench.run(10);
    expect(bench.b.dataPath.parts.violations.report()).toEqual({ packetForeignGid: 1 });
    expect(bCq.poll()).toBeUndefined();
  });

  test('to the port’s own GID goes by the loopback, whatever the LID says', async () => {
    const bench = await dataPathBench();
    const [aCq, bCq] = [new Cq(bench.a), new Cq(bench.a)];
    const [a, b] = [new Qp(bench.a, { sendCq: aCq }), new Qp(bench.a, { sendCq: bCq })];
    a.connect(b.qpn, 5, 9, 0, { grhPresent: 1, remoteGid: gidOf(1), remoteLid: 0 });
    b.connect(a.qpn, 9, 5, 0, { grhPresent: 1, remoteGid: gidOf(1), remoteLid: 0 });
    await bench.run(3);
    b.receive([]);
    a.send({ opcode: WqeOpcode.SEND, segments: [] });
    await bench.until(() => aCq.takenCount() + bCq.takenCount() === 2);
    expect(bench.a.wire.transmitted.packetCount).toBe(0);
  });
});
