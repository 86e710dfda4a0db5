/** A connection of a program's sockets as bytes: through a buffer of the process, which the kernel copies to and from. */
import { ConfigurationError } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import type { SocketCalls } from '../../net/index.ts';

/** Bytes of the buffer: the limit of one call. */
const bufferBytes = 131_072;

/** The peer ended its stream before it had sent the requested bytes. */
export class SocketStreamError extends Error {
  override readonly name = 'SocketStreamError';
}

/** Requirements of a stream on its program. */
export type SocketUser = Pick<ProgramContext, 'cpu' | 'memory' | 'sockets'>;

/** The socket calls of a program. @throws ConfigurationError on a host without a NIC */
export function socketsOf({ sockets }: SocketUser): SocketCalls {
  if (sockets === undefined)
    throw new ConfigurationError(
      'machine.adapter',
      'hca',
      'nic, driven by the kernel (machine.nicDriver), for a program of sockets',
    );
  return sockets;
}

/** One read or write at a time. */
export class SocketStream {
  readonly fd: number;
  readonly bufferBytes = bufferBytes;
  readonly #program: SocketUser;
  readonly #sockets: SocketCalls;
  readonly #buffer: number;
  #isOpen = true;

  constructor(program: SocketUser, fd: number) {
    this.fd = fd;
    this.#program = program;
    this.#sockets = socketsOf(program);
    this.#buffer = program.memory.map(bufferBytes);
  }

  /**
   * Waits for bytes.
   * @returns up to this many, none at the end of the stream
   */
  async read(lengthBytes = bufferBytes): Promise<Uint8Array> {
    const { cpu, memory } = this.#program;
    const count = await this.#sockets.recv(cpu, this.fd, this.#buffer, Math.min(lengthBytes, bufferBytes));
    return memory.read(this.#buffer, count);
  }

  /**
   * Waits for this many bytes.
   * @throws SocketStreamError if the stream ends earlier
   */
  async readAll(lengthBytes: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(lengthBytes);
    for (let done = 0; done < lengthBytes; ) {
      const piece = await this.read(lengthBytes - done);
      if (piece.length === 0)
        throw new SocketStreamError(`the stream ended after ${done} of ${lengthBytes} bytes`);
      bytes.set(piece, done);
      done += piece.length;
    }
    return bytes;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { cpu, memory } = this.#program;
    for (let at = 0; at < bytes.length; at += bufferBytes) {
      const piece = bytes.subarray(at, at + bufferBytes);
      memory.write(this.#buffer, piece);
      await this.#sockets.send(cpu, this.fd, this.#buffer, piece.length);
    }
  }

  /**
   * Moves as many bytes as possible immediately, whatever they are.
   * @returns their number; undefined if the stream has ended
   */
  async moveSome(direction: 'in' | 'out'): Promise<number | undefined> {
    const { cpu } = this.#program;
    const flags = { dontWait: true };
    try {
      if (direction === 'out')
        return await this.#sockets.send(cpu, this.fd, this.#buffer, bufferBytes, flags);
      const count = await this.#sockets.recv(cpu, this.fd, this.#buffer, bufferBytes, flags);
      return count === 0 ? undefined : count;
    } catch (error) {
      return isErrno(error, 'EAGAIN') ? 0 : undefined;
    }
  }

  /** Ends the outgoing stream. */
  end(): Promise<void> {
    return this.#sockets.shutdown(this.#program.cpu, this.fd, 'SHUT_WR');
  }

  /** May be called repeatedly. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#sockets.close(this.#program.cpu, this.fd);
    this.#program.memory.unmap(this.#buffer, bufferBytes);
  }
}

/** Whether a socket call failed with this errno. */
const isErrno = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

/** A listening socket for connections of either version of IP. */
export async function listenAt(program: SocketUser, port: number, backlog = 16): Promise<number> {
  const { cpu } = program;
  const sockets = socketsOf(program);
  const fd = await sockets.socket(cpu, 'AF_INET6');
  await sockets.bind(cpu, fd, { address: '::', port });
  await sockets.listen(cpu, fd, backlog);
  return fd;
}

/** Waits for the next connection of a listening socket. */
export const acceptFrom = async (program: SocketUser, listening: number): Promise<SocketStream> =>
  new SocketStream(program, await socketsOf(program).accept(program.cpu, listening));

/**
 * Connects to a port.
 * @param address for IPv4 a number, for IPv6 text
 * @throws NetError
 */
export async function connectTo(
  program: SocketUser,
  address: number | string,
  port: number,
): Promise<SocketStream> {
  const { cpu } = program;
  const sockets = socketsOf(program);
  const fd = await sockets.socket(cpu, typeof address === 'number' ? 'AF_INET' : 'AF_INET6');
  await sockets.connect(cpu, fd, { address, port });
  return new SocketStream(program, fd);
}
