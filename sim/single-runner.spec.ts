import { describe, expect, it } from 'vitest';
import { DeadlockError, ProcessFailedError } from './run-errors.ts';
import { SingleRunner } from './single-runner.ts';
import { Toy, toyConfigs } from './toy-process.ts';

function toys(...args: Parameters<typeof toyConfigs>): { toys: Toy[]; runner: SingleRunner } {
  const built = toyConfigs(...args).map((config) => new Toy(config));
  for (const toy of built) toy.start();
  return { toys: built, runner: new SingleRunner(built.map((toy) => toy.process)) };
}

const digests = (built: readonly Toy[]): string[] => built.map((toy) => toy.digest);

describe('single runner', () => {
  it('gives the same run however it is cut into pieces', async () => {
    const whole = toys(1);
    const outcome = await whole.runner.runUntilEnded(2_000_000);
    expect(outcome.reason).toBe('ended');
    const pieces = toys(1);
    for (let limitPs = 0; limitPs < outcome.stoppedPs; limitPs += 1_234_567)
      await pieces.runner.runTo(limitPs);
    await pieces.runner.runTo(outcome.stoppedPs);
    console.log(digests(whole.toys), whole.runner.turnCount);
    expect(digests(pieces.toys)).toEqual(digests(whole.toys));
  });

  it('fails with a deadlock', async () => {
    const { runner } = toys(1, { ending: 'silence' });
    await expect(runner.runUntilEnded(1000)).rejects.toThrow(DeadlockError);
  });
  it('fails with a throw', async () => {
    const { runner } = toys(1, { ending: 'throw' });
    await expect(runner.runUntilEnded(1000)).rejects.toThrow(ProcessFailedError);
  });
});
