/** All seeded mistakes, by area of the code. */
import { dmaMistakes } from './dma.ts';
import { hostMistakes } from './host.ts';
import type { Mistake } from './mistake.ts';
import { pcieMistakes } from './pcie.ts';
import { reportMistakes } from './report.ts';

export const mistakesByArea: Readonly<Record<string, readonly Mistake[]>> = {
  pcie: pcieMistakes,
  dma: dmaMistakes,
  host: hostMistakes,
  report: reportMistakes,
};

export const allMistakes: readonly Mistake[] = Object.values(mistakesByArea).flat();
