/**
 * Expected instants are computed by hand. InfiniBand: a UD SEND of n bytes has 8 (LRH) + 12 (BTH) + 8 (DETH) + n + 4 (ICRC) + 2 (VCRC) bytes
 * and 2 of framing; at 4X QDR a byte takes 250 ps; a cable takes 89.6 ns and a switch 120 ns. Ethernet: at 10 Gb/s a byte takes 800 ps; a
 * frame of n bytes has a preamble of 8, an FCS of 4 and a gap of 12; a cable takes 309.6 ns and a switch 300 ns.
 */
import { describe, expect, it } from 'vitest';
import {
  broadcastMac,
  EthernetSwitchBench,
  frameOf,
} from '../../../hw/switch/testing/ethernet-switch-bench.ts';
import { SwitchBench } from '../../../hw/switch/testing/switch-bench.ts';
import { type HopStep, hopSteps, type TimelineKindName } from '../kinds.ts';
import { Stream } from '../stream.ts';
import { mergedTimeline, type TimelineRecord } from '../timeline.ts';
import { watchSwitch } from './switch.ts';

const usPs = 1_000_000;
/** The links are up by then. */
const startPs = 50 * usPs;

/** Records of a bench's switch from now on, by kind. */
function watched({ lp, device }: SwitchBench | EthernetSwitchBench) {
  const stream = new Stream(lp, { categories: ['switches', 'levels', 'checks'] });
  watchSwitch(stream, device);
  return (kind: TimelineKindName): TimelineRecord[] =>
    [...mergedTimeline([stream.collect()], { nodes: [], links: [] }).records()].filter(
      (record) => record.kind === kind,
    );
}

type Step = readonly [step: HopStep, durationPs: number];

/** The steps of each packet in the order of departures: they tile its time in the switch. */
function passagesOf(hops: readonly TimelineRecord[]) {
  const passages = new Map<number, { psn: number; fromPs: number; toPs: number; steps: Step[] }>();
  for (const { values, atPs, durationPs } of hops) {
    const [step, number, , , , , psn] = values as [number, number, number, number, number, number, number];
    const fromPs = Number(atPs) - startPs;
    const passage = passages.get(number) ?? { psn, fromPs, toPs: fromPs, steps: [] };
    expect(passage.toPs).toBe(fromPs);
    passages.set(number, passage);
    passage.toPs += durationPs;
    passage.steps.push([hopSteps[step]!, durationPs]);
  }
  return [...passages].toSorted(([left], [right]) => left - right).map(([, passage]) => passage);
}

describe('a packet in an InfiniBand switch', () => {
  const cablePs = 89_600;
  const switchPs = 120_000;
  const packetPs = (payloadBytes: number): number => (payloadBytes + 34 + 2) * 250;
  const stepsOf = (hops: readonly TimelineRecord[], psn: number): Step[] =>
    passagesOf(hops).find((passage) => passage.psn === psn)!.steps;

  it('finds its output for the latency of the switch, then leaves', async () => {
    const bench = new SwitchBench(2);
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, 2, 2048, 7);
    await bench.runTo(startPs + 10 * usPs);
    expect(passagesOf(records('hop'))).toEqual([
      {
        psn: 7,
        fromPs: cablePs,
        toPs: cablePs + switchPs + packetPs(2048),
        steps: [
          ['forwarding', switchPs],
          ['sending', packetPs(2048)],
        ],
      },
    ]);
    expect(records('queueWait')).toEqual([]);
  });

  it('waits for an output that sends a packet of another input', async () => {
    const bench = new SwitchBench(3);
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, 3, 1024, 1);
    bench.ends[1]!.sendAt(startPs + 1000, 3, 256, 2);
    await bench.runTo(startPs + 10 * usPs);
    expect(stepsOf(records('hop'), 2)).toEqual([
      ['forwarding', switchPs],
      ['output', packetPs(1024) - 1000],
      ['sending', packetPs(256)],
    ]);
    const [wait] = records('queueWait');
    expect([wait!.track.group, wait!.track.name, wait!.durationPs]).toEqual([
      'port 2',
      'input: waits',
      packetPs(1024) - 1000,
    ]);
  });

  it('waits for credits, and the packet after it for its turn', async () => {
    // End 3 consumes nothing at first: its 16,384 bytes of buffer hold three packets of 4096 bytes.
    const bench = new SwitchBench(4);
    const records = watched(bench);
    const { ends } = bench;
    ends[3]!.consumesAtOnce = false;
    ends[0]!.sendAt(startPs, 4, 4096, 0, 4);
    ends[0]!.sendAt(startPs, 3, 256, 50);
    ends[3]!.at(startPs + 30 * usPs, () => ends[3]!.consumeAll());
    await bench.runTo(startPs + 60 * usPs);
    // The packet is ready when its first byte has come; the three before it have left by then, one after another.
    const readyPs = cablePs + switchPs + 3 * packetPs(4096);
    // The credits leave an instant after the buffer is free: 6 bytes and 2 of framing. They count an instant after they have come.
    const creditsPs = 30 * usPs + 1 + 8 * 250 + cablePs + 1;
    expect(stepsOf(records('hop'), 3)).toEqual([
      ['forwarding', switchPs],
      ['credits', creditsPs - readyPs],
      ['sending', packetPs(4096)],
    ]);
    // Its own first byte came when the packet before it had come.
    expect(stepsOf(records('hop'), 50)).toEqual([
      ['forwarding', switchPs],
      ['headOfLine', creditsPs - readyPs - packetPs(4096)],
      ['input', packetPs(4096)],
      ['sending', packetPs(256)],
    ]);
  });

  it('waits for a link that carries credits', async () => {
    const bench = new SwitchBench(3, { wire: { creditReturnBytes: 64 } });
    const records = watched(bench);
    bench.ends[1]!.sendAt(startPs, 3, 0, 1);
    // The packet of end 1 has left, and its buffer is free, 1000 ps before this one is ready to leave to end 1.
    bench.ends[0]!.sendAt(startPs + packetPs(0) + 1000, 2, 0, 2);
    await bench.runTo(startPs + 10 * usPs);
    expect(stepsOf(records('hop'), 2)).toEqual([
      ['forwarding', switchPs],
      ['link', 1 + 8 * 250 - 1000],
      ['sending', packetPs(0)],
    ]);
  });

  it('without a route leaves a record with the reason', async () => {
    const bench = new SwitchBench(2);
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, 7, 256, 9);
    await bench.runTo(startPs + 10 * usPs);
    const [drop, ...others] = records('switchDrop');
    expect([Number(drop!.atPs) - startPs, drop!.values.slice(0, 3), drop!.values[5]]).toEqual([
      cablePs,
      [0, 1, 0],
      9,
    ]);
    expect([others, records('hop')]).toEqual([[], []]);
  });

  it('occupies the input in whole blocks of 64 bytes from its first byte to its last', async () => {
    const bench = new SwitchBench(2);
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, 2, 256);
    await bench.runTo(startPs + 10 * usPs);
    const levels = records('level').filter(({ track }) => track.name === 'port 1: input bytes');
    // 256 + 34 bytes are five blocks.
    expect(levels.slice(-2).map(({ atPs, values }) => [Number(atPs) - startPs, values[0]])).toEqual([
      [cablePs, 320],
      [cablePs + switchPs + packetPs(256), 0],
    ]);
  });
});

describe('a frame in an Ethernet switch', () => {
  const cablePs = 309_600;
  const switchPs = 300_000;
  const framePs = (frameBytes: number): number => (8 + frameBytes + 4) * 800;
  const slotPs = (frameBytes: number): number => framePs(frameBytes) + 12 * 800;

  /** Every end has sent a broadcast, so that the switch knows them. */
  async function benchOf(
    ...options: ConstructorParameters<typeof EthernetSwitchBench>
  ): Promise<EthernetSwitchBench> {
    const bench = new EthernetSwitchBench(...options);
    for (const [from, end] of bench.ends.entries())
      end.sendAt(startPs - 10 * usPs, frameOf({ mac: broadcastMac, from, frameBytes: 60 }));
    await bench.runTo(startPs - usPs);
    return bench;
  }

  it('is stored whole, finds its output, and waits for the frame that came first', async () => {
    const bench = await benchOf(3);
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 2, frameBytes: 1000 }));
    bench.ends[1]!.sendAt(startPs + 5000, frameOf({ from: 1, to: 2, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    const arrivedPs = framePs(1000) + cablePs;
    expect(passagesOf(records('hop')).map(({ fromPs, steps }) => ({ fromPs, steps }))).toEqual([
      {
        fromPs: arrivedPs,
        steps: [
          ['forwarding', switchPs],
          ['sending', slotPs(1000)],
        ],
      },
      {
        fromPs: arrivedPs + 5000,
        steps: [
          ['forwarding', switchPs],
          ['output', slotPs(1000) - 5000],
          ['sending', slotPs(1000)],
        ],
      },
    ]);
    // 1000 bytes and an FCS, twice.
    const bytes = records('level').filter(({ track }) => track.name === 'port 3: queue bytes');
    expect(bytes.map(({ values }) => values[0])).toEqual([1004, 2008, 1004, 0]);
  });

  it('that is cut through finds its output after its first bit; one that is not does after its last', async () => {
    const bench = await benchOf(3, { switch: { forwarding: 'cut-through' } });
    const records = watched(bench);
    bench.ends[0]!.sendAt(startPs, frameOf({ from: 0, to: 2, frameBytes: 1000 }));
    bench.ends[1]!.sendAt(startPs + 5000, frameOf({ from: 1, to: 2, frameBytes: 1000 }));
    await bench.runTo(startPs + 20 * usPs);
    // The second is ready when its last bit has come and the latency has passed, 14.6 ns before the slot of the first
    // ends.
    const waitPs = slotPs(1000) - framePs(1000) - 5000;
    expect(passagesOf(records('hop')).map(({ fromPs, steps }) => ({ fromPs, steps }))).toEqual([
      {
        fromPs: cablePs,
        steps: [
          ['forwarding', switchPs],
          ['sending', slotPs(1000)],
        ],
      },
      {
        fromPs: cablePs + 5000,
        steps: [
          ['storing', framePs(1000)],
          ['forwarding', switchPs],
          ['output', waitPs],
          ['sending', slotPs(1000)],
        ],
      },
    ]);
  });

  it('waits for the end of a pause', async () => {
    const bench = await benchOf(2);
    const records = watched(bench);
    const [from, to] = bench.ends;
    to!.at(startPs, () => to!.port.flowControl.stop(true));
    from!.sendAt(startPs, frameOf({ from: 0, to: 1, frameBytes: 1000 }));
    to!.at(startPs + 20 * usPs, () => to!.port.flowControl.stop(false));
    await bench.runTo(startPs + 60 * usPs);
    const readyPs = framePs(1000) + cablePs + switchPs;
    // The PAUSE frame of 60 bytes that ends it leaves an instant later, and counts an instant after its arrival.
    const endsPs = 20 * usPs + 1 + framePs(60) + cablePs + 1;
    expect(passagesOf(records('hop')).map(({ steps }) => steps)).toEqual([
      [
        ['forwarding', switchPs],
        ['pause', endsPs - readyPs],
        ['sending', slotPs(1000)],
      ],
    ]);
  });

  it('stops the sender of an input whose share of the buffer is full', async () => {
    const bench = await benchOf(3, { switch: { bufferKib: 64 } });
    const records = watched(bench);
    const frames = (from: number) =>
      Array.from({ length: 60 }, () => frameOf({ from, to: 2, frameBytes: 1000 }));
    for (const from of [0, 1]) bench.ends[from]!.sendAt(startPs, ...frames(from));
    await bench.runTo(startPs + 200 * usPs);
    const stopped = records('senderStopped');
    const sent = [1, 2].map((port) => bench.device.ports[port - 1]!.flowControl.totals().sentTransitions);
    expect(stopped.length).toBeGreaterThan(1);
    expect(stopped.length).toBe(sent.reduce((sum, count) => sum + count, 0));
  });

  it('leaves a record where its queue has no room', async () => {
    const bench = await benchOf(3, { switch: { bufferKib: 8, flowControl: 'none', alpha: '1' } });
    const records = watched(bench);
    const frames = (from: number) =>
      Array.from({ length: 10 }, () => frameOf({ from, to: 2, frameBytes: 1000 }));
    for (const from of [0, 1]) bench.ends[from]!.sendAt(startPs, ...frames(from));
    await bench.runTo(startPs + 200 * usPs);
    const drops = records('switchDrop');
    const { queueDrops } = bench.device.statisticsOf(3);
    expect(drops.length).toBe(queueDrops);
    expect(drops.length).toBeGreaterThan(2);
    expect(passagesOf(records('hop'))).toHaveLength(20 - queueDrops);
  });
});
