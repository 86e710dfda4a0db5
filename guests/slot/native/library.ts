/**
 * The few libc calls that Node lacks, bound by koffi: loaded at the first use, once per thread.
 *
 * Structures are passed by address, so nothing is converted per call: one call costs about 0.2 µs more than the system call
 * itself. Memory whose address is passed out must be a separate ArrayBuffer, which is never moved.
 */
import { createRequire } from 'node:module';
import { ConfigurationError } from '../../../base/index.ts';

/** koffi cannot be loaded, or this is not a platform on which the guest interface works. */
export class NativeUnavailableError extends ConfigurationError {
  constructor(field: string, value: unknown, range: string, message: string) {
    super(field, value, range);
    this.message = message;
  }
}

/** libc as used here. Results below zero mean failure; the reason is `errno()`. */
export interface NativeLibrary {
  socket(domain: number, type: number, protocol: number): number;
  bind(descriptor: number, address: number, addressBytes: number): number;
  connect(descriptor: number, address: number, addressBytes: number): number;
  listen(descriptor: number, backlog: number): number;
  accept(descriptor: number, flags: number): number;
  receiveMessage(descriptor: number, messageHeader: number, flags: number): number;
  sendMessage(descriptor: number, messageHeader: number, flags: number): number;
  send(descriptor: number, address: number, lengthBytes: number, flags: number): number;
  /** ppoll(2) without a signal mask; `timeSpec` 0 waits indefinitely. */
  poll(entries: number, count: number, timeSpec: number): number;
  mmap(lengthBytes: number, protection: number, flags: number, descriptor: number, offset: number): number;
  munmap(address: number, lengthBytes: number): number;
  eventfd(initial: number, flags: number): number;
  fcntl(descriptor: number, command: number, argument: number): number;
  /** statfs of an open file; its first eight bytes are f_type. */
  fstatfs(descriptor: number, buffer: number): number;
  /** Calls for specs, which act as the client. */
  memfdCreate(name: string, flags: number): number;
  socketPair(domain: number, type: number, protocol: number, pair: number): number;
  errno(): number;
  /** Address of a buffer. The caller keeps the buffer alive as long as the address is in use. */
  addressOf(buffer: ArrayBuffer): number;
  /** A view of memory that JavaScript does not own; the caller ends all use of it before the memory is freed. */
  viewAt(address: number, lengthBytes: number): ArrayBuffer;
}

type Koffi = typeof import('koffi');

let loaded: NativeLibrary | undefined;

/** libc. Throws NativeUnavailableError if it is unavailable. */
export function nativeLibrary(): NativeLibrary {
  loaded ??= bindLibrary(loadKoffi());
  return loaded;
}

/** Why `nativeLibrary` would throw, in one line; undefined if it works. */
export function nativeUnavailableReason(): string | undefined {
  try {
    nativeLibrary();
    return undefined;
  } catch (error) {
    if (error instanceof NativeUnavailableError) return error.message;
    throw error;
  }
}

function loadKoffi(): Koffi {
  const platform = `${process.platform}-${process.arch}`;
  const platforms = ['linux-x64', 'linux-arm64'];
  if (!platforms.includes(platform)) {
    throw new NativeUnavailableError(
      'platform',
      platform,
      platforms.join(' or '),
      `serving a guest needs Linux on x64 or arm64 (file descriptors over UNIX sockets, mapped guest memory); this is ${platform}`,
    );
  }
  try {
    return createRequire(import.meta.url)('koffi') as Koffi;
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new NativeUnavailableError(
      'koffi',
      reason,
      'an installed package',
      `serving a guest needs the optional package koffi: run \`npm install koffi\` (${reason})`,
    );
  }
}

function bindLibrary(koffi: Koffi): NativeLibrary {
  const libc = koffi.load(null);
  const memory = 'uintptr_t';
  const mmap = libc.func('mmap', 'intptr_t', [memory, 'size_t', 'int', 'int', 'int', 'int64_t']);
  const accept = libc.func('accept4', 'int', ['int', memory, memory, 'int']);
  const poll = libc.func('ppoll', 'int', [memory, 'ulong', memory, memory]);
  const fcntl = libc.func('fcntl', 'int', ['int', 'int', '...']);
  return {
    socket: libc.func('socket', 'int', ['int', 'int', 'int']),
    bind: libc.func('bind', 'int', ['int', memory, 'uint32_t']),
    connect: libc.func('connect', 'int', ['int', memory, 'uint32_t']),
    listen: libc.func('listen', 'int', ['int', 'int']),
    accept: (descriptor, flags) => accept(descriptor, 0, 0, flags) as number,
    receiveMessage: libc.func('recvmsg', 'long', ['int', memory, 'int']),
    sendMessage: libc.func('sendmsg', 'long', ['int', memory, 'int']),
    send: libc.func('send', 'long', ['int', memory, 'size_t', 'int']),
    poll: (entries, count, timeSpec) => poll(entries, count, timeSpec, 0) as number,
    mmap: (lengthBytes, protection, flags, descriptor, offset) =>
      mmap(0, lengthBytes, protection, flags, descriptor, offset) as number,
    munmap: libc.func('munmap', 'int', [memory, 'size_t']),
    eventfd: libc.func('eventfd', 'int', ['uint', 'int']),
    fcntl: (descriptor, command, argument) => fcntl(descriptor, command, 'int', argument) as number,
    fstatfs: libc.func('fstatfs', 'int', ['int', memory]),
    memfdCreate: libc.func('memfd_create', 'int', ['str', 'uint']),
    socketPair: libc.func('socketpair', 'int', ['int', 'int', 'int', memory]),
    errno: () => koffi.errno(),
    addressOf: (buffer) => Number(koffi.address(buffer)),
    viewAt: (address, lengthBytes) => koffi.view(BigInt(address), lengthBytes),
  };
}
