export { type Analysis, analysisOf, attachAnalyser, type NodeConnections } from './attach.ts';
export { captureFile, droppedOf } from './capture-file.ts';
export {
  type AnalysisOptions,
  type CaptureEnd,
  type CaptureOptions,
  captureDefaults,
  capturedEndAt,
  checkCapture,
  checkCrossing,
  type EvidenceOptions,
  type TraceOptions,
  traceDefaults,
  traceFileOf,
} from './options.ts';
