/**
 * docs/reference/probe-sequence.md: the commands of this project's driver from probe to removal next to those of the stock
 * Linux driver, and why they differ. Our half is traced on the simulated machine whenever the page is generated; Linux's half
 * is a trace of served guests, stored in linux-sequence.json. `npm run docs` writes the page; a spec compares it.
 */
import '../../runtime/node.ts';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { traceDefaults, traceFileOf } from '../../machine/analysis/index.ts';
import { Machine } from '../../machine/index.ts';
import {
  type SequenceRow,
  type SequenceStep,
  sideBySide,
  stepsOfTrace,
  stepText,
} from './command-sequence.ts';
import recorded from './linux-sequence.json' with { type: 'json' };

const start = '<!-- sequence -->';
const end = '<!-- /sequence -->';
const page = new URL('../../docs/reference/probe-sequence.md', import.meta.url);

interface LinuxSequence {
  readonly kernels: readonly string[];
  readonly how: string;
  readonly steps: readonly SequenceStep[];
}

export const linuxSequence = (): LinuxSequence => recorded as unknown as LinuxSequence;

/** Probes and removes our driver on a separate machine. @returns its commands, folded */
export async function ourSequence(): Promise<SequenceStep[]> {
  const folder = mkdtempSync(join(tmpdir(), 'hca-sequence-'));
  const file = join(folder, 'probe.log');
  try {
    const trace = { ...traceDefaults, categories: ['commands'], file } as const;
    const machine = await Machine.create({ set: { 'host.memory.sizeMib': 64 }, analysis: { trace } });
    await machine.run();
    await machine.removeDrivers();
    await machine.close();
    return stepsOfTrace(readFileSync(traceFileOf(file, 'host0'), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Number of the explanation below the table, by the subject of a row; rows that agree have none. */
export function noteOf({ left, right }: SequenceRow): number | undefined {
  const step = left ?? right!;
  const isPaired = left !== undefined && right !== undefined;
  switch (step.command) {
    case 'MAP_FA':
    case 'MAP_ICM_AUX':
      return isPaired && left.inputModifiers[0] === right.inputModifiers[0] ? undefined : 1;
    case 'MAP_ICM':
    case 'UNMAP_ICM':
      if (isPaired) return left.count === right.count ? undefined : 2;
      return 6;
    case 'SW2HW_EQ':
    case 'HW2SW_EQ':
      return isPaired && left.count === right.count ? undefined : 3;
    case 'MAD_IFC':
      return isPaired && left.count === right.count ? undefined : 4;
    case 'DIAG_RPRT':
      return isPaired ? undefined : 5;
    case 'SET_PORT':
      return isPaired ? undefined : 7;
    case 'CLOSE_PORT':
      return isPaired ? undefined : 8;
    default:
      return isPaired ? undefined : 6;
  }
}

/** The table of the page. */
export function sequenceTable(linux: readonly SequenceStep[], ours: readonly SequenceStep[]): string {
  const cell = (step: SequenceStep | undefined): string =>
    step === undefined ? '' : `\`${stepText(step)}\``;
  const rows = sideBySide(linux, ours).map(
    (row) => `| ${cell(row.left)} | ${cell(row.right)} | ${noteOf(row) ?? ''} |`,
  );
  return ['| Linux | this driver | note |', '|---|---|---|', ...rows].join('\n');
}

/** The page with the table put between its marks. */
export function pageWith(table: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename)
  writeFileSync(page, pageWith(sequenceTable(linuxSequence().steps, await ourSequence()), readPage()));
