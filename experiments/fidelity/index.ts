export {
  bandKey,
  type ErrorBand,
  errorSentence,
  type FigureKind,
  networkOf,
} from './error-band.ts';
