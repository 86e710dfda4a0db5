/** The page of `hca move`: its own tables above those of the report. */
import { basename } from 'node:path';
import { visible } from '../../base/visible.ts';
import type { Report } from '../machine/report/schema.ts';
import { packageNameAndVersion } from '../package-folder.ts';
import { type PageTable, reportPage } from '../report-page/index.ts';
import { bytesText, timeText } from '../text/format.ts';
import type { MoveArgs, MoveLeg } from '../workloads/move-plan.ts';
import type { CompareRow } from './compare-run.ts';
import { compareCells, compareHead, rateText } from './compare-table.ts';
import type { MoveOptions } from './move.ts';
import { takeaways } from './move-takeaways.ts';

export interface MoveOutcome {
  readonly fileBytes: number;
  readonly legs: readonly (MoveLeg & { readonly received: string; readonly bytesPerSecond: number })[];
  readonly fetchAddTotal: number;
  readonly compareSwapTotal: number;
  readonly atomicCount: number;
  readonly isCorrect: boolean;
}

/** A row for each way in which the file was moved. */
export function movedTable({ file, fileBytes, chunkBytes }: MoveArgs, { legs }: MoveOutcome): PageTable {
  return {
    title: `Moved ${visible(file)} (${bytesText(fileBytes)}) from host 0 to host 1 in chunks of ${bytesText(chunkBytes)}`,
    head: ['by', 'simulated time', 'rate', 'SHA-256 received', 'and sent'],
    rows: legs.map(({ method, startPs, endPs, bytesPerSecond, sha256, received }) => [
      method,
      timeText(endPs - startPs),
      rateText(bytesPerSecond),
      `${received.slice(0, 16)}…`,
      sha256 === received ? 'equal' : 'DIFFERENT',
    ]),
  };
}

/** @param comparison may be empty */
export function movePage(
  args: MoveArgs,
  outcome: MoveOutcome,
  comparison: readonly CompareRow[],
  report: Report,
  { profile, set, chunk, window }: MoveOptions,
): string {
  const changes = [
    ...(profile === undefined ? [] : [`--profile ${profile}`]),
    ...set.map((each) => `--set ${each}`),
  ];
  const compared: PageTable = {
    title:
      'The same bytes by the traditional path and by RDMA; in "a / b", a is host 0, which has the file, and b is host 1',
    head: compareHead(false),
    rows: comparison.map((row) => compareCells(row, false)),
  };
  const { version } = packageNameAndVersion();
  const title = `${basename(args.file)} from host 0 to host 1`;
  const command = ['hca move', visible(args.file), `--chunk ${chunk} --window ${window}`, ...changes].join(
    ' ',
  );
  const tables = [compared, movedTable(args, outcome)];
  return reportPage({ title, command, version, sentences: takeaways(comparison), tables }, report);
}
