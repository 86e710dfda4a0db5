export { type Analysis, analysisOf, attachAnalyser } from './attach.ts';
export {
  type AnalysisChoice,
  addAnalysisOptions,
  analysisOptionsOf,
  analysisText,
  hasErrors,
} from './cli-options.ts';
export { type AnalysisOptions, traceDefaults, traceFileOf } from './options.ts';
