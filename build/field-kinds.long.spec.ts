/**
 * V8's representations of the fields of hot classes. A field that first holds small integers and later a float changes its
 * object's hidden class, and from then on V8 checks classes wherever such objects are used
 * (bench/notes/where-the-time-goes.md).
 */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { builtCheckout } from './checkout.ts';

/** File and line at which a field of small integers becomes a field of floats. */
const CHANGE = /^\[generalizing\](.*):s\{[^}]*\}->d\{[^}]*\}.*\[.* at file:\/\/(.*):(\d+)\]$/;

/** The source module of a line in a built file, by file and line: the build names each above its text. */
function modulesOf(): (file: string, line: number) => string {
  const texts = new Map<string, readonly string[]>();
  return (file, line) => {
    const lines = texts.get(file) ?? readFileSync(file, 'utf8').split('\n');
    texts.set(file, lines);
    for (let above = line - 1; above >= 0; above--)
      if (/^\/\/ \S+\.ts$/.test(lines[above]!)) return lines[above]!.slice('// '.length);
    return file;
  };
}

const urlIn = (folder: string, file: string): string =>
  JSON.stringify(pathToFileURL(join(folder, file)).href);

/**
 * Two runs of `hca perf write-bw` in one process: a field has the same final representation in both. First it reads the stack
 * of an error: V8 then caches the file's line starts, which it otherwise counts again for each of 25,000 lines of its trace.
 */
const runs = (folder: string): string => `
  const { Machine } = await import(${urlIn(folder, 'index.js')});
  await Machine.create({ set: { 'pcie.link.lanes': 3 } }).catch(({ stack }) => stack);
  const { runCommandLine } = await import(${urlIn(folder, 'cli/command-line.js')});
  for (const size of ['65536', '64'])
    await runCommandLine(['perf', 'write-bw', '--size', size, '--iters', '300']);`;

/**
 * The modules in which fields changed in these runs, each with the field.
 *
 * The trace is written to a file: Node makes a pipe on standard output nonblocking, and V8, which bypasses Node for its trace,
 * then loses text for a slow reader and joins the halves of two lines.
 */
function changes(folder: string): string[] {
  const file = join(folder, 'trace');
  const args = ['--trace-generalization', '--input-type=module', '--eval', runs(builtCheckout()!)];
  const trace = openSync(file, 'w');
  try {
    execFileSync(process.execPath, args, { stdio: ['ignore', trace, 'inherit'] });
  } finally {
    closeSync(trace);
  }
  const lines = readFileSync(file, 'latin1').split('\n');
  // Each has printed its table.
  expect(lines.filter((line) => /^ *(65536|64) +300 /.test(line))).toHaveLength(2);
  const moduleAt = modulesOf();
  return lines.flatMap((line) => {
    const [, field, place, number] = CHANGE.exec(line) ?? [];
    return place === undefined ? [] : [`${moduleAt(place, Number(number))}: ${field}`];
  });
}

it('fields of cycles and counts in the kernel of time and the DMA engines never hold floats, in bulk or small messages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-field-kinds-'));
  try {
    const found = changes(folder);
    // Other classes do have some: this proves that the trace works.
    expect(found.join('\n')).toMatch(/^\w[\w/-]*\.ts: /m);
    expect(found.filter((place) => /^(sim|hw\/dma)\//.test(place))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 240_000);
