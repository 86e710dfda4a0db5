/** The page of `hca move`: its own tables, followed by those of the report. */
import { visible } from '../../base/index.ts';
import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import type { MoveArgs, MoveLeg } from '../../experiments/workloads/index.ts';
import {
  type PageHead,
  type PageTable,
  pageOf,
  reportSections,
  tableSection,
} from '../../explain/page/index.ts';
import { bytesText, rateText, timeText } from '../../explain/text/format.ts';
import type { Report } from '../../machine/index.ts';
import { compareCells, compareHead } from '../compare/compare-table.ts';

export interface MoveOutcome {
  readonly fileBytes: number;
  readonly legs: readonly (MoveLeg & { readonly received: string; readonly bytesPerSecond: number })[];
  readonly fetchAddTotal: number;
  readonly compareSwapTotal: number;
  readonly atomicCount: number;
  readonly isCorrect: boolean;
}

/** One row for each way in which the file was moved. @param far the host that gets it */
export function movedTable(
  { file, fileBytes, chunkBytes }: MoveArgs,
  { legs }: MoveOutcome,
  far: number,
): PageTable {
  return {
    title: `Moved ${visible(file)} (${bytesText(fileBytes)}) from host 0 to host ${far} in chunks of ${bytesText(chunkBytes)}`,
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
  head: PageHead,
  args: MoveArgs,
  outcome: MoveOutcome,
  comparison: readonly CompareRow[],
  report: Report,
  far: number,
): string {
  const compared: PageTable = {
    title: `The same bytes by the traditional path and by RDMA; in "a / b", a is host 0, which has the file, and b is host ${far}`,
    head: compareHead(false),
    isTurned: true,
    rows: comparison.map((row) => compareCells(row, false)),
  };
  const tables = [compared, movedTable(args, outcome, far)];
  return pageOf(head, [...tables.map(tableSection), reportSections(report)]);
}
