/**
 * The worker that runs a reader's program. The program can use only the library: functions that reach outside the
 * worker are removed first, and the lab's content security policy forbids such access as well.
 */
import { expose } from 'comlink';
import { ProgramSession } from './program-session.ts';

/** Functions with which a worker could reach outside. */
for (const name of [
  'fetch',
  'XMLHttpRequest',
  'WebSocket',
  'EventSource',
  'importScripts',
  'indexedDB',
  'caches',
  'BroadcastChannel',
  'Worker',
  'SharedWorker',
])
  Reflect.deleteProperty(globalThis, name);

expose(new ProgramSession());
