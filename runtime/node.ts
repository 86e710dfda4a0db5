/**
 * Node.js as the model's runtime. Everything that starts a process or a thread with machines must import it first: the library,
 * commands, workers, benches.
 */
import { availableParallelism } from 'node:os';
import { useRuntime } from '../base/index.ts';
import { readSmallFile } from './files.ts';
import { allowMoreInlining } from './inlining.ts';
import { startPart } from './part-threads.ts';
import { TraceFile } from './trace-file.ts';

const engineCopy = Buffer.prototype.copy;

allowMoreInlining();

useRuntime({
  version: process.version,
  // If other processes use the rest, HCA_CORES gives the number of cores: if a machine has more threads, they wait without
  // polling.
  coreCount: Number(process.env['HCA_CORES'] ?? availableParallelism()),
  defer: (action) => void setImmediate(action),
  copyBytes: (to, toOffset, from, fromOffset, lengthBytes) =>
    void engineCopy.call(from, to, toOffset, fromOffset, fromOffset + lengthBytes),
  readText: readSmallFile,
  openLog: (file, sizeBytes) => new TraceFile(file, sizeBytes),
  startPart,
});
