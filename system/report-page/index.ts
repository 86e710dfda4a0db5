/** A report as a page. */
export { type PageTable, reportPage } from './report-page.ts';
