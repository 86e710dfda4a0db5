/**
 * Captures at the ports of switches: each packet that a switch forwards is one that came, changed at most as a switch may change it. An
 * InfiniBand switch changes nothing; an Ethernet switch pads short frames. Instants are those of cables and switches, of which an Ethernet
 * switch waits for the whole frame.
 */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../analyser/capture/index.ts';
import { loadTraffic } from '../experiments/runs/fabric-run.ts';
import type { FabricArgs } from '../experiments/workloads/index.ts';
import type { CaptureOptions } from '../machine/analysis/index.ts';
import { Machine, type MachineOptions } from '../machine/machine.ts';
import { farEndOf, isSwitch, parsedTopology } from '../machine/topology/index.ts';
import { eachPartition, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;
const topology = parsedTopology('dumbbell:4');

/** Runs an incast, and returns its capture. */
async function capturedIncast(
  ends: CaptureOptions['ends'],
  { set, ...options }: MachineOptions = {},
): Promise<Uint8Array> {
  const analysis = { capture: { ends, sizeBytes: 2 ** 24 } };
  await using machine = await Machine.create({
    ...options,
    topology,
    analysis,
    set: { ...smallMemory, ...set },
  });
  const args: FabricArgs = {
    ...{ pattern: 'incast', verb: 'write', hostCount: 4, sizeBytes: 3000, messages: 4, window: 2 },
  };
  await loadTraffic(machine, args);
  await machine.run();
  return machine.capture();
}

interface Seen {
  readonly timePs: number;
  /** From the LRH or MAC header on; of a frame with its padding. */
  readonly text: string;
}

/** Packets at each end of a cable, by the name of its interface; without the PAUSE frames of a port itself. */
function endsIn(file: Uint8Array, isEthernet: boolean) {
  const { interfaces, frames } = readCapture(file);
  const ends = new Map(interfaces.map(({ name }) => [name, { sent: [] as Seen[], received: [] as Seen[] }]));
  for (const { interface: at, direction, timePs, bytes } of frames) {
    const { sent, received } = ends.get(interfaces[at]!.name)!;
    const own = bytes.subarray(isEthernet ? 0 : erfHeaderBytes);
    if (isEthernet && own[12] === 0x88 && own[13] === 0x08) continue;
    const padding = isEthernet ? Math.max(0, 60 - own.length) : 0;
    const text = Buffer.concat([own, Buffer.alloc(padding)]).toString('latin1');
    (direction === 'outbound' ? sent : received).push({ timePs: Number(timePs), text });
  }
  return ends;
}

const erfHeaderBytes = 16;

const nameOf = (node: number, port: number): string =>
  isSwitch(topology, node) ? `switch${node}.${port}` : `hca${node}${port === 1 ? '' : `.${port}`}`;

describe.each([
  ['InfiniBand', {}, 89_600, 120_000],
  ['Ethernet', roce, 309_600, 300_000],
] as const)('a capture of all ends of cables of %s', (network, set, cablePs, switchPs) => {
  const isEthernet = network === 'Ethernet';

  it.each(eachPartition)('has each packet at both ends of each cable, in partition %s', async (partition) => {
    const ends = endsIn(await capturedIncast('all', { partition, set }), isEthernet);
    expect(ends.size).toBe(2 * topology.links.length);
    for (const { ends: both } of topology.links)
      for (const [from, to] of [both, both.toReversed()]) {
        const { sent } = ends.get(nameOf(from!.node, from!.port))!;
        const { received } = ends.get(nameOf(to!.node, to!.port))!;
        expect(received.length).toBeGreaterThan(0);
        expect(received).toEqual(sent.map(({ timePs, text }) => ({ timePs: timePs + cablePs, text })));
      }
  });

  it('shows that switches forward what came, no sooner than they can, and add nothing', async () => {
    const ends = endsIn(await capturedIncast('all', { set }), isEthernet);
    for (const node of [4, 5]) {
      const own = [...ends].filter(([name]) => new RegExp(`^switch${node}(\\.|$)`).test(name));
      const received = own.flatMap(([, end]) => end.received);
      const sent = own.flatMap(([, end]) => end.sent);
      // Packets of equal bytes, sent again, would make this ambiguous.
      const firstOf = new Map(received.map((packet) => [packet.text, packet]));
      expect(firstOf.size).toBe(received.length);
      for (const packet of sent)
        expect(packet.timePs - firstOf.get(packet.text)!.timePs).toBeGreaterThanOrEqual(switchPs);
      expect(new Set(sent.map(({ text }) => text)).size).toBe(firstOf.size);
      // No frame is flooded without end; packets of InfiniBand leave once.
      if (!isEthernet) expect(sent.length).toBe(received.length);
    }
  });
});

describe('the ends of a capture', () => {
  it('are single ports, with a direction, and all ports of a node', async () => {
    const file = await capturedIncast([
      { node: 4, port: 2, direction: 'inbound' },
      { node: 5, kind: 'switch' },
    ]);
    const { interfaces, frames } = readCapture(file);
    const ports = topology.links
      .flatMap(({ ends }) => ends.filter(({ node }) => node === 5))
      .map(({ port }) => nameOf(5, port))
      .toSorted();
    expect(interfaces.map(({ name }) => name).toSorted()).toEqual(['switch4.2', ...ports]);
    const at = interfaces.findIndex(({ name }) => name === 'switch4.2');
    expect(
      new Set(frames.filter((frame) => frame.interface === at).map(({ direction }) => direction)),
    ).toEqual(new Set(['inbound']));
    expect(farEndOf(topology, { node: 4, port: 2 })).toBeDefined();
  });

  it.each([
    [{ node: 6 }, /end of a capture is "hca6", expected hca0 to hca3, switch4 to switch5/],
    [{ node: 3, kind: 'switch' }, /end of a capture is "switch3", expected hca0 to hca3, switch4 to switch5/],
    [
      { node: 4, port: 9 },
      /end of a capture is "switch4.9", expected a port with a cable: switch4.1, switch4.2/,
    ],
  ] as const)('are refused if no cable has them: %o', async (end, message) => {
    await expect(capturedIncast([end])).rejects.toThrow(message);
  });
});
