import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { LogicalProcess } from './logical-process.ts';
import { DeadlockError, ProcessFailedError, RunAbortedError } from './run-errors.ts';
import { SingleRunner } from './single-runner.ts';
import { Toy, toyConfigs } from './toy-process.ts';

const DRAIN_PS = 1_000_000;

function start(...args: Parameters<typeof toyConfigs>): { toys: Toy[]; runner: SingleRunner } {
  const toys = toyConfigs(...args).map((config) => new Toy(config));
  for (const toy of toys) toy.start();
  return { toys, runner: new SingleRunner(toys.map((toy) => toy.process)) };
}

const digestsOf = (toys: readonly Toy[]): string[] => toys.map((toy) => toy.digest);

/** Two processes that answer one another's records after `latencyPs`, and the instants at which they did. */
function pair(latencyPs: number, pause?: () => Promise<void> | undefined) {
  const instants: number[] = [];
  const buffers = [0, 1].map(() => new SharedArrayBuffer(channelBufferBytes(4096)));
  const processes = ['left', 'right'].map((name) => new LogicalProcess(name));
  const writers = buffers.map((buffer) => new ChannelWriter(buffer));
  processes.forEach((process, index) => {
    const writer = writers[index]!;
    const reader = new ChannelReader(buffers[1 - index]!);
    process.addOutbound(writer);
    process.addInbound(reader, latencyPs, (offset) => {
      instants.push(process.nowPs);
      const leftCount = reader.words[(offset >> 2) + 4]!;
      reader.release(offset);
      if (leftCount === 0) return;
      const answer = writer.append(process.nowPs + latencyPs, 1, 0);
      writer.words[(answer >> 2) + 4] = leftCount - 1;
    });
  });
  return { processes, writers, instants, runner: new SingleRunner(processes, pause) };
}

describe('single runner', () => {
  it('delivers every record at its instant', async () => {
    const { processes, writers, instants, runner } = pair(150);
    const serve = processes[0]!.queue.addHandler(() => {
      const offset = writers[0]!.append(1000 + 150, 1, 0);
      writers[0]!.words[(offset >> 2) + 4] = 3;
    });
    processes[0]!.queue.schedule(1000, serve);
    await runner.runTo(10_000);
    expect(instants).toEqual([1150, 1300, 1450, 1600]);
    expect(processes.map(({ nowPs }) => nowPs)).toEqual([10_000, 10_000]);
  });

  /** Ten thousand records back and forth, each of which needs a turn. */
  function volley(pause: () => Promise<void> | undefined) {
    const { processes, writers, instants, runner } = pair(150, pause);
    const serve = processes[0]!.queue.addHandler(() => {
      const offset = writers[0]!.append(1000 + 150, 1, 0);
      writers[0]!.words[(offset >> 2) + 4] = 10_000;
    });
    processes[0]!.queue.schedule(1000, serve);
    return { instants, runner };
  }

  it('pauses every thousand turns or so within one run, without an effect on results', async () => {
    let pauseCount = 0;
    const paused = volley(() => (pauseCount++ % 2 === 0 ? Promise.resolve() : undefined));
    const plain = volley(() => undefined);
    for (const { runner } of [paused, plain]) await runner.runTo(1e9);
    expect(paused.instants).toEqual(plain.instants);
    expect(pauseCount).toBe(1 + Math.floor(paused.runner.turnCount / 1024));
    expect(pauseCount).toBeGreaterThan(9);
  });

  it('ends a cancelled run at its next pause, and runs no more', async () => {
    const { instants, runner } = volley(() => {
      if (runner.turnCount > 5000) runner.abort('enough');
      return undefined;
    });
    await expect(runner.runTo(1e9)).rejects.toThrow('enough');
    expect(instants.length).toBeLessThan(7000);
    await expect(runner.runTo(1e9)).rejects.toBeInstanceOf(RunAbortedError);
  });

  it('executes what is due strictly before the limit, and stops at it', async () => {
    const { processes, runner } = pair(150);
    const ran: number[] = [];
    const note = processes[1]!.queue.addHandler((a) => ran.push(a));
    for (const atPs of [99, 100, 101]) processes[1]!.queue.schedule(atPs, note, atPs);
    expect(await runner.runTo(100)).toEqual({ reason: 'limit', stoppedPs: 100 });
    expect(ran).toEqual([99]);
    await runner.runTo(101);
    expect(ran).toEqual([99, 100]);
    expect(runner.nowPs).toBe(101);
  });

  it('passes a second of silence in a few turns', async () => {
    const { processes, runner } = pair(150);
    for (const [index, atPs] of [10, 1e12].entries()) {
      const { queue } = processes[index]!;
      queue.schedule(
        atPs,
        queue.addHandler(() => undefined),
      );
    }
    await runner.runTo(2e12);
    expect(runner.turnCount).toBe(2);
  });

  it('gives the same run when it is cut into pieces', async () => {
    const whole = start(1);
    const outcome = await whole.runner.runUntilEnded(DRAIN_PS);
    expect(outcome.reason).toBe('ended');
    const pieces = start(1);
    for (let limitPs = 0; limitPs < outcome.stoppedPs; limitPs += 1_234_567)
      await pieces.runner.runTo(limitPs);
    await pieces.runner.runTo(outcome.stoppedPs);
    expect(digestsOf(pieces.toys)).toEqual(digestsOf(whole.toys));
    const other = start(2);
    await other.runner.runUntilEnded(DRAIN_PS);
    expect(digestsOf(other.toys)).not.toEqual(digestsOf(whole.toys));
  });

  it('stops a drain after the last end, even if that drain is shorter than any latency', async () => {
    for (const drainPs of [1, 1000, DRAIN_PS, 50_000_000]) {
      const { toys, runner } = start(3);
      const { reason, stoppedPs } = await runner.runUntilEnded(drainPs);
      const lastEndPs = Math.max(...toys.map(({ process }) => process.endedPs));
      expect({ reason, stoppedPs }).toEqual({ reason: 'ended', stoppedPs: lastEndPs + drainPs });
      expect(toys.map(({ process }) => process.nowPs)).toEqual(toys.map(() => stoppedPs));
    }
  });

  it('stops at the limit if programs have not ended by then, and can continue', async () => {
    const whole = start(1);
    await whole.runner.runUntilEnded(DRAIN_PS);
    const { toys, runner } = start(1);
    expect(await runner.runUntilEnded(DRAIN_PS, 5_000_000)).toEqual({
      reason: 'limit',
      stoppedPs: 5_000_000,
    });
    expect((await runner.runUntilEnded(DRAIN_PS)).reason).toBe('ended');
    expect(digestsOf(toys)).toEqual(digestsOf(whole.toys));
  });

  it('only drains if it has no members', async () => {
    const { runner } = pair(150);
    await runner.runTo(500);
    expect(await runner.runUntilEnded(70)).toEqual({ reason: 'ended', stoppedPs: 570 });
  });

  it('names the waiting programs, and since when, when nothing is left to do', async () => {
    const { toys, runner } = start(1, { ending: 'silence' });
    const thrown = await runner.runUntilEnded(DRAIN_PS).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(DeadlockError);
    const expected = toys.slice(0, 3).map(({ process: { name, nowPs } }) => ({ name, instantPs: nowPs }));
    expect((thrown as DeadlockError).waiting).toEqual(expected);
    await expect(runner.runTo(1e12)).rejects.toBe(thrown);
  });

  it('finds a deadlock before a limit as well', async () => {
    const { runner } = start(1, { ending: 'silence' });
    await expect(runner.runUntilEnded(DRAIN_PS, 1e15)).rejects.toThrow(DeadlockError);
  });

  it('fails with the name and instant of the process whose program threw', async () => {
    const { toys, runner } = start(1, { ending: 'throw' });
    const thrown = (await runner
      .runUntilEnded(DRAIN_PS)
      .catch((error: unknown) => error)) as ProcessFailedError;
    expect(thrown).toBeInstanceOf(ProcessFailedError);
    const failed = toys.find(({ process }) => process.name === thrown.processName)!;
    expect(thrown.instantPs).toBe(failed.process.nowPs);
    expect(thrown.cause).toBeInstanceOf(TypeError);
    expect(thrown.message).toContain('TypeError: the toy broke');
  });

  it('fails with the name and instant of the process whose event threw', async () => {
    const { processes, runner } = pair(150);
    const fail = processes[1]!.queue.addHandler(() => {
      throw new RangeError('no');
    });
    processes[1]!.queue.schedule(777, fail);
    await expect(runner.runTo(1000)).rejects.toThrow('right failed at 777 ps: RangeError: no');
  });

  it('rejects invalid limits and drains, and channels that lead nowhere', async () => {
    const { processes, runner } = pair(150);
    await runner.runTo(100);
    for (const limitPs of [99, 100.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(runner.runTo(limitPs)).rejects.toThrow('limitPs is');
    }
    for (const drainPs of [0, -1, 0.5])
      await expect(runner.runUntilEnded(drainPs)).rejects.toThrow('drainPs is');
    expect(() => new SingleRunner(processes.slice(0, 1))).toThrow('channel of left is "open"');
    expect(() => new SingleRunner([])).toThrow('number of logical processes is 0');
  });

  it('delivers records that a process sends to itself, at their time', async () => {
    const self = new LogicalProcess('self');
    const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
    const writer = new ChannelWriter(buffer);
    const reader = new ChannelReader(buffer);
    const deliveredPs: number[] = [];
    self.addOutbound(writer);
    self.addInbound(reader, 150, (offset) => {
      deliveredPs.push(self.nowPs);
      reader.release(offset);
      if (deliveredPs.length < 5) writer.append(self.nowPs + 150, 1, 0);
    });
    self.queue.schedule(
      100,
      self.queue.addHandler(() => void writer.append(400, 1, 0)),
    );
    await new SingleRunner([self]).runTo(10_000);
    expect(deliveredPs).toEqual([400, 550, 700, 850, 1000]);
  });
});
