/** Each point of a sweep, folded: opened, it has all that its run has measured. */
import { foldedSection, type Html, html, table } from '../page/index.ts';
import { figureText, type Results } from '../sweep/index.ts';
import { countText } from '../text/format.ts';
import { placeText } from './sweep-summary.ts';

/** More make a page slow; all points are in the results. */
const pointsShown = 200;

export function pointSections({ header: { axes }, rows }: Results): readonly Html[] {
  if (rows.length === 0) return [];
  const shown = rows.slice(0, pointsShown);
  const title = `Reports of ${shown.length === rows.length ? 'all' : `the first ${pointsShown} of ${countText(rows.length)}`} points`;
  return [
    html`<h2>${title}</h2>`,
    ...shown.map((row) => {
      const figures = Object.entries(row.figures).map(([name, value]) => [
        name,
        typeof value === 'number' ? figureText(name, value) : String(value),
      ]);
      const end = row.status === 'done' ? [] : [[row.status, row.error ?? '']];
      const place = placeText(row, axes, ', ');
      return foldedSection(
        place,
        table(`Point ${row.index}, ${place}`, ['figure', 'value'], [...end, ...figures]),
      );
    }),
  ];
}
