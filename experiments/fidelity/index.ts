export {
  bandKey,
  type ErrorBand,
  errorBandOf,
  errorSentence,
  type FigureKind,
  networkOf,
} from './error-band.ts';
