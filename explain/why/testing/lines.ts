/**
 * Prints, as JSON, the source lines that findings name for mistakes of the catalogue. It runs in Node.js itself, whose
 * stacks have the lines of the files. Arguments: names of mistakes.
 */
import { readFileSync } from 'node:fs';
import { Machine } from '../../../machine/index.ts';
import { diagnosedRun } from '../index.ts';
import { mistakes } from './mistakes.ts';

const lines = readFileSync(new URL('./mistakes.ts', import.meta.url), 'utf8').split('\n');

/** The first frame of the catalogue: the scene acts like a library of the program. */
const lineOf = (stack = ''): string | undefined => /testing\/mistakes\.ts:(\d+)/.exec(stack)?.[1];

const found: Record<string, string> = {};
for (const name of process.argv.slice(2)) {
  const { host0, host1, faults } = mistakes.find((mistake) => mistake.name === name)!;
  await using machine = await Machine.create({
    ...(faults === undefined ? {} : { faults }),
    analysis: { evidence: { placeOf: () => lineOf(new Error('place').stack) } },
  });
  await machine.load({ node: 0, name: 'host0', run: host0 });
  await machine.load({ node: 1, name: 'host1', run: host1 });
  const { findings } = await diagnosedRun(machine);
  const { line, mendLine } = findings[0]!;
  found[name] = [line, mendLine].map((number) => lines[Number(number ?? 0) - 1]?.trim() ?? '').join('\n');
}
console.log(JSON.stringify(found));
