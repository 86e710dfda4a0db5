/** Self-contained HTML pages: see README.md. */
export { bar, type Html, html, table } from './html.ts';
export {
  foldedSection,
  type PageHead,
  type PageTable,
  pageOf,
  tableSection,
  textSection,
} from './page.ts';
export { reportSections } from './report-sections.ts';
export { type PageReports, reportLink, reportsScript, reportsSection } from './reports.ts';
