/** The thread that serves: blocks on the guests' sockets, which the thread of an event loop must not. */
import '../../runtime/node.ts';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { InvariantError } from '../../base/index.ts';
import { errorRecordOf } from '../machine/index.ts';
import { ServeLoop } from './serve-loop.ts';
import type { ServeMessage, ServeRequest, ServeStart } from './serve-messages.ts';

if (parentPort === null) throw new InvariantError('serve worker', 'the main thread', 'a worker thread');
const port = parentPort;
const { order, requestCount } = workerData as ServeStart;
const requests = new Int32Array(requestCount);
const post = (message: ServeMessage): void => port.postMessage(message);

try {
  const loop = new ServeLoop(order, (text) => post({ kind: 'notice', text }));
  let answered = 0;
  post({ kind: 'ready', wakeDescriptor: loop.reactor.wakeDescriptor });
  loop.run(() => {
    for (; answered !== Atomics.load(requests, 0); answered++) {
      const request = receiveMessageOnPort(port)?.message as ServeRequest | undefined;
      if (request === undefined) return;
      if (request.kind === 'stop') loop.stop();
      else post({ kind: 'report', ticket: request.ticket, report: loop.report() });
    }
  });
  const report = loop.report();
  const observations = loop.emulation.observations();
  loop.close();
  post({ kind: 'ended', report, observations });
} catch (thrown) {
  post({ kind: 'failed', error: errorRecordOf(thrown) });
}
