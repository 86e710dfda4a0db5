/** A worker thread of Node.js that runs one part of a machine. */
import './node.ts';
import { parentPort, workerData } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { InvariantError } from '../base/assert.ts';
import { type PartOrder, partApiOf } from '../system/machine/partition/part-api.ts';
import { endpointOf } from './endpoint.ts';

if (parentPort === null) throw new InvariantError('part worker', 'the main thread', 'a worker thread');
Comlink.expose(partApiOf(workerData as PartOrder), endpointOf(parentPort));
