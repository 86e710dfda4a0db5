/** Changes from one output to another: see README.md. */
export { checkedOutput, type Output } from './output.ts';
export { type FigureChange, type ReportDiff, reportDiff } from './report-diff.ts';
export type { RequestChange } from './request.ts';
export { parsedTolerance, type Tolerance } from './tolerance.ts';
