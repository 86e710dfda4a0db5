export {
  crossingOf,
  cutoffOf,
  doublings,
  formulaOf,
  type LatencyOf,
  messagingConfigOf,
  type SizeRange,
} from './cutoff.ts';
export { type MessagePlan, messageTerms, type Way } from './messages.ts';
export { Path, type Post } from './path.ts';
export { deregistrationTerms, registrationTerms } from './registration.ts';
export { type Term, type Terms, totalPs } from './terms.ts';
export { readLatency, sendLatency, writeLatency } from './verbs.ts';
export { type WaitingBy, waitTerms } from './waiting.ts';
