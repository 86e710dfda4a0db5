/** Interface of this room: see README.md. */
export { Acknowledgements, type AnswerSide } from './acknowledgements.ts';
export { IbtaRequests } from './ibta-requests.ts';
export { RetryTimers } from './retry-timers.ts';
export { SelectiveAcknowledgements } from './selective-acknowledgements.ts';
export { SelectiveRepeat } from './selective-repeat.ts';
