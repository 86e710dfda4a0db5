export { cableOf } from './cable.ts';
export {
  crossingOf,
  doublings,
  formulaOf,
  messagingConfigOf,
  type SizeRange,
} from './cutoff.ts';
export type { Way } from './messages.ts';
export { Path } from './path.ts';
export { deregistrationTerms, registrationTerms } from './registration.ts';
export { totalPs } from './terms.ts';
export { readLatency, sendLatency, writeLatency } from './verbs.ts';
export type { WaitingBy } from './waiting.ts';
