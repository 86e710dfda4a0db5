import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { LogicalProcess } from './logical-process.ts';
import { ProcessFailedError } from './run-errors.ts';
import { type ProgramStep, SteppedRunner } from './stepped-runner.ts';

const LATENCY_PS = 150;

/** Two processes; a record with count n from the left one is answered n times; and all instants. */
function pair() {
  const instants: number[] = [];
  const buffers = [0, 1].map(() => new SharedArrayBuffer(channelBufferBytes(4096)));
  const processes = ['left', 'right'].map((name) => new LogicalProcess(name));
  const writers = buffers.map((buffer) => new ChannelWriter(buffer));
  const send = (from: number, count: number): void => {
    const offset = writers[from]!.append(processes[from]!.nowPs + LATENCY_PS, 1, 0);
    writers[from]!.words[(offset >> 2) + 4] = count;
  };
  processes.forEach((process, index) => {
    const reader = new ChannelReader(buffers[1 - index]!);
    process.addOutbound(writers[index]!);
    process.addInbound(reader, LATENCY_PS, (offset) => {
      instants.push(process.nowPs);
      const count = reader.words[(offset >> 2) + 4]!;
      reader.release(offset);
      if (count > 0) send(index, count - 1);
    });
  });
  return { processes, instants, send, runner: new SteppedRunner(processes) };
}

describe('stepped runner', () => {
  it('carries out outside actions from the common instant on', () => {
    const { processes, instants, send, runner } = pair();
    runner.runTo(1000);
    expect(processes.map(({ nowPs }) => nowPs)).toEqual([1000, 1000]);
    send(0, 2);
    runner.touched();
    expect(runner.nextPs).toBe(1150);
    runner.runTo(1300);
    expect(instants).toEqual([1150]);
    send(1, 0);
    runner.touched();
    runner.runTo(5000);
    // 1300: the answer; 1450: the answer to that, and the record sent from outside at 1300.
    expect(instants).toEqual([1150, 1300, 1450, 1450]);
    expect(runner.nextPs).toBe(Number.POSITIVE_INFINITY);
    expect(runner.nowPs).toBe(5000);
  });

  it('does nothing for a past limit', () => {
    const { runner } = pair();
    runner.runTo(1000);
    runner.runTo(400);
    expect(runner.nowPs).toBe(1000);
  });

  it('gives the same run in any steps', () => {
    const run = (stepPs: number): number[] => {
      const { processes, instants, send, runner } = pair();
      const start = processes[0]!.queue.addHandler((count) => send(0, count));
      for (const [atPs, count] of [
        [10, 40],
        [333, 7],
        [5000, 90],
      ] as const)
        processes[0]!.queue.schedule(atPs, start, count);
      runner.touched();
      for (let atPs = stepPs; atPs < 100_000 + stepPs; atPs += stepPs) runner.runTo(atPs);
      return instants.toSorted((left, right) => left - right);
    };
    const reference = run(100_000);
    // One record and its answers each.
    expect(reference).toHaveLength(41 + 8 + 91);
    for (const stepPs of [1, 97, 150, 1000, 7777]) expect(run(stepPs)).toEqual(reference);
  });

  it('names the code that threw and the instant, and does so again', () => {
    const { processes, runner } = pair();
    const fail = processes[1]!.queue.addHandler(() => {
      throw new TypeError('broken');
    });
    processes[1]!.queue.schedule(700, fail);
    runner.touched();
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(() => runner.runTo(1000)).toThrow(ProcessFailedError);
      expect(() => runner.runTo(1000)).toThrow(/right failed at 700 ps: TypeError: broken/);
    }
  });

  it('requires every channel to end in it', () => {
    const process = new LogicalProcess('alone');
    process.addOutbound(new ChannelWriter(new SharedArrayBuffer(channelBufferBytes(4096))));
    expect(() => new SteppedRunner([process])).toThrow(/channel of alone/);
  });

  it('makes the caller bring programs to their next wait, at a fixed instant', () => {
    const { processes, instants, send } = pair();
    const steps: string[] = [];
    const runner = new SteppedRunner(processes, (process) => {
      steps.push(`${process.name} at ${process.nowPs}`);
      process.runningProgramCount = 0;
      send(1, 0);
    });
    const resume = processes[1]!.queue.addHandler(() => {
      processes[1]!.runningProgramCount++;
    });
    processes[1]!.queue.schedule(700, resume);
    runner.touched();
    runner.runTo(2000);
    expect([steps, instants]).toEqual([['right at 700'], [850]]);
  });

  it('ends with a program’s error, and rejects programs that the caller cannot continue', () => {
    for (const isStepped of [true, false]) {
      const { processes } = pair();
      const failure = new RangeError('of the program');
      const step: ProgramStep = (process) => {
        process.runningProgramCount = 0;
        process.failure = failure;
      };
      const runner = isStepped ? new SteppedRunner(processes, step) : new SteppedRunner(processes);
      const resume = processes[0]!.queue.addHandler(() => {
        processes[0]!.runningProgramCount++;
      });
      processes[0]!.queue.schedule(10, resume);
      runner.touched();
      const expected = isStepped ? 'RangeError: of the program' : 'programs of left';
      expect(() => runner.runTo(1000)).toThrow(expected);
      expect(() => runner.runTo(1000)).toThrow(expected);
    }
  });
});
