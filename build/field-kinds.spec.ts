/**
 * What V8 makes of the fields of hot classes. A field that held small integers and comes to hold a float changes its object's
 * hidden class, and V8 checks classes from then on wherever such objects are used (bench/notes/where-the-time-goes.md).
 */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

/** A field of small integers becomes one of floats, and where: file and line. */
const CHANGE = /^\[generalizing\](.*):s\{[^}]*\}->d\{[^}]*\}.*\[.* at file:\/\/(.*):(\d+)\]$/;
const cli = fileURLToPath(new URL('../bin/hca.js', import.meta.url));

/** The module that a line of a built file comes from: the build names each above its text. */
function moduleAt(file: string, line: number): string {
  const above = readFileSync(file, 'utf8').split('\n').slice(0, line);
  return above.findLast((text) => /^\/\/ \S+\.ts$/.test(text))?.slice('// '.length) ?? file;
}

/**
 * Runs `hca perf write-bw` and returns the modules in which fields changed, each with the field.
 *
 * Into a file: Node makes a pipe on standard output one that does not block, and V8, which writes its trace past Node, then
 * loses what a slow reader has no room for and joins the halves of two lines.
 */
function changesOf(sizeBytes: number, folder: string): string[] {
  const file = join(folder, `${sizeBytes}.trace`);
  const args = [
    '--trace-generalization',
    cli,
    'perf',
    'write-bw',
    '--size',
    `${sizeBytes}`,
    '--iters',
    '300',
  ];
  const trace = openSync(file, 'w');
  try {
    execFileSync(process.execPath, args, { stdio: ['ignore', trace, 'inherit'] });
  } finally {
    closeSync(trace);
  }
  const lines = readFileSync(file, 'latin1').split('\n');
  return lines.flatMap((line) => {
    const [, field, place, number] = CHANGE.exec(line) ?? [];
    return place === undefined ? [] : [`${moduleAt(place, Number(number))}: ${field}`];
  });
}

it('fields of cycles and counts in the kernel of time and the DMA engines never come to hold floats, in bulk or small messages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-field-kinds-'));
  try {
    const changes = [65_536, 64].flatMap((sizeBytes) => changesOf(sizeBytes, folder));
    // Of others there are some: the trace is what it is taken for.
    expect(changes.join('\n')).toMatch(/^\w[\w/-]*\.ts: /m);
    expect(changes.filter((place) => /^(sim|hw\/dma)\//.test(place))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 120_000);
