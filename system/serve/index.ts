/** Serving HCAs to real guests: see README.md. */

export { renderServeReport } from './render-serve-report.ts';
export { type ServedMachine, type ServeListeners, serve } from './serve.ts';
export { type ServeOptions, servedProfile } from './serve-options.ts';
export {
  type ServedInterruptRow,
  type ServedNodeReport,
  type ServeReport,
  serveReportSchema,
} from './serve-report.ts';
