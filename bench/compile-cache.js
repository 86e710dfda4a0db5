/**
 * Loaded before the benchmark (`node --import`): has Node keep what it makes of TypeScript sources.
 *
 * Node takes the types out of a source by a WebAssembly module whose memory grows, which detaches an ArrayBuffer; from
 * then on V8 checks at each access to a typed array whether its memory is still there, and the simulation is 5 to 8 %
 * slower. Sources taken from the cache need no such module, just as built JavaScript does not.
 */
import { enableCompileCache } from 'node:module';

enableCompileCache();
