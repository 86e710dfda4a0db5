export { Analyser } from './analyser.ts';
export { parsedCategories, TraceFilter } from './filter.ts';
export { type Finding, findingsTable } from './lint/findings.ts';
export { HostMemoryReader } from './memory.ts';
export { type TraceCategory, traceCategories } from './trace-event.ts';
export { TraceFile, TraceText } from './trace-file.ts';
export { type TraceFormat, traceFormats } from './trace-text.ts';
