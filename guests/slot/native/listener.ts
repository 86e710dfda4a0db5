/** A listening UNIX socket: replaces a stale socket file, refuses one that is in use, removes its own at the end. */

import { lstatSync, unlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { ConfigurationError } from '../../../base/index.ts';
import { type NativeLibrary, nativeLibrary } from './library.ts';
import { describeErrno, NativeCallError } from './native-call-error.ts';
import { closeDescriptor } from './poll.ts';
import { AF_UNIX, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, socketAddress } from './structures.ts';

const { EADDRINUSE, EAGAIN, ECONNABORTED, ECONNREFUSED, EINTR } = constants.errno;
/** Result of `accept`: a client waits, but no descriptor or memory is left for it. */
export const CANNOT_ACCEPT = -2;
const pathBytesMax = socketAddress.fields.path.lengthBytes - 1;

export class Listener {
  readonly path: string;
  readonly #native: NativeLibrary = nativeLibrary();
  readonly #inode: bigint;
  #descriptor: number;

  /** Throws ConfigurationError if the path is unavailable: too long, in use, not a socket, no such folder. */
  constructor(path: string, backlog: number) {
    this.path = path;
    checkPath(path);
    removeStale(path);
    this.#descriptor = openSocket();
    if (this.#native.bind(this.#descriptor, addressOfPath(path), addressBytes.length) < 0) {
      this.#fail(path, this.#native.errno());
    }
    this.#inode = lstatSync(path, { bigint: true }).ino;
    if (this.#native.listen(this.#descriptor, backlog) < 0) this.#fail(path, this.#native.errno());
  }

  /** Descriptor for poll; -1 when closed. */
  get descriptor(): number {
    return this.#descriptor;
  }

  /** The next client's socket, -1 if none waits, CANNOT_ACCEPT if this process cannot have more. */
  accept(): number {
    const client = this.#native.accept(this.#descriptor, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) return client;
    const errno = this.#native.errno();
    if (errno === EAGAIN || errno === EINTR || errno === ECONNABORTED) return -1;
    return CANNOT_ACCEPT;
  }

  /** Stops listening and removes the socket file, if it is still this listener's. */
  close(): void {
    if (this.#descriptor < 0) return;
    closeDescriptor(this.#descriptor);
    this.#descriptor = -1;
    if (lstatSync(this.path, { bigint: true, throwIfNoEntry: false })?.ino === this.#inode) {
      unlinkSync(this.path);
    }
  }

  #fail(path: string, errno: number): never {
    closeDescriptor(this.#descriptor);
    throw new ConfigurationError('socket path', path, `a path to listen on (${describeErrno(errno)})`);
  }
}

/** Memory of a path for the kernel: referenced only by its address, so it must not be collected. */
const addressBytes = new Uint8Array(new ArrayBuffer(socketAddress.sizeBytes));

function checkPath(path: string): void {
  const { length } = Buffer.from(path);
  if (length === 0 || length > pathBytesMax || path.includes('\0')) {
    throw new ConfigurationError('socket path', path, `1 to ${pathBytesMax} bytes, a limit of UNIX sockets`);
  }
}

function addressOfPath(path: string): number {
  const padded = new Uint8Array(socketAddress.fields.path.lengthBytes);
  padded.set(Buffer.from(path));
  socketAddress.encodeInto({ family: AF_UNIX, path: padded }, addressBytes);
  return nativeLibrary().addressOf(addressBytes.buffer);
}

function openSocket(): number {
  const native = nativeLibrary();
  const descriptor = native.socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw new NativeCallError('socket', native.errno());
  return descriptor;
}

/** Connects to a path; returns the socket, or minus an errno. For the listener's own check and for test clients. */
export function connectTo(path: string): number {
  const native = nativeLibrary();
  checkPath(path);
  const descriptor = openSocket();
  if (native.connect(descriptor, addressOfPath(path), addressBytes.length) === 0) return descriptor;
  const errno = native.errno();
  closeDescriptor(descriptor);
  return -errno;
}

/** Removes a socket file without a listener; connecting shows whether one listens. */
function removeStale(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) {
    throw new ConfigurationError(
      'socket path',
      path,
      'a new path or a socket (there is another kind of file)',
    );
  }
  const connected = connectTo(path);
  if (connected === -ECONNREFUSED) {
    unlinkSync(path);
    return;
  }
  if (connected >= 0) closeDescriptor(connected);
  throw new ConfigurationError(
    'socket path',
    path,
    `a path on which nobody listens (${describeErrno(EADDRINUSE)})`,
  );
}
