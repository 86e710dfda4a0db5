/** Stories that have found something: nothing is found in them any more, whatever a seed draws. */
import { expect, it, vi } from 'vitest';
import type { FabricFlow, FabricStory } from './fabric-story.ts';
import { playFabricStory } from './play-fabric.ts';

vi.setConfig({ testTimeout: 240_000 });

const flow = (
  kind: FabricFlow['kind'],
  from: number,
  sizeBytes: number,
  messages: number,
  window: number,
): FabricFlow => ({ kind, from, to: 0, sizeBytes, messages, window });

const memory = { 'host.memory.sizeMib': 64 };

const found: Readonly<Record<string, Omit<FabricStory, 'cables' | 'faults'>>> = {
  'the wait of a cable for credits is the same whatever the order within an instant': {
    seed: 4098,
    fabric: 'ring:8',
    set: {
      ...memory,
      ...{ 'switch.inputBufferBytes': 12_288, 'switch.latencyNs': 1, 'switch.hoqLife': 14 },
      ...{ 'wire.speed': 'FDR', 'wire.lanes': '1', 'wire.cableMetres': 30 },
    },
    flows: [
      flow('read', 7, 1024, 1, 6),
      flow('datagram', 1, 1649, 7, 5),
      flow('datagram', 1, 1745, 11, 7),
      flow('read', 6, 64, 13, 2),
      flow('write', 3, 65_536, 6, 8),
      flow('datagram', 1, 615, 14, 7),
      flow('send', 5, 4096, 24, 2),
    ],
    again: { partition: 'single', shuffleSeed: 727, isPlain: true, epochPs: 2_030_000_000 },
  },
  'the most packets that wait at an input are the same whatever the order within an instant': {
    seed: 1040,
    fabric: 'leaf-spine:3x2:4',
    set: {
      ...memory,
      ...{ 'machine.routing': 'up-down', 'switch.forwarding': 'store-and-forward' },
      ...{ 'switch.inputBufferBytes': 32_768, 'switch.latencyNs': 1, 'switch.hoqLife': 18 },
      ...{ 'wire.speed': 'QDR', 'wire.lanes': '4', 'wire.cableMetres': 2 },
    },
    flows: [
      flow('read', 3, 4096, 24, 4),
      { ...flow('group', 2, 854, 7, 3), to: 2 },
      flow('send', 3, 20_000, 14, 4),
      flow('send', 3, 65_536, 1, 1),
    ],
    again: { partition: 'single', shuffleSeed: 641 },
  },
  'packets of a static rate leave at the same instants whatever the epochs': {
    seed: 7_800_000_086,
    fabric: 'star:2',
    set: { ...memory, 'hca.capability.staticRates': true, 'wire.speed': 'SDR' },
    flows: [{ ...flow('write', 1, 65_536, 7, 5), rate: 2 }],
    again: { partition: 'single', shuffleSeed: undefined, epochPs: 100_000_000 },
  },
};

it.each(Object.entries(found))('%s', async (_, story) => {
  expect((await playFabricStory({ ...story, cables: [], faults: [] })).findings).toEqual([]);
});
