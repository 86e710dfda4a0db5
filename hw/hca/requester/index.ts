/** Interface of this room: see README.md. */
export { Acknowledgements } from './acknowledgements.ts';
export { RequestCompletion } from './request-completion.ts';
export { Requester } from './requester.ts';
export { RetryTimers } from './retry-timers.ts';
