import type { Mistake } from './mistake.ts';

export const pcieMistakes: readonly Mistake[] = [];
