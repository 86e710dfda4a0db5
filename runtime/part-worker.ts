/** A worker thread of Node.js that runs parts of machines, one after the other: see part-threads.ts. */
import './node.ts';
import { parentPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { InvariantError } from '../base/index.ts';
import { type PartOrder, partApiOf } from '../machine/index.ts';
import { endpointOf } from './endpoint.ts';
import type { PartMessage } from './part-threads.ts';

if (parentPort === null) throw new InvariantError('part worker', 'the main thread', 'a worker thread');
parentPort.on('message', ({ order, port }: PartMessage) =>
  Comlink.expose(partApiOf(order as PartOrder), endpointOf(port)),
);
