/** What other rooms use of this one: see README.md. */
export { ATOMIC_SRAM_BYTES } from './atomic-unit.ts';
export { Responder } from './responder.ts';
export { ResponseEngine } from './response-engine.ts';
