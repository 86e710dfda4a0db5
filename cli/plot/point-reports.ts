/** The report of each point of a sweep: everything that its run measured. */

import { figureText, type Results, type SweepRow } from '../../experiments/sweep/index.ts';
import { type PageReports, table } from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import { figureTitleOf } from '../../explain/text/titles.ts';
import { titled } from '../../explain/text/words.ts';
import { placeWords } from '../sweep/sweep-summary.ts';

/** More reports make a page slow; the results file has all points. */
const pointsShown = 500;

/** @param first points whose reports the page includes first: those that it draws */
export function pointReports(
  { header: { axes }, rows }: Results,
  first: readonly SweepRow[] = [],
): PageReports {
  const isAll = rows.length <= pointsShown;
  const shown = isAll ? rows : [...new Set([...first, ...rows])].slice(0, pointsShown);
  return {
    title: `Reports of ${isAll ? 'all' : `${pointsShown} of ${countText(rows.length)}`} points`,
    reports: shown.map((row) => {
      const figures = Object.entries(row.figures).map(([name, value]) => [
        titled(figureTitleOf(name)),
        typeof value === 'number' ? figureText(name, value) : String(value),
        name,
      ]);
      const end = row.status === 'done' ? [] : [[row.status, row.error ?? '', '']];
      const title = placeWords(row, axes);
      const section = table(
        `Point ${row.index}, ${title}`,
        ['figure', 'value', 'as hca plot names it'],
        [...end, ...figures],
      );
      return { number: row.index, title, section };
    }),
  };
}
