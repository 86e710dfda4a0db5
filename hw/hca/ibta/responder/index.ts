/** Interface of this room: see README.md. */
export { Responder } from './responder.ts';
export { ResponseEngine } from './response-engine.ts';
