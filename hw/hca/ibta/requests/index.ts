/** Interface of this room: see README.md. */
export { Acknowledgements } from './acknowledgements.ts';
export { IbtaRequests } from './ibta-requests.ts';
export { RetryTimers } from './retry-timers.ts';
