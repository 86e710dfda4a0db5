/**
 * Selective repeat between two data paths with a cable of 40 Gb/s, whose packets are lost by hand. Expected numbers of packets are
 * those of IRN, 3.1 and 3.2: each lost packet is sent again once, and no other.
 */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { nakSyndrome, Opcode, rnrNakSyndrome } from '../../../../wire/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import { psnA, type SendRequest } from '../../testing/data-path-verbs.ts';
import { type Scene, type SceneOptions, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';
import type { Packet } from '../../testing/tapped-port.ts';

const MTU = 1024;
const selective = { lossRecovery: 'selective-repeat' } as const;
/** Local ACK timeout code 14: 67 ms. */
const withSelective = (options: SceneOptions = {}, hca: Partial<HcaConfig> = {}): Promise<Scene> =>
  scene({ ackTimeout: 14, ...options, hca: { ...selective, ...hca } });

const write = ({ local, target }: Scene, bytes: number, at = 0): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(at, bytes)],
  remote: { ...target, address: target.address + at },
});
const read = (given: Scene, bytes: number): SendRequest => ({
  ...write(given, bytes),
  opcode: WqeOpcode.RDMA_READ,
});
const add = (given: Scene, at: number): SendRequest => ({
  ...write(given, 8, at),
  opcode: WqeOpcode.ATOMIC_FA,
  swapOrAdd: 1n,
});

/** Number of a packet from the first PSN of `a` on. */
const numberOf = ({ psn }: Packet): number => (psn - psnA(0)) & 0xff_ffff;
/** Loses the first copies of these packets on their way to a side. */
function lose({ bench }: Scene, side: 'a' | 'b', numbers: readonly number[]): void {
  const left = [...numbers];
  bench[side].port.drops = (packet) => {
    const at = packet.opcode === Opcode.RC_ACKNOWLEDGE ? -1 : left.indexOf(numberOf(packet));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  };
}
/** Numbers of the packets that a side has been sent, lost ones among them; answers without ACKs and NAKs. */
const sentTo = ({ bench }: Scene, side: 'a' | 'b'): number[] =>
  bench[side].port.packets.filter(({ opcode }) => opcode !== Opcode.RC_ACKNOWLEDGE).map(numberOf);
const repeated = ({ bench }: Scene, side: 'a' | 'b'): number =>
  bench[side].dataPath.blocks.transmitter.repeatedPacketCount;
const to = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('a WRITE with selective repeat', () => {
  it.each([[[2]], [[0]], [[2, 5]], [[3, 4, 5]], [[0, 2, 4, 6, 8]]])(
    'IRN 3.1: sends the lost packets %j of ten again, and no other',
    async (lost) => {
      const given = await withSelective();
      const { bench, aCq, a, local, remote } = given;
      lose(given, 'b', lost);
      a.send(write(given, 10 * MTU));
      await bench.run(50);
      expect(syndromesOf(aCq.drain())).toEqual([0]);
      expect(sentTo(given, 'b')).toEqual([...to(10), ...lost]);
      expect(repeated(given, 'a')).toBe(lost.length);
      expect(remote.read(0, 10 * MTU)).toEqual(local.read(0, 10 * MTU));
    },
  );

  it('IRN 3.1: sends all from the gap on again with go-back-N: 8 packets for one lost', async () => {
    const given = await scene();
    const { bench, aCq, a } = given;
    lose(given, 'b', [2]);
    a.send(write(given, 10 * MTU));
    await bench.run(50);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(sentTo(given, 'b')).toEqual([...to(10), ...to(10).slice(2)]);
  });

  it('IRN 3.1: is refused by NAKs that name the PSN that lacks, and the one that has come', async () => {
    const given = await withSelective();
    const { bench, a } = given;
    lose(given, 'b', [2]);
    a.send(write(given, 6 * MTU));
    await bench.run(50);
    const naks = bench.a.port.packets.filter(({ syndrome }) => syndrome === nakSyndrome(0));
    expect(naks.map(({ psn, msn }) => [psn, msn])).toEqual([3, 4, 5].map((held) => [psnA(2), psnA(held)]));
  });

  it('loses the time of the packet, and of taking those after it from the buffer, instead of sending them again', async () => {
    /** Instant of the CQE of a WRITE of 16 packets, with these packets lost. */
    const timeOf = async (lost: readonly number[], hca: Partial<HcaConfig>): Promise<number> => {
      const given = await scene({ hca });
      const { bench, aCq, a } = given;
      lose(given, 'b', lost);
      const fromPs = bench.a.domain.clock.edgePs(bench.a.domain.cycle);
      a.send(write(given, 15 * MTU));
      await bench.until(() => aCq.takenCount() === 1, 100);
      return bench.a.port.packets.at(-1)!.timePs - fromPs;
    };
    const packetPs = 263_000;
    const whole = await timeOf([], selective);
    expect(whole).toBe(await timeOf([], {}));
    const [one, back] = [await timeOf([1], selective), await timeOf([1], {})];
    // 14 packets follow the first gap: go-back-N sends them again, selective repeat one of them.
    // 0.26 us on the cable, and 13 packets out of the buffer at 75 ns and more each, which their writes to memory take.
    expect(one - whole).toBe(1_981_264);
    // The NAK reaches the sender when five more packets have left: these and the nine after them follow the lost one.
    expect(back - whole).toBe(3_156_908);
    expect(back - one).toBeGreaterThan(4 * packetPs);
  });

  it('IRN 3.1: sends the last packets again after RTO_low, and what else lacks once the first is acknowledged', async () => {
    const given = await withSelective();
    const { bench, aCq, a, local, remote } = given;
    lose(given, 'b', [4, 5]);
    a.send(write(given, 6 * MTU));
    await bench.run(99);
    expect(sentTo(given, 'b')).toEqual(to(6));
    await bench.run(20);
    expect(sentTo(given, 'b')).toEqual([...to(6), 4, 5]);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(remote.read(0, 6 * MTU)).toEqual(local.read(0, 6 * MTU));
    const sent = bench.b.port.packets.filter((packet) => numberOf(packet) === 4).map(({ timePs }) => timePs);
    // 100 us after the last progress, of two packets in flight: less than N = 3.
    expect(sent[1]! - sent[0]!).toBeGreaterThan(100e6 - 1e6);
    expect(sent[1]! - sent[0]!).toBeLessThan(103e6);
  });

  it('IRN 3.1: waits RTO_high while three packets or more are in flight', async () => {
    const given = await withSelective();
    const { bench, aCq, a } = given;
    lose(given, 'b', [3, 4, 5]);
    a.send(write(given, 6 * MTU));
    await bench.run(310);
    expect(sentTo(given, 'b')).toEqual(to(6));
    await bench.run(30);
    expect([sentTo(given, 'b').slice(6), syndromesOf(aCq.drain())]).toEqual([[3, 4, 5], [0]]);
  });

  it('IRN 3.1: sends a packet that is lost again after a timeout', async () => {
    const given = await withSelective();
    const { bench, aCq, a } = given;
    lose(given, 'b', [2, 2]);
    a.send(write(given, 10 * MTU));
    await bench.run(400);
    expect([sentTo(given, 'b').slice(10), syndromesOf(aCq.drain())]).toEqual([[2, 2], [0]]);
  });

  it('IRN 3.2: has no more than a window in flight, and sends the next packets when that is acknowledged', async () => {
    const given = await withSelective({}, { recoveryWindowPackets: 4 });
    const { bench, aCq, a } = given;
    bench.b.port.drops = () => true;
    a.send(write(given, 10 * MTU));
    await bench.run(50);
    expect(sentTo(given, 'b')).toEqual(to(4));
    bench.b.port.drops = () => false;
    await bench.run(500);
    // After RTO_high the oldest is sent again; its ACK shows that the other three lack, too.
    expect([sentTo(given, 'b'), syndromesOf(aCq.drain())]).toEqual([[...to(4), ...to(10)], [0]]);
  });

  it('keeps as many requests as its buffer holds: others are lost, and sent again', async () => {
    const given = await withSelective({}, { reorderBufferPackets: 2 });
    const { bench, aCq, a, local, remote } = given;
    lose(given, 'b', [0]);
    a.send(write(given, 6 * MTU));
    await bench.run(400);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.b.dataPath.blocks.reorder).toMatchObject({ heldTotal: 2, heldMax: 2, overflowCount: 3 });
    expect(sentTo(given, 'b')).toEqual([...to(6), 0, 3, 4, 5]);
    expect(remote.read(0, 6 * MTU)).toEqual(local.read(0, 6 * MTU));
  });

  it('IRN 3.1: sends a packet whose NAK was lost again, and none that waits in the transmit buffer or is on its way', async () => {
    const given = await withSelective({}, { transmitBufferPackets: 16 });
    const { bench, aCq, a } = given;
    lose(given, 'b', [2]);
    // The NAK that names 5 is lost: 5 seems to be lost too, and is accepted with 2 while its second copy waits.
    bench.a.port.drops = ({ syndrome, msn }) => syndrome === nakSyndrome(0) && msn === psnA(5);
    for (let index = 0; index < 6; index++) a.post(write(given, 10 * MTU));
    a.ring();
    await bench.run(100);
    expect(summaryOf(aCq.drain())).toEqual(to(6).map((index) => `send ${index}: 0x0`));
    const again = sentTo(given, 'b').filter((number, index, all) => all.indexOf(number) !== index);
    expect(again).toEqual([2, 5]);
  });

  it('IBTA 9.9.2: fails after the retries of the local ACK timeout, however often it sent again meanwhile', async () => {
    const given = await withSelective({ ackTimeout: 6, a: { fields: { retryCount: 1 } } });
    const { bench, aCq, a } = given;
    bench.b.port.drops = () => true;
    a.send(write(given, 100));
    // Code 6 is 262 us: the retry is used up after that, and the request fails after as much again.
    await bench.run(480);
    expect(aCq.drain()).toEqual([]);
    await bench.run(140);
    expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.TRANSPORT_RETRY_EXC_ERR]);
    expect(sentTo(given, 'b').length).toBeGreaterThan(2);
  });

  it('RFC 6298, 5.5: doubles the timeout while the peer is silent, and begins with RTO_low again once it answers', async () => {
    const given = await withSelective();
    const { bench, aCq, a } = given;
    lose(given, 'b', [0, 0, 0, 0, 1]);
    a.send(write(given, 100));
    await bench.run(1600);
    a.send(write(given, 100));
    await bench.run(150);
    expect([sentTo(given, 'b'), syndromesOf(aCq.drain())]).toEqual([
      [0, 0, 0, 0, 0, 1, 1],
      [0, 0],
    ]);
    const sentUs = bench.b.port.packets.map(({ timePs }) => timePs / 1e6);
    const waits = sentUs.slice(1).map((us, index) => Math.floor((us - sentUs[index]!) / 10));
    expect(waits.with(4, 0)).toEqual([10, 20, 40, 80, 0, 10]);
  });
});

describe('a READ with selective repeat', () => {
  it.each([[[2]], [[0]], [[3, 4, 5]], [[1, 8]]])(
    'IRN 3.1: requests the lost responses %j of ten again, and no other',
    async (lost) => {
      const given = await withSelective();
      const { bench, aCq, a, local, remote } = given;
      lose(given, 'a', lost);
      a.send(read(given, 10 * MTU));
      await bench.run(50);
      expect(syndromesOf(aCq.drain())).toEqual([0]);
      expect(sentTo(given, 'a').toSorted((left, right) => left - right)).toEqual(
        [...to(10), ...lost].toSorted((left, right) => left - right),
      );
      expect(repeated(given, 'b')).toBe(lost.length);
      expect(local.read(0, 10 * MTU)).toEqual(remote.read(0, 10 * MTU));
    },
  );

  it.each([[[3, 7]], [[3]], [[0, 4, 8, 12]]])(
    'longer than the window completes with all its bytes, though responses %j are lost',
    async (lost) => {
      const given = await withSelective({}, { recoveryWindowPackets: 4 });
      const { bench, aCq, a, local, remote } = given;
      lose(given, 'a', lost);
      a.send(read(given, 13 * MTU));
      await bench.run(5000);
      expect(syndromesOf(aCq.drain())).toEqual([0]);
      expect(local.read(0, 13 * MTU)).toEqual(remote.read(0, 13 * MTU));
    },
  );

  it.each([[[0]], [[3, 7]]])(
    'longer than the window completes without a local ACK timeout, though responses %j are lost',
    async (lost) => {
      const given = await withSelective({ ackTimeout: 0 }, { recoveryWindowPackets: 4 });
      const { bench, aCq, a, local, remote } = given;
      lose(given, 'a', lost);
      a.send(read(given, 13 * MTU));
      await bench.run(200);
      expect(syndromesOf(aCq.drain())).toEqual([0]);
      expect(local.read(0, 13 * MTU)).toEqual(remote.read(0, 13 * MTU));
    },
  );

  it('requests responses that lack in a row by one request for their bytes', async () => {
    const given = await withSelective();
    const { bench, a, target } = given;
    lose(given, 'a', [3, 4, 5]);
    a.send(read(given, 10 * MTU));
    await bench.run(50);
    const requests = bench.b.port.packets.map(({ psn, address, dmaBytes }) => [psn, address, dmaBytes]);
    expect(requests).toEqual([
      [psnA(0), target.address, 10 * MTU],
      [psnA(3), target.address + 3 * MTU, 3 * MTU],
    ]);
  });

  it('requests the last responses again after the timeout', async () => {
    const given = await withSelective();
    const { bench, aCq, a, local, remote } = given;
    lose(given, 'a', [8, 9]);
    a.send(read(given, 10 * MTU));
    await bench.run(400);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(sentTo(given, 'a')).toEqual([...to(10), 8, 9]);
    expect(local.read(0, 10 * MTU)).toEqual(remote.read(0, 10 * MTU));
  });

  it('is held if its request comes after a gap, and is sent again whole if it is lost', async () => {
    const given = await withSelective();
    const { bench, aCq, a } = given;
    lose(given, 'b', [0, 5]);
    a.post(write(given, 100));
    a.post(read(given, 4 * MTU));
    a.post(read(given, 4 * MTU));
    a.post(write(given, 100));
    a.ring();
    await bench.run(60);
    expect(summaryOf(aCq.drain())).toEqual([0, 1, 2, 3].map((index) => `send ${index}: 0x0`));
    expect(sentTo(given, 'b')).toEqual([0, 1, 5, 9, 0, 5]);
  });
});

describe('atomics, SENDs and WRITEs with selective repeat', () => {
  it('IRN 3.1: are executed once and complete in order, whatever is lost', async () => {
    const given = await withSelective();
    const { bench, aCq, bCq, a, b, local, remote } = given;
    const old = new DataView(remote.read(16, 8).buffer).getBigUint64(0, true);
    for (let index = 0; index < 3; index++) b.receive([remote.part(12_000, 2 * MTU)]);
    // Numbers: SEND 0, 1; atomic 2; atomic 3; WRITE 4, 5; SEND 6; atomic 7.
    lose(given, 'b', [0, 3, 5]);
    lose(given, 'a', [2]);
    const send = { opcode: WqeOpcode.SEND, segments: [local.part(0, 2 * MTU)] };
    for (const request of [send, add(given, 16), add(given, 16), write(given, 2 * MTU, 2048)])
      a.post(request);
    a.post({ ...send, segments: [local.part(0, 10)] });
    a.post(add(given, 16));
    a.ring();
    await bench.run(150);
    expect(summaryOf(aCq.drain())).toEqual([0, 1, 2, 3, 4, 5].map((index) => `send ${index}: 0x0`));
    expect(bCq.drain().map(({ byteCount }) => byteCount)).toEqual([2 * MTU, 10]);
    expect(new DataView(remote.read(16, 8).buffer).getBigUint64(0, true)).toBe(old + 3n);
    expect(remote.read(2048, 2 * MTU)).toEqual(local.read(2048, 2 * MTU));
    // The result of the first atomic is asked for again, and kept.
    expect(sentTo(given, 'b').slice(8).toSorted()).toEqual([0, 2, 3, 5]);
  });

  it('IBTA 9.7.5.2.8: sends what the receiver was not ready for again alone', async () => {
    const given = await withSelective();
    const { bench, aCq, bCq, a, b, local, remote } = given;
    a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 100)] });
    a.post(write(given, 4 * MTU, 1024));
    a.ring();
    await bench.run(8);
    b.receive([remote.part(12_000, 100)]);
    await bench.run(40);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x0']);
    expect(bCq.drain()).toMatchObject([{ byteCount: 100, syndrome: 0 }]);
    expect(sentTo(given, 'b')).toEqual([...to(5), 0]);
    const [nak] = bench.a.port.packets;
    expect(nak).toMatchObject({ psn: psnA(0), syndrome: rnrNakSyndrome(1) });
  });

  it('sends requests again that found no room after an RNR NAK, without a local ACK timeout', async () => {
    const given = await withSelective({ ackTimeout: 0 }, { reorderBufferPackets: 1 });
    const { bench, aCq, a, b, local, remote } = given;
    a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 100)] });
    a.post(write(given, 4 * MTU, 1024));
    a.ring();
    await bench.run(8);
    b.receive([remote.part(12_000, 100)]);
    await bench.run(100);
    expect(bench.b.dataPath.blocks.reorder).toMatchObject({ heldTotal: 1, overflowCount: 3 });
    // After an RNR NAK the receiver tells neither that it holds 1, nor that it has dropped 2, 3 and 4.
    expect(sentTo(given, 'b')).toEqual([...to(5), 0, 1, 2, 3, 4]);
    expect(summaryOf(aCq.drain())).toEqual(['send 0: 0x0', 'send 1: 0x0']);
    expect(remote.read(1024, 4 * MTU)).toEqual(local.read(1024, 4 * MTU));
  });

  it('sends a lost packet again though its timeout expired in an RNR delay, and a late copy of the refused one was accepted', async () => {
    // RNR timer code 14 is 1.28 ms (IBTA 9.7.5.2.8); RTO_low is 100 us.
    const given = await withSelective({ b: { fields: { minRnrNak: 14 } } });
    const { bench, aCq, a, b, local, remote } = given;
    const late = { kind: 'duplicated', passes: 1000, delayPs: 300e6 } as const;
    bench.a.wire.faults.addRule(late, { shots: 1 }, { fired: () => undefined });
    lose(given, 'b', [2]);
    a.post({ opcode: WqeOpcode.SEND, segments: [local.part(0, 100)] });
    a.post(write(given, 2 * MTU, 1024));
    a.ring();
    await bench.run(200);
    b.receive([remote.part(12_000, 100)]);
    await bench.run(1000);
    // The copy of the SEND was accepted, and the packet held after it; all that is left is the lost one.
    expect([sentTo(given, 'b'), summaryOf(aCq.drain())]).toEqual([[0, 1, 2, 0], ['send 0: 0x0']]);
    await bench.run(400);
    expect([sentTo(given, 'b'), summaryOf(aCq.drain())]).toEqual([[0, 1, 2, 0, 2], ['send 1: 0x0']]);
    expect(remote.read(1024, 2 * MTU)).toEqual(local.read(1024, 2 * MTU));
  });

  it('forgets what it holds of a QP that is destroyed', async () => {
    const given = await withSelective();
    const { bench, a, b, checkBystanders } = given;
    bench.b.port.drops = (packet) => packet.qpn === b.qpn && numberOf(packet) === 0;
    a.send(write(given, 4 * MTU));
    await bench.run(30);
    expect(bench.b.dataPath.blocks.reorder.heldCount).toBe(3);
    b.toError();
    await bench.run(5);
    expect(bench.b.dataPath.blocks.reorder.heldCount).toBe(0);
    await checkBystanders();
  });
});
