export { CardBench, type CardFit, type Order, orderKey } from './card-bench.ts';
export {
  cardCases,
  cardFits,
  type FoldResult,
  foldResult,
  passesPreset,
  probeCount,
  searchCount,
  together,
  type ValueResult,
  valueResults,
} from './cross-validation.ts';
export { type Fold, foldsOf } from './folds.ts';
export { crossValidationSection, type KeptCrossValidation } from './section.ts';
export { crossValidationSentences, foldTable, valueTable } from './shown.ts';
