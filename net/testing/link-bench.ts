/** A host on a cable whose frames the spec writes: shows what the host sends, answers and counts. For specs only. */
import { expect } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { NetStatistics } from '../net-statistics.ts';
import { ms, TestNetwork, type TestOptions } from './machine.ts';

/** RFC 1071, for bytes as hexadecimal digits. */
export function checksumOf(hex: string): string {
  const words = hex.padEnd(Math.ceil(hex.length / 4) * 4, '0').match(/..../g) ?? [];
  const sum = words.reduce((total, word) => total + Number.parseInt(word, 16), 0);
  const folded = (sum % 0x1_0000) + Math.floor(sum / 0x1_0000);
  return (0xffff - ((folded % 0x1_0000) + Math.floor(folded / 0x1_0000))).toString(16).padStart(4, '0');
}

/** A connection of host 0 to an address: 'up' or the errno, and its duration. */
export async function connectTo(
  net: TestNetwork,
  address: number | string,
): Promise<readonly [string, number]> {
  const outcome: [string, number] = ['', 0];
  net.run(0, 'client', async ({ cpu }, calls) => {
    const watch = cpu.stopwatch();
    const fd = await calls.socket(cpu, typeof address === 'string' ? 'AF_INET6' : 'AF_INET');
    try {
      await calls.connect(cpu, fd, { address, port: 4000 });
      outcome[0] = 'up';
    } catch (error) {
      outcome[0] = (error as { readonly code: string }).code;
    }
    outcome[1] = watch.elapsedPs / ms;
  });
  await net.toEnd(ms);
  return outcome;
}

/** Two connected hosts, both up; records the frames of host 1 and the actions of host 0. */
export async function bench(options: TestOptions = {}) {
  const net = new TestNetwork({ asksForNeighbours: true, ...options });
  const frames: string[] = [];
  net.onFrame = (from, frame) => {
    frames.push(`${from} ${toHex(frame)}`);
    return true;
  };
  await net.for(20 * ms);
  const { network, nic } = net.nodes[1]!;
  const before = { ...network.counts };
  return {
    net,
    counts: network.counts,
    stack: network.stack,
    buffers: network.driver.buffers,
    /** Frames of host 1, or of both hosts, each with the host's number before it. */
    sent: () => frames.splice(0).map((frame) => frame.slice(2)),
    crossed: () => frames.splice(0),
    receive: async (...all: string[]) => {
      for (const frame of all) nic.frameArrived(fromHex(frame.padEnd(120, '0')));
      await net.for(5 * ms);
    },
    /** Counters of dropped and answered frames. */
    expectCounts: (expected: Partial<Record<keyof NetStatistics, number>>) => {
      const counted = reasons.map((name) => [name, network.counts[name] - before[name]] as const);
      expect(Object.fromEntries(counted.filter(([, count]) => count !== 0))).toEqual(expected);
    },
  };
}

/** A frame for host 1 is dropped, and counted once under this reason: it gets no answer and keeps no buffer. */
export async function expectDropped(frame: string, reason: keyof NetStatistics): Promise<void> {
  const { sent, receive, expectCounts, buffers } = await bench();
  const held = buffers.taken;
  await receive(frame);
  expect(sent()).toEqual([]);
  expectCounts({ [reason]: 1 });
  expect(buffers.taken).toBe(held);
}

const reasons = [
  ...(['arpRequests', 'arpReplies', 'arpIgnored', 'unresolvedFrames', 'echoReplies'] as const),
  ...(['neighborSolicitations', 'neighborAdvertisements', 'neighborIgnored', 'neighbourProbes'] as const),
  ...(['foreignVlans', 'foreignTypes', 'foreignProtocols', 'foreignDestinations', 'fragments'] as const),
  ...(['badFrames', 'badChecksums', 'droppedForMemory', 'resetsSent', 'unroutable'] as const),
];
