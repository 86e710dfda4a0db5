/**
 * Threads that run parts of machines, one machine after the other: starting a thread and loading the model into it takes longer
 * than many machines run.
 *
 *     part given out ─► a waiting thread, else a new one ─► released ─► waits ─► the next part, or the end of the process
 *                                                        └► terminated, or lost: never given out again
 *
 * Each part has its own channel between thread and machine, so machines cannot affect each other. A waiting thread does not
 * keep the process alive.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { RuntimeThread } from '../base/index.ts';
import { endpointOf } from './endpoint.ts';

/** Message to a thread for each part. */
export interface PartMessage {
  readonly order: unknown;
  readonly port: MessagePort;
}

/** Threads of two machines of four hosts, cut wherever possible. */
const waitingMax = 16;

/** Extension of this module: workers are `.ts` in the repository and compiled in the package. */
const partWorkerUrl = new URL(
  import.meta.url.endsWith('.ts') ? './part-worker.ts' : './part-worker.js',
  import.meta.url,
);

const waiting: Worker[] = [];
/** Threads that have ended or are about to end. */
const ended = new WeakSet<Worker>();

function newWorker(): Worker {
  const worker = new Worker(partWorkerUrl);
  const end = (): void => {
    ended.add(worker);
    const place = waiting.indexOf(worker);
    if (place >= 0) waiting.splice(place, 1);
  };
  // A waiting thread has no other observer; without a listener its error would end the process.
  worker.on('error', end);
  worker.once('exit', end);
  return worker;
}

/** A thread for one part of a machine. @param order plain data */
export function startPart(order: unknown): RuntimeThread {
  const worker = waiting.pop() ?? newWorker();
  worker.ref();
  const { port1, port2 } = new MessageChannel();
  const message: PartMessage = { order, port: port2 };
  worker.postMessage(message, [port2]);
  const listeners: (() => void)[] = [];
  return {
    endpoint: endpointOf(port1),
    once(event: 'error' | 'exit', listener: (what: never) => void) {
      worker.once(event, listener as (what: unknown) => void);
      listeners.push(() => worker.off(event, listener as (what: unknown) => void));
    },
    async terminate() {
      await worker.terminate();
      port1.close();
    },
    async release() {
      for (const remove of listeners) remove();
      port1.close();
      if (ended.has(worker)) return;
      if (waiting.length === waitingMax) {
        await worker.terminate();
        return;
      }
      worker.unref();
      waiting.push(worker);
    },
  };
}
