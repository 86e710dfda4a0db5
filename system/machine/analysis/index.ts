export { type Analysis, analysisOf, attachAnalyser } from './attach.ts';
export { captureFile } from './capture-file.ts';
export {
  type AnalysisOptions,
  checkCapture,
  checkCrossing,
  traceDefaults,
  traceFileOf,
} from './options.ts';
