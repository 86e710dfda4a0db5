/**
 * Reports that are folded at the end of a page, each with its number; and ways to open one: a link, or a call of
 * `openReports` in the page's script. A link is a step of the browser's history: the back button returns to the
 * previous place.
 */
import { type Html, html } from './html.ts';

interface PageReport {
  /** Unique on the page. */
  readonly number: number;
  readonly title: string;
  readonly section: Html;
}

export interface PageReports {
  readonly title: string;
  readonly reports: readonly PageReport[];
}

const idOf = (number: number): string => `report-${number}`;

export const reportsSection = ({ title, reports }: PageReports): Html =>
  html`<h2>${title}</h2>${reports.map(
    (each) =>
      html`<details id="${idOf(each.number)}"><summary>${each.title}</summary>${each.section}</details>`,
  )}`;

/**
 * Text that opens a report.
 * @param said description of the target, as a tooltip
 */
export const reportLink = (number: number, text: Html, said = 'opens the report of this point'): Html =>
  html`<a class="opens" href="#${idOf(number)}" title="${said}">${text}</a>`;

/** Script of a page with reports: opens those that a link, an address or a chart names, and scrolls to the first. */
export const reportsScript = `
const reportOf = (number) => document.getElementById('report-' + number);
const showReport = (number) => {
  const report = reportOf(number);
  if (report === null) return;
  report.open = true;
  report.scrollIntoView();
  report.querySelector('summary').focus({ preventScroll: true });
};
const openReports = (numbers) => {
  for (const number of numbers) reportOf(number)?.toggleAttribute('open', true);
  const address = '#report-' + numbers[0];
  // A report that the address already names may have been folded since.
  if (location.hash === address) showReport(numbers[0]);
  else location.hash = address;
};
const showAddressed = () => {
  const [, number] = /^#report-(\\d+)$/.exec(location.hash) ?? [];
  if (number !== undefined) showReport(number);
};
addEventListener('hashchange', showAddressed);
addEventListener('click', (event) => {
  const link = event.target.closest('a.opens');
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openReports(link.dataset.reports?.split(' ') ?? [link.hash.slice('#report-'.length)]);
});
showAddressed();
`;
