import { describe, expect, it } from 'vitest';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { connectedPair, psnA } from '../../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';

/** Local ACK timeout code 2: 4.096 us × 2^2 = 16.384 us. */
const TIMEOUT_CODE = 2;
const TIMEOUT_PS = 16_384_000;

const write = ({ local, target }: Scene) => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, 100)],
  remote: target,
});

describe('the local ACK timeout', () => {
  it('IBTA 9.7.6.1.3, 9.9.2.1.1: sends again when the peer is silent, and gives up when the retries are used up', async () => {
    const given = await scene({ ackTimeout: TIMEOUT_CODE, a: { fields: { retryCount: 3 } } });
    const { bench, a, b, aCq, checkBystanders } = given;
    bench.b.port.drops = ({ qpn }) => qpn === b.qpn;
    a.post(write(given));
    a.post(write(given));
    a.ring();
    await bench.run(200);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x15', 'send 1: 0x5']);
    const sent = bench.b.port.packets.filter(({ psn }) => psn === psnA(0)).map(({ timePs }) => timePs);
    expect(sent).toHaveLength(4);
    for (const [index, time] of sent.slice(1).entries()) {
      // At least the timeout, and at most the few hundred nanoseconds of sending beyond it.
      expect(time - sent[index]!).toBeGreaterThanOrEqual(TIMEOUT_PS - 200_000);
      expect(time - sent[index]!).toBeLessThan(TIMEOUT_PS + 1_000_000);
    }
    expect([a.state, b.state]).toEqual([QpState.ERR, QpState.RTS]);
    expect(bench.a.dataPath.blocks.timers.timeoutCount).toBe(4);
    await checkBystanders();
  });

  it('measurements.csv H-213: waits for its least code where the code is shorter, in the unit of the card', async () => {
    // 8.192 us × 2^3 = 65.536 us for codes 1 to 3, and 131.072 us for 4.
    for (const [code, timeoutPs] of [
      [1, 65_536_000],
      [3, 65_536_000],
      [4, 131_072_000],
    ] as const) {
      const hca = { ackTimeoutUnitNs: 8192, ackTimeoutCodeMin: 3 };
      const given = await scene({ ackTimeout: code, a: { fields: { retryCount: 1 } }, hca });
      const { bench, a, b } = given;
      bench.b.port.drops = ({ qpn }) => qpn === b.qpn;
      a.send(write(given));
      await bench.run(200);
      const sent = bench.b.port.packets.filter(({ psn }) => psn === psnA(0)).map(({ timePs }) => timePs);
      expect(sent[1]! - sent[0]!).toBeGreaterThanOrEqual(timeoutPs - 200_000);
      expect(sent[1]! - sent[0]!).toBeLessThan(timeoutPs + 1_000_000);
    }
  });

  it('IBTA 9.7.6.1.3: never comes with code 0', async () => {
    const given = await scene({ ackTimeout: 0 });
    const { bench, a, aCq } = given;
    bench.b.port.drops = () => true;
    a.send(write(given));
    await bench.run(1000);
    expect(aCq.drain()).toEqual([]);
    expect(bench.b.port.packets).toHaveLength(1);
  });

  it('IBTA 9.7.6.1.3: begins anew with a request that follows a pause', async () => {
    const given = await scene({ ackTimeout: TIMEOUT_CODE });
    const { bench, a, aCq } = given;
    a.send(write(given));
    // Answered after about 2 us; the second is sent 14 us after the first, 2 us before the first one's timeout.
    await bench.run(14);
    bench.b.port.drops = () => true;
    a.send(write(given));
    await bench.run(15);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([psnA(0), psnA(1)]);
    await bench.run(5);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([psnA(0), psnA(1), psnA(1)]);
  });

  it('IBTA 9.7.6.1.3: begins anew with the first of several requests that follow a pause together', async () => {
    const given = await scene({ ackTimeout: TIMEOUT_CODE });
    const { bench, a, aCq } = given;
    a.send(write(given));
    // Both are requests being processed before the first of them leaves; the timer of the earlier one is due 2 us
    // later.
    await bench.run(14);
    bench.b.port.drops = () => true;
    a.send(write(given));
    a.send(write(given));
    await bench.run(15);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.b.port.packets.map(({ psn }) => psn)).toEqual([psnA(0), psnA(1), psnA(2)]);
    await bench.run(5);
    expect(bench.b.port.packets.map(({ psn }) => psn).slice(3, 4)).toEqual([psnA(1)]);
  });

  it('IBTA 9.7.6.1.3: does not come for what waits behind the packets of others and has not left', async () => {
    // SDR on one lane: a packet of 1024 bytes takes 4.3 us, and 12 wait ahead of the second request.
    const hca = { transmitBufferPackets: 16, burstPackets: 16 };
    const wire = { speed: 'SDR', lanes: '1' } as const;
    const given = await scene({ ackTimeout: TIMEOUT_CODE, a: { fields: { retryCount: 0 } }, hca, wire });
    const { bench, a, b, aCq, local, target } = given;
    const other = connectedPair(bench.a, bench.b);
    await bench.run(5);
    a.send(write(given));
    await bench.until(() => aCq.takenCount() === 1, 20);
    const beganPs = bench.a.lp.nowPs;
    other.a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 12 * 1024)], remote: target });
    await bench.run(3);
    a.send(write(given));
    await bench.run(100);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    const [, second] = bench.b.port.packets.filter(({ qpn }) => qpn === b.qpn);
    expect(second!.timePs - beganPs).toBeGreaterThan(2 * TIMEOUT_PS);
    expect(bench.a.dataPath.blocks.timers.timeoutCount).toBe(0);
  });

  it('IBTA 9.7.6.1.3: does not come while answers keep coming', async () => {
    const given = await scene({ ackTimeout: TIMEOUT_CODE });
    const { bench, a, aCq } = given;
    for (let index = 0; index < 25; index++) {
      a.send(write(given));
      await bench.run(4);
    }
    await bench.run(10);
    expect(aCq.drain()).toHaveLength(25);
    expect(bench.a.dataPath.blocks.timers.timeoutCount).toBe(0);
    expect(bench.a.dataPath.blocks.transmitter.repeatedPacketCount).toBe(0);
  });

  it('measurements.csv H-201: of an RNR wait counts in the unit of the card', async () => {
    const given = await scene({ hca: { rnrTimerUnitNs: 32_687 } });
    const { bench, a, b, aCq } = given;
    bench.b.port.drops = () => true;
    a.send(write(given));
    await bench.run(5);
    // RNR timer code 5 means 6 units: 196.122 us.
    bench.b.act(() => {
      const nak = { opcode: Opcode.RC_ACKNOWLEDGE, qpn: a.qpn, psn: psnA(0), aeth: (0x20 | 5) << 24 };
      bench.b.port.inject(nak, bench.b.lp.nowPs);
    });
    const refusedPs = bench.b.lp.nowPs;
    bench.b.port.drops = () => false;
    await bench.until(() => aCq.drain().length > 0, 300);
    const sent = bench.b.port.packets.filter(({ qpn }) => qpn === b.qpn).map(({ timePs }) => timePs);
    expect(sent[1]! - refusedPs).toBeGreaterThan(196_122_000);
    expect(sent[1]! - refusedPs).toBeLessThan(198_000_000);
  });

  it('IBTA 9.7.5.2.8: of an earlier RNR wait does not end a later one', async () => {
    const given = await scene();
    const { bench, a, b, aCq } = given;
    bench.b.port.drops = () => true;
    a.send(write(given));
    await bench.run(5);
    // RNR timer codes 5 and 7: 0.06 ms and 0.12 ms (IBTA vol 1, 9.7.5.2.8, table 45).
    const refuse = (code: number): void =>
      bench.b.act(() => {
        const nak = { opcode: Opcode.RC_ACKNOWLEDGE, qpn: a.qpn, psn: psnA(0), aeth: (0x20 | code) << 24 };
        bench.b.port.inject(nak, bench.b.lp.nowPs);
      });
    refuse(5);
    await bench.run(20);
    refuse(7);
    const againPs = bench.b.lp.nowPs;
    bench.b.port.drops = () => false;
    await bench.until(() => aCq.drain().length > 0, 200);
    const sent = bench.b.port.packets.filter(({ qpn }) => qpn === b.qpn).map(({ timePs }) => timePs);
    expect(sent).toHaveLength(2);
    expect(sent[1]! - againPs).toBeGreaterThan(120_000_000);
  });

  it('of an earlier life of a QP means nothing', async () => {
    const given = await scene({ ackTimeout: TIMEOUT_CODE });
    const { bench, a } = given;
    bench.b.port.drops = () => true;
    a.send(write(given));
    await bench.run(5);
    bench.a.act(() => bench.a.dataPath.control.qpDestroyed(a.slot));
    await bench.run(100);
    expect(bench.a.dataPath.blocks.timers.timeoutCount).toBe(0);
    expect(bench.b.port.packets).toHaveLength(1);
  });

  it('does not come when an answer comes at its very instant, before or behind it', async () => {
    for (const isBehind of [false, true]) {
      const given = await scene({ ackTimeout: TIMEOUT_CODE });
      const { bench, a } = given;
      const { lp, dataPath } = bench.a;
      bench.b.port.drops = () => true;
      const pair = dataPath.parts.qps.rows[a.slot]!;
      const answered = lp.queue.addHandler(() => dataPath.blocks.timers.progress(pair));
      let duePs = Number.NaN;
      const answerAtDue = (): void => {
        duePs = pair.lastProgressPs + TIMEOUT_PS;
        lp.queue.schedule(duePs, answered);
      };
      // The timer is set some time after the posting, and once more when it finds that there was progress.
      a.send(write(given));
      await bench.run(3);
      bench.a.act(() => dataPath.blocks.timers.progress(pair));
      await bench.run(1);
      if (!isBehind) answerAtDue();
      await bench.run(15);
      if (isBehind) answerAtDue();
      await bench.run(5);
      expect(bench.a.lp.nowPs).toBeGreaterThan(duePs);
      expect(dataPath.blocks.timers.timeoutCount).toBe(0);
      expect(pair.lastProgressPs).toBe(duePs);
      await bench.run(20);
      expect(dataPath.blocks.timers.timeoutCount).toBe(1);
    }
  });

  it('comes to several QPs at one instant in the order of their places, not in that of their timers', async () => {
    for (const shuffleSeed of [undefined, 1, 2, 3, 4, 5]) {
      const order = shuffleSeed === undefined ? {} : { shuffleSeed };
      const given = await scene({ ackTimeout: TIMEOUT_CODE, ...order });
      const { bench } = given;
      const ends = [given, connectedPair(bench.a, bench.b, { ackTimeout: TIMEOUT_CODE })];
      bench.b.port.drops = () => true;
      await bench.run(5);
      for (const { a } of ends.toReversed()) a.send(write(given));
      await bench.run(3);
      bench.a.act(() => {
        for (const { a } of ends.toReversed())
          bench.a.dataPath.blocks.timers.progress(bench.a.dataPath.parts.qps.rows[a.slot]!);
      });
      await bench.run(20);
      expect(ends[0]!.a.slot).toBeLessThan(ends[1]!.a.slot);
      const repeated = bench.b.port.packets.slice(2).map(({ qpn }) => qpn);
      expect(repeated).toEqual(ends.map(({ b }) => b.qpn));
    }
  });
});
