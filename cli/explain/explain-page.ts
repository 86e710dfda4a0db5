/** The page of `hca explain`: the steps as one bar and as a table with their events, and the report of the run. */

import { bar, html, type PageHead, pageOf, reportSections, table } from '../../explain/page/index.ts';
import { timeText } from '../../explain/text/format.ts';
import type { Explanation } from '../../explain/timeline/index.ts';
import type { Report } from '../../machine/index.ts';

const COLOUR_COUNT = 10;

const nsText = (ps: number): string => (ps / 1000).toFixed(3);

export function explainPage(head: PageHead, { latencyPs, steps }: Explanation, report: Report): string {
  const segments = steps.map(({ stage, durationPs }, at) => ({
    name: stage,
    value: durationPs,
    text: timeText(durationPs),
    colour: `c${at % COLOUR_COUNT}`,
  }));
  const rows = steps.flatMap(({ stage, afterPs, durationPs, text, parts = [], events }) => [
    [stage, text, nsText(afterPs), nsText(durationPs), ''],
    ...parts.map((part) => ['', part.text, nsText(part.afterPs), nsText(part.durationPs), part.where]),
    ...events.map((event) => ['', event.text, nsText(event.afterPs), nsText(event.durationPs), event.where]),
  ]);
  const total = steps.reduce((sum, { durationPs }) => sum + durationPs, 0);
  return pageOf(head, [
    html`<h2>Where its time went</h2>
<p>${segments.filter(({ value }) => value > 0).map(({ name, colour, text }) => html`<span class="key"><i class="${colour}"></i>${name} ${text}</span>`)}</p>
${bar(segments, latencyPs)}`,
    table(
      'Step by step',
      // The words precede the figures: a narrow page shows the first columns.
      ['stage', 'what happens', 'after ns', 'lasts ns', 'where'],
      [...rows, ['all steps together', '', nsText(latencyPs), nsText(total), '']],
    ),
    html`<h2>The whole run</h2>`,
    reportSections(report),
  ]);
}
