import { expect, it } from 'vitest';
import { outsideOfMicrotasks } from '../base/index.ts';
import { runMicrotasks } from './microtasks.ts';

it('runs a whole chain of async functions within a call, and reports it', async () => {
  const steps: string[] = [];
  await outsideOfMicrotasks(() => {
    let goOn: () => void = () => {};
    const program = async (): Promise<void> => {
      for (let turn = 0; turn < 3; turn++) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        await null;
        steps.push(`turn ${turn}`);
      }
    };
    void program();
    for (let turn = 0; turn < 3; turn++) {
      goOn();
      steps.push(`resumed ${turn}`);
      expect(runMicrotasks()).toBe(true);
    }
  });
  expect(steps).toEqual(['resumed 0', 'turn 0', 'resumed 1', 'turn 1', 'resumed 2', 'turn 2']);
});

it('reports that it did nothing if a callback of a promise calls it', async () => {
  await null;
  expect(runMicrotasks()).toBe(false);
});

it('passes on errors thrown outside', async () => {
  const thrown = new Error('broken');
  await expect(outsideOfMicrotasks(() => Promise.reject(thrown))).rejects.toBe(thrown);
  await expect(
    outsideOfMicrotasks(() => {
      throw thrown;
    }),
  ).rejects.toBe(thrown);
});
