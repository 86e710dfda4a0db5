import type { Mistake } from './mistake.ts';

export const hostMistakes: readonly Mistake[] = [];
