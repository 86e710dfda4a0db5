import type { Mistake } from './mistake.ts';

export const reportMistakes: readonly Mistake[] = [];
