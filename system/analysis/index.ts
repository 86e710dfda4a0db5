export { type Analysis, analysisOf, attachAnalyser } from './attach.ts';
export { type AnalysisOptions, type TraceOptions, traceDefaults, traceFileOf } from './options.ts';
