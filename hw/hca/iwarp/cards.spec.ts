/** Verbs between two cards whose streams are TCP connections of their own, over a cable of Ethernet. */
import { describe, expect, it } from 'vitest';
import { QpState } from '../../../abi/qpc.ts';
import { RtrKind } from '../../../abi/tcp-connection.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { cardScene } from './testing/card-bench.ts';

const { RDMA_READ, RDMA_WRITE, SEND } = WqeOpcode;

describe.each([
  { hasCrc: true, hasMarkers: false, rtr: RtrKind.NONE },
  { hasCrc: true, hasMarkers: true, rtr: RtrKind.WRITE },
  { hasCrc: false, hasMarkers: false, rtr: RtrKind.READ },
  { hasCrc: true, hasMarkers: true, rtr: RtrKind.WRITE, isLooped: true },
  { hasCrc: true, hasMarkers: true, rtr: RtrKind.SEND, packsFpdus: true },
])('two cards, or both ends of one, with %o', ({ isLooped, packsFpdus, ...agreement }) => {
  it.each([0, 1, 1435, 1436, 6000, 200_000])(
    'carry WRITE, SEND and READ of %i bytes both ways',
    async (lengthBytes) => {
      const { bench, a, b, aCq, bCq, local, remote } = await cardScene(agreement, {
        regionBytes: 500_000,
        isLooped: isLooped === true,
        iwarp: { packsFpdus: packsFpdus === true },
      });
      const sides = [
        { qp: a, cq: aCq, peer: b, peerCq: bCq, own: local, other: remote },
        { qp: b, cq: bCq, peer: a, peerCq: aCq, own: remote, other: local },
      ];
      for (const { qp, cq, peer, peerCq, own, other } of sides) {
        const expected = own.read(0, lengthBytes);
        const target = { address: other.address, key: other.key };
        const from = lengthBytes === 0 ? [] : [own.part(0, lengthBytes)];
        const back = lengthBytes === 0 ? [] : [own.part(250_000, lengthBytes)];
        peer.receive(lengthBytes === 0 ? [] : [other.part(250_000, lengthBytes)]);
        qp.post({ opcode: RDMA_WRITE, segments: from, remote: target });
        qp.post({ opcode: SEND, segments: from });
        qp.post({ opcode: RDMA_READ, segments: back, remote: target });
        qp.ring();
        const found: string[] = [];
        await bench.until(
          () =>
            found.push(...cq.drain().map(({ wqeCounter, syndrome }) => `${wqeCounter}: ${syndrome}`)) >= 3,
          3000,
        );
        expect(found).toEqual(['0: 0', '1: 0', '2: 0']);
        const received: string[] = [];
        await bench.until(
          () =>
            received.push(...peerCq.drain().map(({ byteCount, syndrome }) => `${byteCount}: ${syndrome}`)) >=
            1,
          3000,
        );
        expect(received).toEqual([`${lengthBytes}: 0`]);
        for (const place of [0, 250_000])
          expect(Buffer.from(other.read(place, lengthBytes)).equals(Buffer.from(expected))).toBe(true);
        expect(Buffer.from(own.read(250_000, lengthBytes)).equals(Buffer.from(expected))).toBe(true);
      }
    },
  );
});

describe('a stream of a card', () => {
  it('ends by a Terminate and FINs, and both QPs are in error', async () => {
    const { bench, a, b, numbers, local, remote, logs } = await cardScene();
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 10)],
      remote: { address: remote.address - 1, key: remote.key },
    });
    await bench.until(() => logs.a.some((line) => line.startsWith('TERMINATE')), 200);
    await bench.run(50);
    expect(logs.b).toContain(`TERMINATE_SENT ${numbers.b} 0x1101`);
    expect(logs.a).toContain(`TERMINATE_RECEIVED ${numbers.a} 0x1101`);
    expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
    expect([logs.a.at(-1), logs.b.at(-1)]).toEqual([`CLOSED ${numbers.a}`, `CLOSED ${numbers.b}`]);
  });

  it('to itself ends so, too, and nothing of it is on the cable', async () => {
    const { bench, a, b, numbers, local, remote, logs } = await cardScene({}, { isLooped: true });
    a.send({
      opcode: RDMA_WRITE,
      segments: [local.part(0, 10)],
      remote: { address: remote.address - 1, key: remote.key },
    });
    await bench.until(() => logs.a.filter((line) => line.startsWith('CLOSED')).length === 2, 200);
    expect(logs.a).toContain(`TERMINATE_SENT ${numbers.b} 0x1101`);
    expect(logs.a).toContain(`TERMINATE_RECEIVED ${numbers.a} 0x1101`);
    expect([a.state, b.state]).toEqual([QpState.ERR, QpState.ERR]);
    expect(bench.a.ethernet!.port.transmitted.frames).toBe(0);
  });

  it('is reset by 2ERR', async () => {
    const { bench, a, b, logs, numbers } = await cardScene();
    a.toError();
    await bench.until(() => b.state === QpState.ERR, 200);
    await bench.run(10);
    expect([logs.a.at(-1), logs.b.at(-1)]).toEqual([`RESET ${numbers.a}`, `RESET ${numbers.b}`]);
  });

  it('delivers what a lossy cable carries', async () => {
    const { bench, a, aCq, numbers, local, remote } = await cardScene(
      { hasMarkers: true },
      {
        regionBytes: 200_000,
        ethernet: { lossPerMillion: 20_000 },
        iwarp: { retransmitInitialUs: 1000, retransmitMinUs: 200 },
      },
    );
    const target = { address: remote.address, key: remote.key };
    a.post({ opcode: RDMA_WRITE, segments: [local.part(0, 100_000)], remote: target });
    a.post({ opcode: RDMA_READ, segments: [local.part(100_000, 100_000)], remote: target });
    a.ring();
    await bench.until(() => aCq.takenCount() === 2, 20_000);
    expect(Buffer.from(local.read(100_000, 100_000)).equals(Buffer.from(local.read(0, 100_000)))).toBe(true);
    expect(bench.a.dataPath.blocks.tcpControl.rowOf(numbers.a)).toMatchObject({
      counts: { retransmissions: expect.toSatisfy((count: number) => count > 0) },
    });
  }, 60_000);
});

describe('the answer to a READ of no bytes that begins a connection', () => {
  it('RFC 6581, 4.3: completes no READ of a program that was requested before it arrived', async () => {
    // The answer takes longer than the scene waits.
    const far = { ethernet: { cableMetres: 2000, pauseCableMetres: 2000 } };
    const { bench, a, aCq, local, remote } = await cardScene({ rtr: RtrKind.READ }, far);
    const lengthBytes = 4000;
    for (const at of [0, lengthBytes])
      a.post({
        opcode: RDMA_READ,
        segments: [local.part(at, lengthBytes)],
        remote: { address: remote.address + at, key: remote.key },
      });
    a.ring();
    for (const at of [0, lengthBytes]) {
      await bench.until(() => aCq.drain().length > 0, 500);
      expect(local.read(at, lengthBytes)).toEqual(remote.read(at, lengthBytes));
    }
  });
});

describe('the cycle accounts of a card', () => {
  it('are those of all its blocks: a new epoch moves each of them', async () => {
    const { bench } = await cardScene();
    const { accounts, blocks } = bench.a.dataPath;
    const missing = Object.entries<object>(blocks).flatMap(([name, block]) =>
      'account' in block && !accounts.some((account) => account === block.account) ? [name] : [],
    );
    expect(missing).toEqual([]);
  });
});
