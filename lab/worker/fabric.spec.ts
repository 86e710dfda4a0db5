/**
 * "A fabric": a cable sends for as long as the bytes of its packets take, and queues fill no buffer beyond its size. Times are computed by
 * hand. InfiniBand: a packet of a WRITE has 8 (LRH) + 12 (BTH) + 4 (ICRC) + 2 (VCRC) bytes and 2 of framing beside its payload, the first
 * one of a message 16 more (RETH); at 4X QDR a byte takes 250 ps.
 */
import { expect, it } from 'vitest';
import { sharedTime } from '../page/fabric-moment.ts';
import { levelAt } from '../page/moment.ts';
import type { FabricQuestion } from '../protocol.ts';
import { fabric } from './fabric.ts';

const question: FabricQuestion = {
  machine: { profile: 'connectx3-qdr', set: {}, seed: 1 },
  network: 'infiniband',
  topology: 'star:3',
  pattern: 'incast',
  sizeBytes: 65_536,
  messages: 4,
};
const messagePs = (16 * (4096 + 28) + 16) * 250;

it('the cable of the receiver sends as long as its packets take, and the inputs of the switch hold what waits', async () => {
  const picture = await fabric(question);
  const { directions, queues, gaugeBytes, toPs, flows, losses, isEqual, isBalanced, layout } = picture;
  expect([isEqual, isBalanced, losses, flows.length, layout.boxes.length]).toEqual([true, true, [], 2, 4]);
  const sent = (from: number, to: number): number => {
    const { sends } = directions.find((each) => each.from.node === from && each.to.node === to)!;
    return sharedTime(sends, 0, toPs);
  };
  expect(sent(1, 3)).toBe(4 * messagePs);
  expect(sent(2, 3)).toBe(4 * messagePs);
  expect(sent(3, 0)).toBe(8 * messagePs);
  for (const { port, steps, mostBytes } of queues) {
    expect(mostBytes, `port ${port}`).toBeLessThanOrEqual(gaugeBytes);
    expect(steps[0]![0]).toBe(0);
  }
  // Two senders fill the buffers of their inputs; nothing but acknowledgements comes from the receiver.
  const most = (port: number): number => queues.find((each) => each.port === port)!.mostBytes;
  expect(most(2)).toBeGreaterThan(3 * 4096);
  expect(most(1)).toBeLessThanOrEqual(64);
  const [waiting] = queues.filter(({ port }) => port === 2);
  expect(levelAt(waiting!, toPs / 2)).toBeGreaterThan(4096);
});

it('frames of Ethernet wait in the queue of the output', async () => {
  const { queues, gaugeBytes, isEqual, isBalanced } = await fabric({ ...question, network: 'roce-v2' });
  expect([isEqual, isBalanced]).toEqual([true, true]);
  const fullest = queues.find(({ mostBytes }) => mostBytes === gaugeBytes)!;
  expect([fullest.node, fullest.port, fullest.name]).toEqual([3, 1, 'port 1: queue bytes']);
});

it.each([
  ['messages of all flows', { messages: 10_001, sizeBytes: 1 }],
  ['bytes of all flows', { messages: 1000 }],
  ['topology', { topology: 'star:one' }],
])('too much traffic and a wrong topology are refused: %s', async (name, changes) => {
  await expect(fabric({ ...question, ...changes })).rejects.toThrow(name);
});
