import { describe, expect, test } from 'vitest';
import { nicBar0 } from '../abi/nic/index.ts';
import { addresses, ipv6Addresses, vlanIpv6Addresses } from './testing/machine.ts';
import { NicMachine, type NicMachineOptions } from './testing/nic-machine.ts';

const port = 7000;

/** One-way time of a 1-byte ping-pong in nanoseconds, the mean of `rounds`. */
async function pingPongNs(options: NicMachineOptions = {}, core = 0, rounds = 50) {
  const machine = new NicMachine(options);
  let oneWayNs = 0;
  machine.run(
    1,
    'server',
    async ({ cpu, memory }, calls) => {
      const listening = await calls.socket(cpu);
      await calls.bind(cpu, listening, { address: 0, port });
      await calls.listen(cpu, listening, 1);
      const fd = await calls.accept(cpu, listening);
      const buffer = memory.map(4096);
      while ((await calls.recv(cpu, fd, buffer, 1)) === 1) await calls.send(cpu, fd, buffer, 1);
    },
    core,
  );
  machine.run(
    0,
    'client',
    async ({ cpu, memory }, calls) => {
      await cpu.sleep(20e9);
      const fd = await calls.socket(cpu);
      await calls.connect(cpu, fd, { address: addresses[1], port });
      const buffer = memory.map(4096);
      const round = async () => {
        await calls.send(cpu, fd, buffer, 1);
        await calls.recv(cpu, fd, buffer, 1);
      };
      for (let warm = 0; warm < 5; warm++) await round();
      const fromPs = cpu.localPs;
      for (let at = 0; at < rounds; at++) await round();
      oneWayNs = (cpu.localPs - fromPs) / rounds / 2000;
    },
    core,
  );
  await machine.toEnd();
  return { oneWayNs, machine };
}

/** Sends a file from host 0 to host 1. @returns the received bytes, and the rate in Gb/s */
async function bulk(
  lengthBytes: number,
  options: NicMachineOptions = {},
  core = 0,
  piece = 65_536,
  harm: (machine: NicMachine) => void = () => {},
  remote: number | string = addresses[1],
) {
  const family = typeof remote === 'number' ? 'AF_INET' : 'AF_INET6';
  const machine = new NicMachine(options);
  const arrived = new Uint8Array(lengthBytes);
  const file = Uint8Array.from({ length: lengthBytes }, (_, at) => (at * 13 + (at >> 9)) & 0xff);
  let [fromPs, untilPs] = [0, 0];
  machine.run(
    1,
    'server',
    async ({ cpu, memory }, calls) => {
      const listening = await calls.socket(cpu, 'AF_INET6');
      await calls.bind(cpu, listening, { address: '::', port });
      await calls.listen(cpu, listening, 1);
      const fd = await calls.accept(cpu, listening);
      const buffer = memory.map(lengthBytes);
      let got = 0;
      for (;;) {
        const count = await calls.recv(
          cpu,
          fd,
          buffer + got,
          Math.min(piece, Math.max(1, lengthBytes - got)),
        );
        if (count === 0) break;
        got += count;
      }
      untilPs = cpu.localPs;
      await memory.load(cpu, buffer, arrived);
    },
    core,
  );
  machine.run(
    0,
    'client',
    async ({ cpu, memory }, calls) => {
      await cpu.sleep(20e9);
      const buffer = memory.map(lengthBytes);
      await memory.store(cpu, buffer, file);
      const fd = await calls.socket(cpu, family);
      await calls.connect(cpu, fd, { address: remote, port });
      fromPs = cpu.localPs;
      harm(machine);
      for (let at = 0; at < lengthBytes; at += piece) {
        await calls.send(cpu, fd, buffer + at, Math.min(piece, lengthBytes - at));
      }
      await calls.close(cpu, fd);
    },
    core,
  );
  await machine.toEnd();
  return { machine, arrived, file, gbps: (lengthBytes * 8000) / (untilPs - fromPs) };
}

describe('two hosts, two NICs, one cable', () => {
  test('answer a 1-byte ping-pong in the time of a kernel path, including moderation', async () => {
    const rounds = 50;
    const { oneWayNs: plainNs, machine } = await pingPongNs(
      { driver: { interruptIntervalNs: 0 } },
      0,
      rounds,
    );
    const { oneWayNs: moderatedNs } = await pingPongNs();
    // Two kernel paths of about 3 µs each, and 1.5 µs of buses and cable; measured 7.5 µs.
    expect(plainNs).toBeGreaterThan(5_000);
    expect(plainNs).toBeLessThan(10_000);
    // Adds at most an interval of 10 µs; measured 10.0 µs.
    expect(moderatedNs).toBeGreaterThan(plainNs);
    expect(moderatedNs).toBeLessThan(plainNs + 10_000);
    const { counts } = machine.nodes[0]!.network!;
    // One send and one recv a round, one block and one wake-up each; plus socket, connect and close.
    expect(counts.dataPathCalls).toBe(2 * (rounds + 5));
    expect(counts.wakeUps).toBeGreaterThanOrEqual(rounds);
    for (const { host, network } of machine.nodes) {
      expect(host.report().isBalanced).toBe(true);
      expect(network!.counts.retransmissions).toBe(0);
    }
  });

  test('move a file completely, faster with a core for the interrupts, fastest in jumbo frames', async () => {
    const size = 1_000_000;
    const oneCore = await bulk(size);
    expect(oneCore.arrived).toEqual(oneCore.file);
    const twoCores = await bulk(size, {}, 1);
    const jumbo = await bulk(size, { driver: { mtu: 9000 }, ethernet: { mtuBytes: 9000 } }, 1);
    expect(jumbo.arrived).toEqual(jumbo.file);
    expect(twoCores.gbps).toBeGreaterThan(oneCore.gbps);
    expect(jumbo.gbps).toBeGreaterThan(twoCores.gbps);
    // 10 Gb/s carry 1,460 bytes in 1,538 byte times, 8,960 in 9,038: upper bounds of the throughput.
    expect(twoCores.gbps).toBeLessThan((10 * 1460) / 1538);
    expect(jumbo.gbps).toBeLessThan((10 * 8960) / 9038);
    const { counts } = oneCore.machine.nodes[1]!.network!;
    expect([counts.copiedOutBytes, counts.droppedForMemory]).toEqual([size, 0]);
  });

  test.each([
    ['IPv6', ipv6Addresses[1], 1440, 1500, 0],
    ['long frames of IPv6', ipv6Addresses[1], 8940, 9000, 0],
    ['IPv6 of a VLAN', vlanIpv6Addresses[1], 1440, 1500, 4],
    ['long frames of IPv6 of a VLAN', vlanIpv6Addresses[1], 8940, 9000, 4],
  ])(
    'move a file completely over %s, by %i bytes a segment',
    async (_what, remote, segment, mtu, tagBytes) => {
      const size = 50 * segment;
      const options = { driver: { mtu }, ethernet: { mtuBytes: mtu } };
      const { arrived, file, gbps, machine } = await bulk(size, options, 1, size, undefined, remote);
      expect(arrived).toEqual(file);
      // Preamble, header, tag, FCS and gap around the packet.
      expect(gbps).toBeLessThan((10 * segment) / (mtu + tagBytes + 38));
      const [sender, receiver] = machine.nodes.map(({ nic }) => nic);
      const { counters, port: sent } = sender!;
      expect(counters.tagsInserted).toBe(tagBytes === 0 ? 0 : counters.transmitFrames);
      expect(receiver!.counters.deliveredTags).toBe(tagBytes === 0 ? 0 : receiver!.counters.delivered);
      expect([receiver!.counters.filtered, receiver!.counters.filteredVlans]).toEqual([0, 0]);
      // 50 full frames, and the frames of opening and closing, of 74 bytes, or 82 with options: SYN, ACK, FIN.
      const full = 50 * (mtu + 14 + tagBytes + 4);
      const others = counters.transmitFrames - 50;
      expect(sent.transmitted.bytes).toBeGreaterThanOrEqual(full + others * (74 + tagBytes + 4));
      expect(sent.transmitted.bytes).toBeLessThanOrEqual(full + others * (82 + tagBytes + 4));
      for (const { host } of machine.nodes) expect(host.report().isBalanced).toBe(true);
    },
  );

  test('move a file completely over a cable that loses and corrupts', async () => {
    const ethernet = { lossPerMillion: 20_000, corruptionPerMillion: 5_000 };
    const { arrived, file, machine } = await bulk(400_000, { ethernet, seed: 7 });
    expect(arrived).toEqual(file);
    const [sender, receiver] = machine.nodes;
    expect(sender!.network!.counts.retransmissions).toBeGreaterThan(0);
    expect(receiver!.network!.counts.outOfOrder).toBeGreaterThan(0);
  });

  test('continue after a queue was programmed illegally', async () => {
    const { arrived, file, machine } = await bulk(400_000, {}, 0, 65_536, ({ nodes }) => {
      const { host } = nodes[0]!;
      // A tail beyond the ring: PROGERR, and the queue stops.
      const bar = nodes[0]!.barAddress + nicBar0.registers.tdt.offset;
      host.spawn('harm', async (cpu) => {
        cpu.mmioWrite32(bar, 0xffff);
        await cpu.settle();
      });
    });
    expect(arrived).toEqual(file);
    expect(machine.nodes[0]!.network!.counts.adapterResets).toBe(1);
    expect(machine.nodes[1]!.network!.counts.adapterResets).toBe(0);
  });

  test('drop frames that a small receive ring and a small buffer cannot hold, and still move a file completely', async () => {
    const { arrived, file, machine } = await bulk(400_000, {
      driver: { receiveRing: 8, refillBatch: 1, transmitRing: 8 },
    });
    expect(arrived).toEqual(file);
    expect(machine.nodes[1]!.network!.driver.buffers.taken).toBeLessThan(300);
  });

  test('release everything when the driver is removed', async () => {
    const { machine } = await bulk(100_000);
    for (const [index, node] of machine.nodes.entries()) {
      await machine.kernel(index, (cpu) => node.network!.remove(cpu));
      expect(node.network!.driver.buffers.taken).toBe(0);
      expect(node.host.frames.freeCount).toBe(node.freeFramesBefore);
      expect(node.host.report().isBalanced).toBe(true);
    }
  });
});
