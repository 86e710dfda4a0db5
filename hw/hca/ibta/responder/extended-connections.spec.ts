/** XRC, IBTA vol 1, annex A14: one connection for the SRQs of all processes that share the target. */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { EventType } from '../../../../abi/eqe.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { type BenchOptions, tightest } from '../../testing/data-path-bench.ts';
import { Cq, psnA, Region, Srq } from '../../testing/data-path-verbs.ts';
import {
  DOMAIN,
  type ExtendedConnection,
  extendedConnection,
  extendedPair,
  type Process,
} from '../../testing/extended-connection.ts';
import { summaryOf, syndromesOf } from '../../testing/scenario.ts';

const { SEND, SEND_IMM, RDMA_WRITE, RDMA_WRITE_IMM, RDMA_READ, ATOMIC_FA } = WqeOpcode;
const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

const remoteOf = ({ srq, region }: Process, offset = 0) => ({
  remoteSrqn: srq.srqn,
  remote: { address: region.address + offset, key: region.key },
});

async function answersOf({ bench, initiatorCq }: ExtendedConnection, count: number) {
  const all = [] as ReturnType<Cq['drain']>;
  await bench.until(() => all.push(...initiatorCq.drain()) >= count, 300);
  return all;
}

describe.each(sizes)('an XRC connection%s', (_, options) => {
  it('annex A14: brings each SEND to the SRQ that it names, and completes it in that SRQ’s CQ', async () => {
    const given = await extendedConnection(options);
    const { initiator, target, targetCq, processes, local } = given;
    const places = processes.map((process) => process.receive());
    initiator.post({ opcode: SEND, segments: [local.part(0, 3000)], remoteSrqn: processes[1]!.srq.srqn });
    initiator.post({
      opcode: SEND_IMM,
      segments: [local.part(3000, 64)],
      immediate: 0x1234,
      remoteSrqn: processes[0]!.srq.srqn,
    });
    initiator.ring();
    expect(syndromesOf(await answersOf(given, 2))).toEqual([0, 0]);
    await given.bench.run(5);
    for (const [index, { cq, srq }] of processes.entries()) {
      const completion = cq.poll();
      expect(completion).toMatchObject({
        qpn: target.qpn,
        isSend: false,
        syndrome: 0,
        wqeCounter: places[index],
        byteCount: index === 0 ? 64 : 3000,
        immediate: index === 0 ? 0x1234 : 0,
      });
      expect(cq.source.qpn).toBe(srq.srqn);
      expect(cq.poll()).toBeUndefined();
    }
    expect(targetCq.poll()).toBeUndefined();
    expect(processes[1]!.region.read(0, 3000)).toEqual(local.read(0, 3000));
    expect(processes[0]!.region.read(0, 64)).toEqual(local.read(3000, 64));
  });

  it('annex A14: writes, reads and changes memory of the protection domain of the SRQ that is named', async () => {
    const given = await extendedConnection(options);
    const { initiator, processes, local } = given;
    const [first, second] = processes as [Process, Process];
    first.receive();
    const sum = local.read(8000, 8).slice();
    const before = second.region.read(4000, 2500).slice();
    initiator.post({ opcode: RDMA_WRITE, segments: [local.part(0, 2500)], ...remoteOf(first) });
    initiator.post({
      opcode: RDMA_READ,
      segments: [local.part(4000, 2500)],
      ...remoteOf(second, 4000),
    });
    initiator.post({ opcode: RDMA_WRITE_IMM, segments: [local.part(0, 70)], ...remoteOf(first, 5000) });
    const { address } = second.region;
    const remote = { address: address + ((8 - (address % 8)) % 8), key: second.region.key };
    const original = second.region.read(remote.address - address, 8).slice();
    initiator.post({
      opcode: ATOMIC_FA,
      segments: [local.part(8000, 8)],
      swapOrAdd: 1n,
      remoteSrqn: second.srq.srqn,
      remote,
    });
    initiator.ring();
    expect(syndromesOf(await answersOf(given, 4))).toEqual([0, 0, 0, 0]);
    await given.bench.run(5);
    expect(first.region.read(0, 2500)).toEqual(local.read(0, 2500));
    expect(first.region.read(5000, 70)).toEqual(local.read(0, 70));
    expect(local.read(4000, 2500)).toEqual(before);
    expect(local.read(8000, 8)).not.toEqual(sum);
    expect(local.read(8000, 8)).toEqual(original);
    expect(first.cq.poll()).toMatchObject({ byteCount: 70, syndrome: 0 });
    expect(second.cq.poll()).toBeUndefined();
  });
});

describe('an XRC connection', () => {
  it('annex A14: has the XRCETH in all packets of a request, and none in those of answers', async () => {
    const given = await extendedConnection();
    const { bench, initiator, processes, local } = given;
    processes[0]!.receive();
    initiator.post({ opcode: SEND, segments: [local.part(0, 2100)], remoteSrqn: processes[0]!.srq.srqn });
    initiator.post({ opcode: RDMA_READ, segments: [local.part(0, 100)], ...remoteOf(processes[1]!) });
    initiator.ring();
    await answersOf(given, 2);
    expect(bench.b.port.packets.map(({ opcode, srqn }) => [opcode, srqn])).toEqual([
      [Opcode.XRC_SEND_FIRST, processes[0]!.srq.srqn],
      [Opcode.XRC_SEND_MIDDLE, processes[0]!.srq.srqn],
      [Opcode.XRC_SEND_LAST, processes[0]!.srq.srqn],
      [Opcode.XRC_RDMA_READ_REQUEST, processes[1]!.srq.srqn],
    ]);
    const answers = bench.a.port.packets.map(({ opcode }) => opcode);
    expect(new Set(answers)).toEqual(new Set([Opcode.XRC_ACKNOWLEDGE, Opcode.XRC_RDMA_READ_RESPONSE_ONLY]));
    // LRH 8, BTH 12, XRCETH 4, ICRC 4, VCRC 2; RETH 16.
    const { first } = bench.a.wire.transmitted;
    expect(first.rows[Opcode.XRC_SEND_FIRST]).toEqual({ packets: 1, bytes: 1024 + 30, payloadBytes: 1024 });
    expect(first.rows[Opcode.XRC_RDMA_READ_REQUEST]).toEqual({ packets: 1, bytes: 46, payloadBytes: 0 });
  });

  it('reaches a target of the same port by the loopback', async () => {
    const given = await extendedConnection({ isLoopback: true });
    const { bench, initiator, processes, local } = given;
    processes[0]!.receive();
    initiator.send({ opcode: SEND, segments: [local.part(0, 2000)], remoteSrqn: processes[0]!.srq.srqn });
    expect(syndromesOf(await answersOf(given, 1))).toEqual([0]);
    expect(processes[0]!.region.read(0, 2000)).toEqual(local.read(0, 2000));
    expect(bench.b.port.packets).toEqual([]);
    expect(bench.a.dataPath.blocks.loopback.first.rows[Opcode.XRC_SEND_ONLY]?.packets ?? 0).toBe(0);
    expect(bench.a.dataPath.blocks.loopback.first.rows[Opcode.XRC_SEND_FIRST]?.packets).toBe(1);
  });

  it('IBTA 9.7.5.2.8: waits for a receive of the SRQ that is named, whatever others have', async () => {
    const given = await extendedConnection();
    const { bench, initiator, processes, local } = given;
    processes[0]!.receive();
    initiator.send({ opcode: SEND, segments: [local.part(0, 10)], remoteSrqn: processes[1]!.srq.srqn });
    await bench.run(30);
    expect(processes[0]!.cq.poll()).toBeUndefined();
    processes[1]!.receive();
    expect(syndromesOf(await answersOf(given, 1))).toEqual([0]);
    expect(processes[1]!.cq.poll()).toMatchObject({ byteCount: 10 });
  });

  it('annex A14: goes on after lost packets, each message with its own SRQ', async () => {
    const given = await extendedConnection({ ackTimeout: 1 });
    const { bench, initiator, processes, local } = given;
    const lost = new Set<string>();
    const isLost = (name: string): boolean => !lost.has(name) && lost.add(name).has(name);
    bench.b.port.drops = ({ psn }) => psn === psnA(1) && isLost('request');
    bench.a.port.drops = ({ opcode }) => opcode === Opcode.XRC_RDMA_READ_RESPONSE_ONLY && isLost('answer');
    for (const process of processes) process.receive();
    const [first, second] = processes as [Process, Process];
    const expected = second.region.read(9000, 100).slice();
    initiator.post({ opcode: SEND, segments: [local.part(0, 1500)], remoteSrqn: first.srq.srqn });
    initiator.post({ opcode: RDMA_READ, segments: [local.part(6000, 100)], ...remoteOf(second, 9000) });
    initiator.post({ opcode: SEND, segments: [local.part(0, 100)], remoteSrqn: second.srq.srqn });
    initiator.ring();
    expect(syndromesOf(await answersOf(given, 3))).toEqual([0, 0, 0]);
    expect(lost.size).toBe(2);
    await bench.run(5);
    expect(local.read(6000, 100)).toEqual(expected);
    expect([first.cq.takenCount(), second.cq.takenCount()]).toEqual([1, 1]);
  });

  const refusals: Record<string, (given: ExtendedConnection) => number> = {
    'that is not there': () => 0xabc_def,
    'of another domain': ({ bench }) => new Srq(bench.b, 4, { xrcDomain: DOMAIN + 1 }).srqn,
  };
  it.each(Object.entries(refusals))('annex A14: refuses requests for an SRQ %s', async (_, srqnOf) => {
    for (const opcode of [SEND, RDMA_WRITE, RDMA_READ]) {
      const given = await extendedConnection();
      const { bench, initiator, target, processes, local } = given;
      const remoteSrqn = srqnOf(given);
      initiator.send({ ...remoteOf(processes[0]!), opcode, segments: [local.part(0, 64)], remoteSrqn });
      expect(syndromesOf(await answersOf(given, 1))).toEqual([CqeSyndrome.REMOTE_INVAL_REQ_ERR]);
      expect([initiator.state, target.state]).toEqual([QpState.ERR, QpState.ERR]);
      const event = EventType.WQ_ACCESS_ERROR.toString(16);
      expect(bench.b.events.lines).toEqual([`qp 0x${event} 0x${target.qpn.toString(16)}`]);
    }
  });

  it('annex A14: refuses memory of another protection domain than that of the SRQ', async () => {
    const given = await extendedConnection();
    const { initiator, processes, local } = given;
    const [first, second] = processes as [Process, Process];
    const { remote } = remoteOf(first);
    initiator.send({ opcode: RDMA_READ, segments: [local.part(0, 64)], ...remoteOf(second), remote });
    expect(syndromesOf(await answersOf(given, 1))).toEqual([CqeSyndrome.REMOTE_ACCESS_ERR]);
  });

  it('annex A14: refuses a message that changes its SRQ half way, and flushes the receive that it had taken', async () => {
    const given = await extendedConnection();
    const { bench, target, processes } = given;
    const [first, second] = processes as [Process, Process];
    for (const { receive } of processes) receive();
    const payload = new Uint8Array(1024);
    const packet = { qpn: target.qpn, psn: psnA(0), payload, flags: 1 };
    const inject = (opcode: number, srqn: number, psn: number): void =>
      bench.a.act(() => bench.a.port.inject({ ...packet, opcode, srqn, psn }, bench.a.lp.nowPs));
    inject(Opcode.XRC_SEND_FIRST, first.srq.srqn, psnA(0));
    await bench.run(5);
    inject(Opcode.XRC_SEND_LAST, second.srq.srqn, psnA(1));
    await bench.until(() => target.state === QpState.ERR, 50);
    await bench.run(20);
    expect(summaryOf(first.cq.drain())).toEqual(['receive 0: 0x5']);
    expect(first.cq.source.qpn).toBe(first.srq.srqn);
    expect(second.cq.drain()).toEqual([]);
  });

  /** Destroys the SRQ as HW2SW_SRQ does, and gives its number to another at once, with a receive of its own. */
  function replaced({ bench }: ExtendedConnection, { srq }: Process): void {
    const { parts, control } = bench.b.dataPath;
    const context = parts.srqs.bytes.slice(parts.srqs.offsetOf(srq.slot), parts.srqs.offsetOf(srq.slot) + 64);
    bench.b.act(() => {
      control.srqDestroyed(srq.slot);
      expect(control.srqIsBusy(srq.slot)).toBe(false);
      control.srqGone(srq.slot);
      parts.srqs.free(srq.slot);
      const slot = parts.srqs.allocate(srq.srqn);
      parts.srqs.bytes.set(context, parts.srqs.offsetOf(slot));
      control.srqCreated(slot);
    });
  }

  it('refuses the rest of a message whose SRQ is gone, also where another has its number', async () => {
    const given = await extendedConnection();
    const { bench, target, processes } = given;
    const [first] = processes as [Process];
    first.receive();
    const inject = (opcode: number, psn: number): void =>
      bench.a.act(() =>
        bench.a.port.inject(
          { qpn: target.qpn, payload: new Uint8Array(1024), flags: 1, opcode, srqn: first.srq.srqn, psn },
          bench.a.lp.nowPs,
        ),
      );
    inject(Opcode.XRC_SEND_FIRST, psnA(0));
    await bench.run(5);
    replaced(given, first);
    await bench.run(5);
    inject(Opcode.XRC_SEND_LAST, psnA(1));
    await bench.until(() => target.state === QpState.ERR, 50);
    await bench.run(20);
    // The receive WQE in use belonged to the old queue: it is neither completed nor flushed.
    expect(first.cq.drain()).toEqual([]);
  });

  it('sheet 3.16: an SRQ is busy until the completions of its receives are on their way to memory', async () => {
    const given = await extendedConnection({ hca: { completionCycles: 5000 } });
    const { bench, initiator, processes, local } = given;
    const [first] = processes as [Process];
    for (let count = 0; count < 2; count++) {
      first.receive();
      initiator.post({ opcode: SEND, segments: [local.part(0, 8)], remoteSrqn: first.srq.srqn });
    }
    initiator.ring();
    const { control, blocks } = bench.b.dataPath;
    await bench.until(() => blocks.completions.heldCount === 1, 50);
    await bench.run(2);
    bench.b.act(() => control.srqDestroyed(first.srq.slot));
    expect([first.cq.takenCount(), control.srqIsBusy(first.srq.slot)]).toEqual([1, true]);
    await bench.until(() => !control.srqIsBusy(first.srq.slot), 50);
    await bench.run(1);
    expect(first.cq.takenCount()).toBe(2);
  });

  it('has nothing to do with the CQ of an SRQ that is gone', async () => {
    const given = await extendedConnection();
    const { bench, initiator, target, processes, local } = given;
    const [first] = processes as [Process];
    first.receive();
    initiator.send({ opcode: SEND, segments: [local.part(0, 8)], remoteSrqn: first.srq.srqn });
    await answersOf(given, 1);
    await bench.run(5);
    replaced(given, first);
    await bench.run(5);
    const { parts, blocks } = bench.b.dataPath;
    bench.b.act(() => blocks.errors.cqFailed(parts.cqs.slotOf(first.cq.cqn), 1, bench.b.domain.cycle));
    await bench.run(5);
    expect(target.state).toBe(QpState.RTS);
  });

  it('sheet 6.6: completes a receive that is too short in error, in the CQ of its SRQ', async () => {
    const given = await extendedConnection();
    const { bench, initiator, processes, local } = given;
    const [first] = processes as [Process];
    first.receive([first.region.part(0, 10)]);
    initiator.send({ opcode: SEND, segments: [local.part(0, 64)], remoteSrqn: first.srq.srqn });
    expect(syndromesOf(await answersOf(given, 1))).toEqual([CqeSyndrome.REMOTE_INVAL_REQ_ERR]);
    await bench.run(20);
    expect(summaryOf(first.cq.drain())).toEqual(['receive 0: 0x1']);
    expect(first.cq.source.qpn).toBe(first.srq.srqn);
  });

  it('refuses messages for an SRQ whose CQ has overflowed', async () => {
    const given = await extendedConnection();
    const { bench, initiator, target, local } = given;
    const others = extendedPair(bench.a, bench.b);
    const cq = new Cq(bench.b, 0);
    const srq = new Srq(bench.b, 4, { xrcDomain: DOMAIN, cqn: cq.cqn });
    const region = new Region(bench.b, 4096);
    for (let count = 0; count < 4; count++) srq.post([region.part()]);
    const send = { opcode: SEND, segments: [local.part(0, 8)], remoteSrqn: srq.srqn };
    initiator.send(send);
    await answersOf(given, 1);
    initiator.send(send);
    await bench.until(() => bench.b.events.lines.some((line) => line.startsWith('cq 1')), 100);
    expect(target.state).toBe(QpState.ERR);
    others.a.send(send);
    const refused: number[] = [];
    await bench.until(() => refused.push(...syndromesOf(others.aCq.drain())) > 0, 100);
    expect(refused).toEqual([CqeSyndrome.REMOTE_OP_ERR]);
  });

  it('annex A14: raises the limit event of the SRQ that is named', async () => {
    const given = await extendedConnection();
    const { bench, initiator, processes, local } = given;
    const [first, second] = processes as [Process, Process];
    for (const { srq, receive } of processes) {
      receive();
      receive();
      srq.armLimit(2);
    }
    initiator.send({ opcode: SEND, segments: [local.part(0, 8)], remoteSrqn: second.srq.srqn });
    await answersOf(given, 1);
    await bench.run(10);
    const event = EventType.SRQ_LIMIT.toString(16);
    expect(bench.b.events.lines).toEqual([`srq 0x${event} 0x${second.srq.srqn.toString(16)}`]);
    expect(first.cq.poll()).toBeUndefined();
  });
});
