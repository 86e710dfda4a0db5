/** A worker thread of the runners' benchmark. */
import { parentPort, workerData } from 'node:worker_threads';
import { type RowOrder, runRow } from './kernel-turns.ts';

parentPort!.postMessage(await runRow(workerData as RowOrder));
