/** Interface of this room: see README.md. */
export { RequestCompletion } from './request-completion.ts';
export { Requester } from './requester.ts';
