/** Serving HCAs to real guests: see README.md. */

export { adapterArguments } from './qemu-options.ts';
export { renderServeReport } from './render-serve-report.ts';
export { type ServedMachine, serve } from './serve.ts';
export { type ServeOptions, servedProfile } from './serve-options.ts';
export type { ServedNodeReport, ServeReport } from './serve-report.ts';
