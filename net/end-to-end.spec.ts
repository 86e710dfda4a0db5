import { describe, expect, test } from 'vitest';
import { addresses } from './testing/machine.ts';
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

/** A file from host 0 to host 1; what arrived, and the rate in Gb/s. */
async function bulk(lengthBytes: number, options: NicMachineOptions = {}, core = 0, piece = 65_536) {
  const machine = new NicMachine(options);
  const arrived = new Uint8Array(lengthBytes);
  const file = Uint8Array.from({ length: lengthBytes }, (_, at) => (at * 13 + (at >> 9)) & 0xff);
  let [fromPs, untilPs] = [0, 0];
  machine.run(
    1,
    'server',
    async ({ cpu, memory }, calls) => {
      const listening = await calls.socket(cpu);
      await calls.bind(cpu, listening, { address: 0, port });
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
      const fd = await calls.socket(cpu);
      await calls.connect(cpu, fd, { address: addresses[1], port });
      fromPs = cpu.localPs;
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
  test('answer a 1-byte ping-pong in the time of a kernel path', async () => {
    const { oneWayNs, machine } = await pingPongNs();
    console.log('one way', oneWayNs, JSON.stringify(machine.nodes[0]!.host.report().cores[0]!.cycles));
    const other = await pingPongNs({ driver: { interruptIntervalNs: 0 } });
    console.log('no moderation', other.oneWayNs, (await pingPongNs({}, 1)).oneWayNs);
    expect(oneWayNs).toBeGreaterThan(5_000);
  });

  test('move a file', async () => {
    const { machine, arrived, file, gbps } = await bulk(1_000_000);
    console.log(
      'gbps',
      gbps,
      JSON.stringify(machine.nodes.map((n) => [n.network!.counts, n.host.report().cores[0]!.cycles])),
    );
    console.log(
      'other core',
      (await bulk(1_000_000, {}, 1)).gbps,
      'jumbo',
      (await bulk(1_000_000, { driver: { mtu: 9000 }, ethernet: { mtuBytes: 9000 } }, 1)).gbps,
    );
    expect(arrived).toEqual(file);
  });
});
