export { type Analysis, analysisOf, attachAnalyser } from './attach.ts';
export { type AnalysisOptions, checkCrossing, traceDefaults, traceFileOf } from './options.ts';
