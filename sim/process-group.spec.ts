import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { LogicalProcess } from './logical-process.ts';
import { ProcessGroup } from './process-group.ts';

/** Connects two processes in both directions, each with this latency. */
function connect(a: LogicalProcess, b: LogicalProcess, latencyPs: number): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
    from.addOutbound(new ChannelWriter(buffer));
    const reader = new ChannelReader(buffer);
    to.addInbound(reader, latencyPs, (offset) => reader.release(offset));
  }
}

describe('a group of processes', () => {
  it('lets each run until a record can reach it from any other, by any route, or return to it', () => {
    const processes = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => new LogicalProcess(name));
    const [a, b, c, d, e, f] = processes as [
      LogicalProcess,
      LogicalProcess,
      LogicalProcess,
      LogicalProcess,
      LogicalProcess,
      LogicalProcess,
    ];
    // A chain, with a detour from a to c that is longer than the route by b.
    connect(a, b, 10);
    connect(b, c, 25);
    connect(a, c, 50);
    connect(c, d, 7);
    connect(d, e, 3);
    connect(e, f, 40);
    const group = new ProcessGroup(processes);
    group.nextPs.set([100, 200, 1000, 90, 2000, 500]);
    // a: from itself by b, 100 + 20. b: from a, 110. c: from d, 97. d: from itself by e, 96. e: from d, 93. f: from d, 133.
    expect(processes.map((_, index) => group.limitPs(index))).toEqual([120, 110, 97, 96, 93, 133]);
    group.stopPs = 100;
    expect(processes.map((_, index) => group.limitPs(index))).toEqual([100, 100, 97, 96, 93, 100]);
  });
});
