export { Analyser } from './analyser.ts';
export { parsedCategories, TraceFilter } from './filter.ts';
export type { ConnectionEnd } from './follow/connections.ts';
export { HostMemoryReader } from './host-memory-reader.ts';
export type { Finding } from './lint/findings.ts';
export { type RuleName, rules, type Severity } from './lint/rules.ts';
export { type TraceCategory, traceCategories } from './trace-event.ts';
export { TraceLog } from './trace-log.ts';
export { nsText, type TraceFormat, traceFormats } from './trace-text.ts';
