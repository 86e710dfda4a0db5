import { expect, test } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { programUrl } from '../../experiments/runs/program-url.ts';
import type { CaptureOptions } from '../analysis/index.ts';
import { Machine } from '../machine.ts';

/** Thirty messages between two hosts: the packets that host 0's end keeps. */
async function keptOf(
  limits: Omit<CaptureOptions, 'ends'>,
): Promise<ReturnType<typeof readCapture>['frames']> {
  const analysis = { capture: { ends: [{ node: 0 }], ...limits } };
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 }, analysis });
  const args = {
    ...{
      verb: 'send',
      isLatency: true,
      sizeBytes: 300,
      iterations: 30,
      qpCount: 1,
      txDepth: 16,
      rxDepth: 16,
    },
    ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  };
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const program = { url: programUrl('perf-latency'), exportName: `latency${role}` };
    await machine.load({ node, name: role, run: program, args });
  }
  await machine.run();
  return readCapture((await machine.capture())!).frames;
}

test('that keeps the latest leaves out a packet that is too long, and keeps shorter ones after it', async () => {
  const all = await keptOf({ sizeBytes: 2 ** 20 });
  const lengths = all.map(({ bytes }) => bytes.length);
  const [longest, shortest] = [Math.max(...lengths), Math.min(...lengths)];
  expect(shortest).toBeLessThan(longest);
  // An entry costs 64 bytes at most in addition to its packet: there is room for one short packet, and for no long one.
  const kept = await keptOf({ sizeBytes: longest - 1, keepsLatest: true });
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.at(-1)).toEqual(all.findLast(({ bytes }) => bytes.length === shortest));
});

test('keeps the first packets that fit, or the latest', async () => {
  const all = await keptOf({ sizeBytes: 2 ** 20 });
  const sizeBytes = 2 ** 12;
  const [first, latest] = [await keptOf({ sizeBytes }), await keptOf({ sizeBytes, keepsLatest: true })];
  expect(first.length).toBeGreaterThan(5);
  expect(first).toEqual(all.slice(0, first.length));
  expect(latest.length).toBeGreaterThan(5);
  expect(latest).toEqual(all.slice(-latest.length));
});
