/** Distances of packets on the cable. A cycle is 1000 / 427 ns; 4X QDR carries a byte in 0.25 ns. */
import { describe, expect, it, vi } from 'vitest';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../../wire/index.ts';
import { dataPathBench } from '../../testing/data-path-bench.ts';
import { Cq, connectedPair, Qp, Region } from '../../testing/data-path-verbs.ts';
import { scene } from '../../testing/scenario.ts';

const cycleNs = 1000 / 427;
/** LRH, BTH, ICRC, VCRC and framing around a payload of 1000 bytes; a WRITE's first packet has a RETH, too. */
const sendNs = (8 + 12 + 1000 + 4 + 2 + 2) / 4;
const writeNs = sendNs + 16 / 4;
const readNs = sendNs + 4 / 4;

/** Nanoseconds from one packet of an opcode to the next at the receiving port, of requests posted together. */
async function distancesNs(
  hca: object,
  opcode: 'RDMA_WRITE' | 'SEND' | 'RDMA_READ',
  packetOpcode: number,
): Promise<number[]> {
  const { bench, a, b, local, target } = await scene({
    hca: { sameQpIntervalCycles: 1, readIntervalCycles: 1, ...hca },
  });
  if (opcode === 'SEND') for (let count = 0; count < 4; count++) b.receive([local.part(0, 0)].slice(1));
  for (let count = 0; count < 4; count++)
    a.post({
      opcode: WqeOpcode[opcode],
      segments: [local.part(0, 1000)],
      ...(opcode === 'SEND' ? {} : { remote: target }),
    });
  a.ring();
  await bench.run(40);
  const port = opcode === 'RDMA_READ' ? bench.a.port : bench.b.port;
  const at = port.packets
    .filter((packet) => packet.opcode === packetOpcode)
    .map(({ timePs }) => timePs / 1e3);
  return at.slice(1).map((ns, index) => ns - at[index]!);
}

describe('messages of one QP', () => {
  it('are apart by their bytes and the gap of a WRITE', async () => {
    for (const gap of [0, 100]) {
      const distances = await distancesNs({ writeGapCycles: gap }, 'RDMA_WRITE', Opcode.RC_RDMA_WRITE_ONLY);
      expect(distances).toHaveLength(3);
      for (const ns of distances.slice(1)) {
        expect(ns).toBeGreaterThan(writeNs + gap * cycleNs - 1);
        expect(ns).toBeLessThan(writeNs + (gap + 2) * cycleNs);
      }
    }
  });

  it('are apart by their bytes and the gap of a READ response', async () => {
    for (const gap of [0, 100]) {
      const distances = await distancesNs(
        { readGapCycles: gap },
        'RDMA_READ',
        Opcode.RC_RDMA_READ_RESPONSE_ONLY,
      );
      expect(distances).toHaveLength(3);
      for (const ns of distances.slice(1)) {
        expect(ns).toBeGreaterThan(readNs + gap * cycleNs - 1);
        expect(ns).toBeLessThan(readNs + (gap + 2) * cycleNs);
      }
    }
  });

  it('leave the cable to other QPs meanwhile', async () => {
    const hca = { writeGapCycles: 400, sameQpIntervalCycles: 1 };
    const { bench, a, local, target } = await scene({ hca });
    const other = connectedPair(bench.a, bench.b);
    await bench.run(5);
    for (const qp of [a, other.a])
      for (let count = 0; count < 4; count++)
        qp.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 1000)], remote: target });
    a.ring();
    other.a.ring();
    await bench.run(40);
    const times = bench.b.port.packets
      .filter(({ opcode }) => opcode === Opcode.RC_RDMA_WRITE_ONLY)
      .map(({ timePs }) => timePs / 1e3);
    expect(times).toHaveLength(8);
    // Four gaps and not eight.
    expect(times.at(-1)! - times[0]!).toBeLessThan(4.5 * (400 * cycleNs + 2 * writeNs));
  });
});

describe('messages to the port itself', () => {
  /**
   * Returns the cycles from one looped WRITE of 1000 bytes to the next, of requests posted together, while `onCable`
   * WRITEs of another QP use the cable.
   */
  async function loopedDistances(writeGapCycles: number, onCable: number) {
    const bench = await dataPathBench({
      hca: { writeGapCycles, sameQpIntervalCycles: 1, loopbackBytesPerCycle: 16 },
    });
    const cq = new Cq(bench.a);
    const [left, right] = [new Qp(bench.a, { sendCq: cq }), new Qp(bench.a, { sendCq: cq })];
    left.connect(right.qpn, 5, 9, 0, { remoteLid: bench.a.address.lid });
    right.connect(left.qpn, 9, 5, 0, { remoteLid: bench.a.address.lid });
    const other = connectedPair(bench.a, bench.b);
    const [from, to, far] = [new Region(bench.a, 1000), new Region(bench.a, 1000), new Region(bench.b, 4096)];
    await bench.run(5);
    const { loopback } = bench.a.dataPath.blocks;
    const begun = vi.spyOn(loopback, 'begin');
    const write = (target: Region) => ({
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [from.part()],
      remote: { address: target.address, key: target.key },
    });
    for (let count = 0; count < onCable; count++) other.a.post(write(far));
    for (let count = 0; count < 4; count++) left.post(write(to));
    if (onCable > 0) other.a.ring();
    left.ring();
    await bench.run(60);
    const formed = begun.mock.calls
      .filter(([opcode]) => opcode === Opcode.RC_RDMA_WRITE_ONLY)
      .map(([, , , , cycle]) => cycle);
    return formed.slice(1).map((cycle, index) => cycle - formed[index]!);
  }
  /** LRH, BTH, RETH, ICRC and VCRC around the payload, at 16 bytes a cycle. */
  const pathCycles = Math.ceil((8 + 12 + 16 + 1000 + 4 + 2) / 16);

  it('are apart by their bytes on the loopback and the gap', async () => {
    const apart = pathCycles + 400;
    expect(await loopedDistances(400, 0)).toEqual([apart, apart, apart]);
    // One packet of another QP may precede in the queue, and uses the cable first.
    const cablePacketCycles = Math.ceil(writeNs / cycleNs);
    for (const cycles of await loopedDistances(400, 4)) {
      expect(cycles).toBeGreaterThanOrEqual(apart);
      expect(cycles).toBeLessThan(apart + cablePacketCycles);
    }
  });
});
