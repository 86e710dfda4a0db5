/**
 * Four hosts in a ring, each cabled by both ports: port 1 to the next host, port 2 to the one before. Expected bytes are those of the
 * headers that InfiniBand gives each packet (volume 1, 5.2); times follow from the data rate.
 */
import { describe, expect, it, vi } from 'vitest';
import '../../runtime/node.ts';
import { readCapture } from '../../analyser/capture/index.ts';
import type { writeByAllCables } from '../../examples/every-cable.ts';
import { Machine, type MachineOptions } from '../machine.ts';
import { configuredOf } from '../machine-hash.ts';
import { HcaNode } from '../node/hca-node.ts';
import { partitions } from '../partition/placement.ts';
import { planMachine } from '../plan.ts';
import { parsedTopology } from './check-topology.ts';

// Eight worker threads on machines with few cores.
vi.setConfig({ testTimeout: 300_000 });

const ring = parsedTopology('0-1.2,1-2.2,2-3.2,3-0.2');
const run = {
  url: new URL('../../examples/every-cable.ts', import.meta.url),
  exportName: 'writeByAllCables',
};

const messages = 3;
const size = 4096;
const mtuBytes = 1024;
// LRH 8, BTH 12, RETH 16 in the first packet, AETH 4 in an acknowledgement, ICRC 4, VCRC 2.
const packetBytes = 8 + 12 + 4 + 2;
const writeBytes = 16 + (size / mtuBytes) * packetBytes + size;
const acknowledgementBytes = 4 + packetBytes;

type Results = readonly Awaited<ReturnType<typeof writeByAllCables>>[];

async function outcomeOf(options: MachineOptions, bound: readonly number[], used = bound) {
  await using machine = await Machine.create(options);
  for (let node = 0; node < machine.nodeCount; node++)
    await machine.load({ node, run, args: { bound, used, messages, size } });
  await machine.run();
  return { results: await machine.results<Results>(), report: await machine.report() };
}

describe('four hosts in a ring, by two ports each', () => {
  it.each(partitions)('write exact bytes by every cable in partition %s', async (partition) => {
    const { results, report } = await outcomeOf({ topology: ring, partition }, [1, 2]);
    expect(report.checks).toMatchObject({ balanced: true });
    for (const [node, { lids, statuses, received }] of results.entries()) {
      expect(lids).toEqual([node + 1, 0x100 + node + 1]);
      expect(statuses).toEqual([0]);
      // Port 1 leads to port 2 of the next host, port 2 to port 1 of the one before; each filled its buffer with 16 node + port.
      expect(received).toEqual([[16 * ((node + 1) % 4) + 2], [16 * ((node + 3) % 4) + 1]]);
    }
    const bytes = messages * (writeBytes + acknowledgementBytes);
    expect(report.wire.map((cable) => cable.bytes)).toEqual(Array(8).fill(bytes));
    // Both directions carry the same messages, as all hosts do the same at the same time.
    expect(new Set(report.wire.map(({ busyPs }) => busyPs)).size).toBe(1);
    const { busyPs, linkBytes } = report.wire[0]!;
    // 4X QDR carries 4 bytes a nanosecond.
    expect(busyPs).toBe(linkBytes * 250);
    expect(report.wire.map(({ from, fromPort = 1, to, toPort = 1 }) => [from, fromPort, to, toPort])).toEqual(
      [
        [0, 1, 1, 2],
        [0, 2, 3, 1],
        [1, 1, 2, 2],
        [1, 2, 0, 1],
        [2, 1, 3, 2],
        [2, 2, 1, 1],
        [3, 1, 0, 2],
        [3, 2, 2, 1],
      ],
    );
    expect({ results, report }).toEqual(await inOneThread());
  });

  it('need the same cycles by port 1, by port 2, and as pairs', async () => {
    const byPort1 = await outcomeOf({ topology: ring }, [1, 2], [1]);
    const byPort2 = await outcomeOf({ topology: ring }, [2, 1], [2]);
    const timesOf = ({ results }: { readonly results: Results }) => results.map(({ tookPs }) => tookPs);
    expect(timesOf(byPort2)).toEqual(timesOf(byPort1));
    const coresOf = ({ report }: typeof byPort1) =>
      report.nodes.map(({ cpu }) => cpu.cores.map(({ cycles }) => cycles));
    expect(coresOf(byPort2)).toEqual(coresOf(byPort1));
    // Half of the cables carry the writes, the others nothing.
    const sumOf = ({ report }: typeof byPort1) => report.wire.reduce((sum, { bytes }) => sum + bytes, 0);
    expect([sumOf(byPort1), sumOf(byPort2)]).toEqual(
      Array(2).fill(4 * messages * (writeBytes + acknowledgementBytes)),
    );
  });

  it('by port 1 alone need the cycles of pairs', async () => {
    const pairs = await outcomeOf({ nodes: 4 }, [1]);
    const crossed = await outcomeOf({ topology: parsedTopology('0-2,1-3,0.2-1.2,2.2-3.2') }, [1]);
    expect(crossed.results.map(({ tookPs }) => tookPs)).toEqual(pairs.results.map(({ tookPs }) => tookPs));
  });
});

describe('the second port', () => {
  it('has faults of its own, and recovers from them', async () => {
    const faults = [
      { packet: 'lost', nth: 2, portNumber: 2 },
      { cable: 'pulled', node: 2, portNumber: 2, at: '2ms', for: '500us' },
    ];
    const { results, report } = await outcomeOf({ topology: ring, faults }, [1, 2]);
    expect(report.checks).toMatchObject({ balanced: true });
    expect(results.map(({ statuses }) => statuses)).toEqual(Array(4).fill([0]));
    expect(report.faults?.map(({ fired }) => fired)).toEqual([1, 1]);
    // Host 0 lost a packet to host 3, which only this cable carries again.
    const again = report.wire.flatMap(({ from, fromPort, lost, retransmitted }) =>
      lost !== undefined || Object.keys(retransmitted).length > 0 ? [[from, fromPort, lost]] : [],
    );
    expect(again).toEqual([[0, 2, 1]]);
  });

  it('has captures of its own', async () => {
    await using machine = await Machine.create({
      topology: ring,
      analysis: { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 20 } },
    });
    for (let node = 0; node < machine.nodeCount; node++)
      await machine.load({ node, run, args: { bound: [1, 2], used: [2], messages, size } });
    await machine.run();
    const { interfaces } = readCapture(await machine.capture());
    expect(interfaces.map(({ name }) => name)).toEqual(['hca0', 'hca0.2']);
    // Host 0 writes by port 2; host 1 writes by its own port 2, which is cabled to port 1 of host 0. Each WRITE has 4 packets and an answer.
    const kept = messages * (size / mtuBytes + 1);
    expect(await machine.captureDrops()).toEqual([
      { process: 'hca0', kept, dropped: 0 },
      { process: 'hca0.2', kept, dropped: 0 },
    ]);
  });

  it('has a subnet of its own, whose manager names the ports of its cable', () => {
    const { config, topology } = configuredOf({ topology: ring });
    const plan = planMachine({
      ...{ config, topology, faults: [], partition: 'single', shuffleSeed: undefined, analysis: undefined },
    });
    const { managers } = new HcaNode(plan, 1).hca.control.management;
    const guids = managers.map((manager) => {
      // Get(SMInfo), volume 1, 13.4.2 and 14.2.5.13: base version 1, class 1, method 1, attribute 0x20; GUID first in the data.
      const mad = new Uint8Array(256);
      mad.set([1, 1, 1, 1]);
      mad[0x11] = 0x20;
      expect(manager.answer(mad)).toBe(true);
      return Buffer.from(mad.subarray(64, 72)).toString('hex');
    });
    // Port 1 is cabled to port 2 of host 2, port 2 to port 1 of host 0; the first of each pair of ports is the manager's.
    expect(guids).toEqual(['0002c90300000011', '0002c90300000001']);
  });
});

let single: ReturnType<typeof outcomeOf> | undefined;
const inOneThread = (): ReturnType<typeof outcomeOf> => {
  single ??= outcomeOf({ topology: ring }, [1, 2]);
  return single;
};
