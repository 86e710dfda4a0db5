/**
 * Services that the model needs of its JavaScript runtime: reading a file, starting a thread, writing a log. For Node.js they
 * are in runtime/node.ts. If none is set, as in a page, only services of every runtime are available; the others throw an error
 * in words.
 */
import { ConfigurationError } from './assert.ts';

/** Receives the text of a log, piece by piece. */
export interface TextSink {
  write(text: string): void;
  /** No text follows. */
  close(): void;
}

/** A thread that runs one part of a machine. */
export interface RuntimeThread {
  /** A comlink Endpoint: not by its type, which requires the type of a page's messages. */
  readonly endpoint: unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: (exitCode: number) => void): unknown;
  /** Ends the thread in any state. */
  terminate(): Promise<unknown>;
  /** Returns it after it has answered every call: it may serve another machine. */
  release(): Promise<unknown>;
}

export interface Runtime {
  /** Its version, for the facts of a run. */
  readonly version: string;
  /** Cores available for the threads of one machine. */
  readonly coreCount: number;
  /** Calls `action` after all callbacks already waiting in this thread. */
  defer(action: () => void): void;
  /** Copies `lengthBytes` between memories that do not overlap, a long block at once. */
  readonly copyBytes: (
    to: Uint8Array,
    toOffset: number,
    from: Uint8Array,
    fromOffset: number,
    lengthBytes: number,
  ) => void;
  /** Text of a file that a person wrote. @throws Error in words, or with the code of the operating system */
  readText(file: string): string;
  /**
   * A log in files that take at most `sizeBytes`: its beginning and its end.
   * @throws ConfigurationError if the file cannot be written
   */
  openLog(file: string, sizeBytes: number): TextSink;
  /** Returns a thread that runs one part of a machine: machine/partition/part-api.ts. `order` is plain data. */
  startPart(order: unknown): RuntimeThread;
}

/** Services of every runtime. */
const plain: Runtime = {
  get version() {
    return globalThis.navigator?.userAgent ?? 'unknown';
  },
  get coreCount() {
    return globalThis.navigator?.hardwareConcurrency ?? 1;
  },
  defer(action) {
    const { port1, port2 } = new MessageChannel();
    const onMessage = (): void => {
      port1.close();
      action();
    };
    port1.addEventListener('message', onMessage, { once: true });
    port1.start();
    port2.postMessage(null);
  },
  copyBytes: (to, toOffset, from, fromOffset, lengthBytes) =>
    to.set(from.subarray(fromOffset, fromOffset + lengthBytes), toOffset),
  readText: () => {
    throw new Error('this runtime has no files');
  },
  openLog: (file) => {
    throw new ConfigurationError('trace.file', file, 'a sink: this runtime has no files');
  },
  startPart: () => {
    throw new ConfigurationError(
      'partition',
      'one of several threads',
      'single: this runtime starts no threads',
    );
  },
};

let current = plain;

/** Makes `runtime` the model's runtime in this thread. Called before a machine is made. */
export function useRuntime(runtime: Runtime): void {
  current = runtime;
}

/** The runtime of this thread. */
export const runtime = (): Runtime => current;

/** Acts in a callback of the event loop instead of one of a promise: callbacks of promises can then run within the call. */
export const outsideOfMicrotasks = <Result>(act: () => Result): Promise<Result> =>
  new Promise((resolve, reject) => {
    runtime().defer(() => {
      try {
        resolve(act());
      } catch (error) {
        reject(error);
      }
    });
  });
