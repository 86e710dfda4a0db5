/**
 * The worker in which a reader's program runs. The program has nothing but the library: what would reach out of the worker is taken away
 * first, and the policy that the lab is served with forbids it besides.
 */
import { expose } from 'comlink';
import { ProgramSession } from './program-session.ts';

/** What a worker could reach out by. */
for (const name of [
  'fetch',
  'XMLHttpRequest',
  'WebSocket',
  'EventSource',
  'importScripts',
  'indexedDB',
  'caches',
  'BroadcastChannel',
])
  Reflect.deleteProperty(globalThis, name);

expose(new ProgramSession());
