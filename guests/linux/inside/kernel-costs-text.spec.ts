import { expect, it } from 'vitest';
import type { ContextCost } from '../../pc/index.ts';
import { kernelCostsText } from './kernel-costs-text.ts';

const cost = (
  kind: ContextCost['kind'],
  name: string | undefined,
  instructions: number,
  entries: number,
) => ({
  ...{ kind, number: 40, name, isDevice: kind === 'interrupt', entries, instructions, loads: 1, stores: 2 },
  configurationAccesses: 0,
  time: {
    ...{
      executingPs: 400 * instructions,
      loadsPs: 0,
      storesPs: 0,
      interruptsPs: 0,
      wakingPs: 0,
      chancePs: 0,
    },
    idlePs: kind === 'kernel' ? 40_000 : 0,
  },
});

it('prints each part, their sum, and the ratio to the simulated host', () => {
  const contexts = [
    cost('user', '/usr/bin/ib_write_lat', 600, 0),
    cost('call', 'ioctl reg_mr 4096 bytes', 300, 2),
    cost('interrupt', undefined, 50, 5),
    cost('kernel', undefined, 50, 0),
  ];
  const comparison = [{ what: 'interrupt of the HCA', count: 5, guestCycles: 1500, modelCycles: 3000 }];
  const text = kernelCostsText({
    ...{ name: 'host0', cyclePs: 400, elapsedPs: 440_000, instructions: 1000, contexts, comparison },
  });
  const lines = text.split('\n');
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
  expect(text).toMatch(/27\.3 % +2 +300 +150 +3 {2}call ioctl reg_mr 4096 bytes/);
  expect(text).toMatch(/9\.1 % +halted/);
  expect(text).toContain('The parts add up: 1,000 instructions, 1,100 cycles.');
  expect(text).toMatch(/1,500 +3,000 +0\.50 {2}interrupt of the HCA/);
});
