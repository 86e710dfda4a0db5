/**
 * A program's measurements of registering memory equal those on a ConnectX-3: 30 µs and 1.2 µs a page, and 39 µs for
 * deregistering. The simulated command is included in these times, not added.
 */
import { describe, expect, it, vi } from 'vitest';
import { deregistrationTerms, Path, registrationTerms, totalPs } from '../experiments/model/index.ts';
import { configurationOf } from '../machine/profile/index.ts';
import { expectBalanced } from './expectations.ts';
import { programOf, runPrograms } from './machines.ts';
import type { RegistrationRow } from './programs/registrations.ts';

vi.setConfig({ testTimeout: 120_000 });

/** measurements.csv F-001…F-012 (LITE, SOSP 2017, figure 8): ibv_reg_mr and ibv_dereg_mr in µs. */
const measured: readonly (readonly [pages: number, registerUs: number, deregisterUs: number])[] = [
  [1, 30.15, 39.12],
  [4, 34.64, 39.81],
  [16, 47.78, 40.86],
  [64, 105.4, 44.96],
  [256, 331.7, 58.86],
];
const pages = [1, 2, 3, 4, 8, 16, 32, 64, 100, 256, 512, 1024];

async function rowsWith(set: Readonly<Record<string, string>>): Promise<readonly RegistrationRow[]> {
  const outcome = await runPrograms([programOf('registrations', 'registrar', 0, { args: { pages } })], {
    set,
  });
  expectBalanced(outcome.report);
  return outcome.results[0] as readonly RegistrationRow[];
}

describe.each(['contiguous', 'scattered'])('in %s frames', (framePlacement) => {
  const rows = rowsWith({ 'host.memory.framePlacement': framePlacement });

  it('a registration takes 30 µs + 1.2 µs a page, within 3 %, from 1 to 1024 pages', async () => {
    for (const { pages: count, registerPs } of await rows) {
      const ratio = registerPs / 1e6 / (30 + 1.2 * count);
      expect(Math.abs(ratio - 1), `${count} pages: ${registerPs / 1e6} µs`).toBeLessThan(0.03);
    }
  });

  it('registration and deregistration take as long as on the card, within the 4 % reading error of the figures', async () => {
    const byPages = new Map((await rows).map((row) => [row.pages, row]));
    for (const [count, registerUs, deregisterUs] of measured) {
      const { registerPs, deregisterPs } = byPages.get(count)!;
      expect(Math.abs(registerPs / 1e6 / registerUs - 1), `${count} pages`).toBeLessThan(0.04);
      expect(Math.abs(deregisterPs / 1e6 / deregisterUs - 1), `${count} pages`).toBeLessThan(0.04);
    }
  });

  it('the closed form agrees within 1 %', async () => {
    const path = new Path(configurationOf({}));
    for (const { pages: count, registerPs, deregisterPs } of await rows) {
      const lengthBytes = count * 4096;
      expect(totalPs(registrationTerms(path, lengthBytes)) / registerPs).toBeCloseTo(1, 2);
      expect(totalPs(deregistrationTerms(path, lengthBytes)) / deregisterPs).toBeCloseTo(1, 2);
    }
  });
});
