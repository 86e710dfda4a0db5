/**
 * What V8 makes of the fields of hot classes. A field that held small integers and comes to hold a float changes its object's
 * hidden class, and V8 checks classes from then on wherever such objects are used (docs/performance.md).
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

/** A field of small integers becomes one of floats, and where; two threads may write into each other's lines: those are passed by. */
const CHANGE = /:s\{[^}]*\}->d\{[^}]*\}[^[\n]*\[[^[\]\n]* at ([^[\]\n]*)\]/g;
const cli = fileURLToPath(new URL('../system/cli/main.ts', import.meta.url));

it('fields of cycles and counts in the kernel of time and the DMA engines never come to hold floats, in bulk or small messages', () => {
  const changes: string[] = [];
  for (const size of ['65536', '64']) {
    const args = ['--trace-generalization', cli, 'perf', 'write-bw', '--size', size, '--iters', '300'];
    const trace = execFileSync(process.execPath, args, { maxBuffer: 2 ** 28, encoding: 'latin1' });
    for (const [, place] of trace.matchAll(CHANGE)) changes.push(place!);
  }
  // Of others there are some: the trace is what it is taken for.
  expect(changes).not.toEqual([]);
  expect(changes.filter((place) => /\/(sim|hw\/dma)\/[^/]*\.ts:/.test(place))).toEqual([]);
}, 120_000);
