import { describe, expect, it } from 'vitest';
import { QpState, ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { dataPathBench } from '../../testing/data-path-bench.ts';
import { connectedPair, psnA, Region } from '../../testing/data-path-verbs.ts';
import { syndromesOf } from '../../testing/scenario.ts';

/** A pair whose QPs use entry 1 of the P_Key tables of their ports. */
async function partitioned(pkeyA: number, pkeyB: number, serviceType: number = ServiceType.RC) {
  const bench = await dataPathBench();
  const service = { fields: { serviceType } };
  const path = { pkeyIndex: 1 };
  const pair = connectedPair(bench.a, bench.b, { a: service, b: service, ackTimeout: 4, path });
  bench.a.address.pkeys[1] = pkeyA;
  bench.b.address.pkeys[1] = pkeyB;
  const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096)];
  from.fill(1);
  await bench.run(3);
  const write = (): void => {
    const remote = { address: to.address, key: to.key };
    pair.a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part(0, 100)], remote });
  };
  return { bench, ...pair, from, to, write };
}

/** IBTA vol 1, 9.6.1.1 and 10.9.1: the base of the keys must be equal, and one of the two a full member's. */
describe('a connection', () => {
  it.each([
    [0x8123, 0x8123, true],
    [0x8123, 0x0123, true],
    [0x0123, 0x8123, true],
    [0x0123, 0x0123, false],
    [0x8123, 0x8124, false],
    [0x8000, 0x8000, false],
    [0, 0, false],
  ])('IBTA 9.6.1.1, 10.9.1: of partitions %x and %x takes packets: %s', async (pkeyA, pkeyB, isTaken) => {
    const { bench, aCq, from, to, write, b } = await partitioned(pkeyA, pkeyB);
    write();
    await bench.run(20);
    expect(bench.b.port.packets.map(({ psn, pkey }) => [psn, pkey])).toEqual([[psnA(0), pkeyA]]);
    expect(syndromesOf(aCq.drain())).toEqual(isTaken ? [0] : []);
    expect(to.read(0, 100)).toEqual(isTaken ? from.read(0, 100) : new Uint8Array(100));
    expect(bench.b.dataPath.parts.violations.report()).toEqual(isTaken ? {} : { packetPkey: 1 });
    expect([bench.b.address.pkeyViolations, b.state]).toEqual([isTaken ? 0 : 1, QpState.RTS]);
  });

  it('IBTA 9.6.1.1, 10.9.1: drops answers of another partition, and takes them when the tables agree again', async () => {
    const { bench, aCq, write } = await partitioned(0x8123, 0x8123);
    // The request has left when the table changes.
    bench.b.port.drops = () => {
      bench.a.address.pkeys[1] = 0x8777;
      return false;
    };
    write();
    await bench.run(20);
    bench.b.port.drops = () => false;
    expect([bench.a.address.pkeyViolations, aCq.drain()]).toEqual([1, []]);
    bench.a.address.pkeys[1] = 0x8123;
    await bench.run(80);
    expect(syndromesOf(aCq.drain())).toEqual([0]);
    expect(bench.a.port.packets.map(({ opcode, pkey }) => [opcode, pkey])).toEqual([
      [Opcode.RC_ACKNOWLEDGE, 0x8123],
      [Opcode.RC_ACKNOWLEDGE, 0x8123],
    ]);
  });

  it('IBTA 9.6.1.1, 10.9.1: without answers drops what is of another partition, too', async () => {
    const { bench, aCq, to, write } = await partitioned(0x8123, 0x8124, ServiceType.UC);
    write();
    await bench.run(20);
    expect([syndromesOf(aCq.drain()), to.read(0, 100)]).toEqual([[0], new Uint8Array(100)]);
    expect(bench.b.address.pkeyViolations).toBe(1);
  });
});
