/** The thread that serves: blocks on the guests' sockets, which the thread of an event loop must not. */
import '../../runtime/node.ts';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { InvariantError, outsideOfMicrotasks } from '../../base/index.ts';
import { errorRecordOf, loadProgram } from '../../machine/index.ts';
import type { PeerProgram } from './peer-host.ts';
import { ServeLoop } from './serve-loop.ts';
import type { ServeMessage, ServeRequest, ServeStart } from './serve-messages.ts';

if (parentPort === null) throw new InvariantError('serve worker', 'the main thread', 'a worker thread');
const port = parentPort;
const { order, requestCount } = workerData as ServeStart;
const requests = new Int32Array(requestCount);
const post = (message: ServeMessage): void => port.postMessage(message);

/** Serves until the end; blocks this thread. */
function work(peer: PeerProgram | undefined): void {
  const loop = new ServeLoop(order, {
    onNotice: (text) => post({ kind: 'notice', text }),
    onValue: (name, value) => post({ kind: 'value', name, value }),
    onPeerEnd: (state) => post({ kind: 'peer', state }),
    peer,
  });
  let answered = 0;
  post({ kind: 'ready', wakeDescriptor: loop.reactor.wakeDescriptor });
  let ended: ServeMessage;
  try {
    loop.run(() => {
      for (; answered !== Atomics.load(requests, 0); answered++) {
        const request = receiveMessageOnPort(port)?.message as ServeRequest | undefined;
        if (request === undefined) return;
        if (request.kind === 'stop') loop.stop();
        else if (request.kind === 'value') loop.emulation.putValue(request.name, request.value);
        else post({ kind: 'report', ticket: request.ticket, report: loop.report() });
      }
    });
    const report = loop.report();
    const observations = loop.emulation.observations();
    const captureDrops = loop.emulation.captureDrops();
    const evidence = loop.emulation.evidence();
    ended = { kind: 'ended', report, observations, captureDrops, evidence };
  } catch (error) {
    loop.abandon();
    throw error;
  }
  loop.close();
  post(ended);
}

try {
  const { peer } = order;
  const run = peer === undefined ? undefined : await loadProgram(peer.url, peer.exportName);
  // Work runs from a callback of the event loop: only there can the code of a simulated host run within a call.
  await outsideOfMicrotasks(() => work(peer && run && { name: peer.name, args: peer.args, run }));
} catch (thrown) {
  post({ kind: 'failed', error: errorRecordOf(thrown) });
}
