/** What other rooms use of this one: see README.md. */
export { Responder } from './responder.ts';
export { ResponseEngine } from './response-engine.ts';
