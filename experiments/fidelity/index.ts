export {
  bandKey,
  type ErrorBand,
  errorSentence,
  figureKindOf,
  networkOf,
} from './error-band.ts';
