/**
 * Operations over switches. Expected times are computed by hand. InfiniBand: 4X QDR, a byte takes 250 ps; a WRITE of n bytes has 8 (LRH) + 12
 * (BTH) + 16 (RETH) + n and pad + 4 (ICRC) + 2 (VCRC) bytes and 2 of framing, an ACK 4 (AETH) instead of RETH and payload; a cable takes 89.6 ns
 * and a switch 120 ns. RoCE v2: 10 Gb/s, 800 ps a byte; 8 (preamble) + 14 + 20 + 8 before the BTH, 4 (FCS) at the end; 309.6 ns and 300 ns.
 */
import { describe, expect, it } from 'vitest';
import { explanationOf } from '../../cli/explain/explain.ts';
import { explanationOfRun } from '../../cli/explain/explanation.ts';
import { loadTraffic } from '../../experiments/runs/fabric-run.ts';
import type { FabricArgs, FabricPattern } from '../../experiments/workloads/index.ts';
import type { PerfArgs } from '../../experiments/workloads/perf-plan.ts';
import { parsedFault } from '../../machine/faults/index.ts';
import type { MachineOptions } from '../../machine/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';

const write = (sizeBytes: number): PerfArgs => ({
  ...{ verb: 'write', isLatency: true, sizeBytes, iterations: 6, qpCount: 1, txDepth: 8, rxDepth: 8 },
  ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
});

const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;
const memory = { 'host.memory.sizeMib': 64 } as const;
const over = (topology: string, set: MachineOptions['set'] = {}): MachineOptions => ({
  topology: parsedTopology(topology),
  set: { ...memory, ...set },
});

type Explained = Awaited<ReturnType<typeof explanationOf>>;

/** The parts of the time on the fabric, which must tile it. */
function partsOf({ steps }: Explained) {
  const remote = steps.find(({ stage }) => stage === 'remote')!;
  const parts = remote.parts!;
  let afterPs = remote.afterPs;
  for (const part of parts) {
    expect(part.afterPs).toBe(afterPs);
    afterPs += part.durationPs;
  }
  expect(afterPs).toBe(remote.afterPs + remote.durationPs);
  return parts;
}

/** Parts on cables and in switches; those at the hosts depend on the cards. */
const onFabric = (explained: Explained): [string, number][] =>
  partsOf(explained).flatMap(({ where, durationPs }) =>
    /→|switch/.test(where) ? [[where, durationPs] as [string, number]] : [],
  );

describe('an operation over InfiniBand switches', () => {
  it('is followed by its first byte through one switch, and back, to the picosecond', async () => {
    const cablePs = 89_600;
    const packetPs = (8 + 12 + 16 + 64 + 4 + 2 + 2) * 250;
    const acknowledgePs = (8 + 12 + 4 + 4 + 2 + 2) * 250;
    expect(onFabric(await explanationOf(over('star:4'), write(64), 3))).toEqual([
      ['hca0 → switch4.1', cablePs],
      ['switch4, port 1 to 2', 120_000],
      ['switch4.2 → hca1', packetPs],
      ['switch4.2 → hca1', cablePs],
      ['hca1 → switch4.2', cablePs],
      ['switch4, port 2 to 1', 120_000],
      ['switch4.1 → hca0', acknowledgePs],
      ['switch4.1 → hca0', cablePs],
    ]);
  });

  it('is followed over a chain of two, in both directions', async () => {
    const explained = await explanationOf(over('dumbbell:2'), write(64), 3);
    expect(onFabric(explained).map(([where]) => where)).toEqual([
      'hca0 → switch2.1',
      'switch2, port 1 to 2',
      'switch2.2 → switch3.2',
      'switch3, port 2 to 1',
      'switch3.1 → hca1',
      'switch3.1 → hca1',
      'hca1 → switch3.1',
      'switch3, port 1 to 2',
      'switch3.2 → switch2.2',
      'switch2, port 2 to 1',
      'switch2.1 → hca0',
      'switch2.1 → hca0',
    ]);
  });
});

/** The far device's parts of a message: what it does, and the wait of the answer for the cable. */
const ofFarDevice = (explained: Explained): Record<string, number> =>
  Object.fromEntries(
    partsOf(explained).flatMap(({ text, durationPs }) =>
      /the answer$|answer waits/.test(text) ? [[text, durationPs]] : [],
    ),
  );

describe('the answer to an operation over switches', () => {
  it.each([
    ['InfiniBand', {}],
    ['Ethernet', roce],
  ] as const)(
    'over %s waits for no cable that is free, and else until the packets before it have left',
    async (_, set) => {
      const alone = ofFarDevice(await explanationOf(over('star:4', set), write(4096), 3));
      const { 'carries it out, and forms the answer': workPs } = alone;
      expect(alone).toEqual({ 'carries it out, and forms the answer': workPs });
      // Both hosts send: an acknowledgement waits for a WRITE of 4096 bytes that is on its cable.
      const met = [2, 3, 4, 5];
      const both = [];
      for (const ordinal of met)
        both.push(ofFarDevice(await inTraffic('ring', over('star:2', set), 0, ordinal)));
      const waits = both.map((parts) => parts['the answer waits for its cable'] ?? 0);
      expect(Math.max(...waits)).toBeGreaterThan(100_000);
      // Its own work is not longer than alone, beyond what the messages before it take at the responder.
      for (const parts of both)
        expect(parts['carries it out, and forms the answer']).toBeGreaterThanOrEqual(workPs! - 10_000);
    },
  );
});

describe('an operation over Ethernet switches', () => {
  it('is followed by its last byte, since frames are stored, to the picosecond', async () => {
    const cablePs = 309_600;
    const framePs = (8 + 14 + 20 + 8 + 12 + 16 + 64 + 4 + 4) * 800;
    // An ACK has 14 + 20 + 8 + 12 + 4 + 4 bytes, more than the 60 of a shortest frame.
    const acknowledgePs = (8 + 14 + 20 + 8 + 12 + 4 + 4 + 4) * 800;
    expect(onFabric(await explanationOf(over('star:4', roce), write(64), 3))).toEqual([
      ['hca0 → switch4.1', framePs],
      ['hca0 → switch4.1', cablePs],
      ['switch4, port 1 to 2', 300_000],
      ['switch4.2 → hca1', framePs],
      ['switch4.2 → hca1', cablePs],
      ['hca1 → switch4.2', acknowledgePs],
      ['hca1 → switch4.2', cablePs],
      ['switch4, port 2 to 1', 300_000],
      ['switch4.1 → hca0', acknowledgePs],
      ['switch4.1 → hca0', cablePs],
    ]);
  });
});

/** Explains a message of a host in the traffic of a fabric. */
const inTraffic = (
  pattern: FabricPattern,
  options: MachineOptions,
  node: number,
  ordinal: number,
  sizeBytes = 4096,
): Promise<Explained> => {
  const hostCount = options.topology!.nodes.filter(({ kind }) => kind === 'host').length;
  const args: FabricArgs = { pattern, verb: 'write', hostCount, sizeBytes, messages: 6, window: 6 };
  const send = { node, ordinal, option: '--explain' };
  return explanationOfRun(options, (machine) => loadTraffic(machine, args), send);
};

describe('a message over a cable with a fault', () => {
  it('whose packet was lost has the time until the packet left again as that, not as a wait for the cable', async () => {
    const lost = { ...over('star:3'), faults: [parsedFault('packet=lost,node=2,to=3,nth=3')] };
    const parts = partsOf(await inTraffic('incast', lost, 2, 2));
    expect(parts[0]!.text).toBe(
      'an earlier copy of the packet was lost or refused (NAK, time-out): until this one leaves',
    );
    const whole = partsOf(await inTraffic('incast', over('star:3'), 2, 2));
    expect(whole[0]!.text).toBe('the packet waits for its cable');
  });

  it('whose packet a fault holds up waits before it leaves; the cable takes 89.6 ns as ever', async () => {
    const late = parsedFault('packet=late,node=5,to=4,chance=100%,delay=1us');
    const explained = await inTraffic('all-to-all', { ...over('dumbbell:4'), faults: [late] }, 3, 0);
    const trunk = partsOf(explained).filter(({ where }) => where === 'switch5.3 → switch4.3');
    expect(trunk.map(({ durationPs }) => durationPs)).toEqual([1_000_000, 89_600]);
    expect(trunk[0]!.text).toBe('a fault, or flow control, holds it up');
  });
});

describe('a message that a switch drops', () => {
  it('has the drop among its events, and the way of the packet that was sent again', async () => {
    const options = over('star:4', {
      ...roce,
      'switch.ethernet.flowControl': 'none',
      'switch.ethernet.bufferKib': 64,
    });
    const explained = await inTraffic('incast', options, 2, 0, 16_384);
    const drops = explained.steps.flatMap(({ events }) =>
      events.filter(({ text }) => text.includes('queueFull')),
    );
    expect(drops.length).toBeGreaterThan(0);
    for (const { where } of drops) expect(where).toBe('switch4 drops');
    partsOf(explained);
  });
});

describe('messages that meet', () => {
  it.each([
    ['InfiniBand', 'star:4', {}],
    ['Ethernet', 'star:4', roce],
    ['InfiniBand, two switches', 'dumbbell:4', {}],
    ['Ethernet, two switches', 'dumbbell:4', roce],
  ] as const)('over %s have parts that tile their time, with their waits', async (_, topology, set) => {
    const explained = await inTraffic('incast', over(topology, set), 2, 4);
    const parts = partsOf(explained);
    expect(explained.node).toBe(2);
    expect(
      parts.some(({ text }) => /^waits for the busy output: packets that leave before it/.test(text)),
    ).toBe(true);
    const [first, last] = [parts[0]!, parts.at(-1)!];
    expect([first.where, last.where]).toEqual(['hca2', 'hca2']);
    expect(parts.some(({ where }) => / → hca0$/.test(where))).toBe(true);
  });

  it('name the credits that a full buffer does not grant', async () => {
    const options = over('dumbbell:8', { 'switch.inputBufferBytes': 8448 });
    const parts = partsOf(await inTraffic('incast', options, 5, 1, 16_384));
    expect(parts.map(({ text }) => text).join('\n')).toMatch(/these wait .* for credits/);
  });

  it('are told apart although the QPs of all receivers have the same number', async () => {
    // Host 0 sends to hosts 1, 2 and 3: with PSNs and QP numbers that are alike.
    for (const ordinal of [12, 13, 14]) {
      const explained = await inTraffic('outcast', over('star:4'), 0, ordinal);
      const hosts = partsOf(explained).flatMap(({ where }) => / → (hca[1-3])$/.exec(where)?.[1] ?? []);
      const answered = partsOf(explained).flatMap(({ where }) => /^(hca[1-3]) → /.exec(where)?.[1] ?? []);
      expect(new Set([...hosts, ...answered]).size).toBe(1);
    }
  });
});
