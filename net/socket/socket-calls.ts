/**
 * The socket system calls of one process, by their POSIX names. Each receives the calling thread, counts and charges the call,
 * and rejects with a NetError (`code`, `errno`) where POSIX has an errno.
 *
 * Stream sockets over IPv4 and IPv6; a descriptor is valid in its process. The end of the process closes the remaining
 * descriptors ({@link SocketCalls.exit}). A thread that is killed while it waits leaves the call at once; its socket is closed
 * by exit.
 */
import type { Cpu, UserMemory } from '../platform.ts';
import { finish, type NetworkStack, output, WaitQueue } from '../stack/index.ts';
import { NetError } from './net-error.ts';
import { Socket } from './socket.ts';
import {
  type AddressFamily,
  localEndOf,
  remoteEndOf,
  type SocketAddress,
  socketAddressOf,
} from './socket-address.ts';
import { receiveBytes, sendBytes, type Transfer } from './transfer.ts';

export interface TransferFlags {
  /** MSG_DONTWAIT: returns EAGAIN instead of waiting. */
  readonly dontWait?: boolean;
  /** MSG_WAITALL: recv waits until all bytes are there. */
  readonly waitAll?: boolean;
}

export type SocketOption = 'SO_RCVBUF' | 'SO_SNDBUF' | 'TCP_NODELAY';
type PollEvent = 'POLLIN' | 'POLLOUT';
export type PollResult = PollEvent | 'POLLERR' | 'POLLHUP' | 'POLLNVAL';

export interface PollRequest {
  readonly fd: number;
  readonly events: readonly PollEvent[];
}

/** Descriptors begin after stdin, stdout and stderr. */
const firstDescriptor = 3;
const portMax = 0xffff;
const smallestBufferBytes = 4096;

export class SocketCalls {
  readonly #stack: NetworkStack;
  readonly #memory: UserMemory;
  readonly #sockets = new Map<number, Socket>();

  constructor(stack: NetworkStack, memory: UserMemory) {
    this.#stack = stack;
    this.#memory = memory;
  }

  /** Open sockets. */
  get openCount(): number {
    return this.#sockets.size;
  }

  /** @throws NetError EMFILE */
  async socket(cpu: Cpu, family: AddressFamily = 'AF_INET'): Promise<number> {
    await this.#enter(cpu, 'socket', 'control');
    return this.#add(new Socket(this.#stack, family));
  }

  /** Binds a local port; 0 binds any. @throws NetError EINVAL, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, ENODEV */
  async bind(cpu: Cpu, fd: number, local: SocketAddress): Promise<void> {
    await this.#enter(cpu, 'bind', 'control');
    const socket = this.#socketOf(fd);
    checkPort(local.port);
    if (socket.port >= 0) throw new NetError('EINVAL', 'the socket is bound already');
    const end = localEndOf(this.#stack, socket.family, local);
    socket.port = this.#bind(local.port);
    socket.local = end;
  }

  /** The local end of a socket; port 0 if it has none (getsockname). */
  async getsockname(cpu: Cpu, fd: number): Promise<SocketAddress> {
    await this.#enter(cpu, 'getsockname', 'control');
    const socket = this.#socketOf(fd);
    const port = socket.connection?.localPort ?? Math.max(socket.port, 0);
    return socketAddressOf(this.#stack, socket, port);
  }

  /** @throws NetError EINVAL, EADDRINUSE, EISCONN */
  async listen(cpu: Cpu, fd: number, backlog: number): Promise<void> {
    await this.#enter(cpu, 'listen', 'control');
    const socket = this.#socketOf(fd);
    if (socket.connection !== undefined) throw new NetError('EISCONN', 'the socket is connected');
    if (socket.listener !== undefined) {
      socket.listener.backlog = Math.max(1, backlog);
      return;
    }
    if (socket.port < 0) socket.port = this.#bind(0);
    socket.listener = this.#stack.listen(socket.port, socket.local, backlog);
    socket.listener.receiveLimitBytes = socket.receiveLimitBytes;
    socket.listener.sendLimitBytes = socket.sendLimitBytes;
  }

  /** @throws NetError EISCONN, EALREADY, EAFNOSUPPORT, EINVAL, ENODEV, EHOSTUNREACH, EADDRINUSE, ECONNREFUSED, ETIMEDOUT, ENETDOWN */
  async connect(cpu: Cpu, fd: number, remote: SocketAddress): Promise<void> {
    await this.#enter(cpu, 'connect', 'control');
    const socket = this.#socketOf(fd);
    checkPort(remote.port);
    if (socket.listener !== undefined) throw new NetError('EOPNOTSUPP', 'the socket listens');
    if (socket.isConnecting) throw new NetError('EALREADY', 'the socket is being connected');
    if (socket.connection !== undefined) throw new NetError('EISCONN', 'the socket is connected');
    const route = remoteEndOf(this.#stack, socket, remote);
    if (route === undefined) throw new NetError('EHOSTUNREACH', 'no neighbour has the address');
    if (socket.port < 0) socket.port = this.#bind(0);
    const ends = { localPort: socket.port, remotePort: remote.port, route };
    const limits = { receive: socket.receiveLimitBytes, send: socket.sendLimitBytes };
    const connection = this.#stack.connect(cpu, ends, limits);
    if (connection === undefined)
      throw new NetError('EADDRINUSE', 'a connection with these addresses and ports exists');
    connection.isDelayed = socket.isDelayed;
    socket.connection = connection;
    socket.isConnecting = true;
    await this.#stack.device.flush(cpu);
    await socket.use(cpu, async () => {
      while (connection.state === 'SYN_SENT' && !socket.isClosed) await connection.writers.wait(cpu);
    });
    socket.isConnecting = false;
    if (socket.isClosed) throw new NetError('EBADF', 'the socket was closed meanwhile');
    const error = socket.takeError();
    if (error === undefined) return;
    socket.connection = undefined;
    throw new NetError(error, 'the connection did not come up');
  }

  /** Waits for a connection. @throws NetError EINVAL, EAGAIN, EMFILE, EBADF */
  async accept(cpu: Cpu, fd: number, flags: TransferFlags = {}): Promise<number> {
    await this.#enter(cpu, 'accept', 'control');
    const socket = this.#socketOf(fd);
    const { listener } = socket;
    if (listener === undefined) throw new NetError('EINVAL', 'the socket does not listen');
    this.#checkRoom();
    while (!listener.hasWaiting) {
      if (listener.isClosed) throw new NetError('EBADF', 'the socket was closed meanwhile');
      if (flags.dontWait === true) throw new NetError('EAGAIN', 'no connection waits');
      await listener.acceptable.wait(cpu);
    }
    const accepted = new Socket(this.#stack, socket.family);
    accepted.connection = listener.take()!;
    accepted.isDelayed = socket.isDelayed;
    accepted.connection.isDelayed = socket.isDelayed;
    return this.#add(accepted);
  }

  /**
   * Queues bytes of the process; waits for room.
   * @returns bytes queued: all of them, unless an error occurred in between or `dontWait` is set
   * @throws NetError ENOTCONN, EPIPE, ECONNRESET, ETIMEDOUT, EFAULT, ENOBUFS, EAGAIN
   */
  async send(
    cpu: Cpu,
    fd: number,
    address: number,
    lengthBytes: number,
    flags: TransferFlags = {},
  ): Promise<number> {
    await this.#enter(cpu, 'send', 'dataPath');
    const socket = this.#socketOf(fd);
    const transfer = this.#transfer(cpu, address, lengthBytes, flags);
    socket.established();
    return socket.use(cpu, () => socket.writers.run(cpu, () => sendBytes(socket, transfer)));
  }

  /**
   * Reads up to `lengthBytes` into the process; waits for the first byte.
   * @returns bytes read; 0 at the end of the stream
   * @throws NetError ENOTCONN, ECONNRESET, ETIMEDOUT, EFAULT, EAGAIN
   */
  async recv(
    cpu: Cpu,
    fd: number,
    address: number,
    lengthBytes: number,
    flags: TransferFlags = {},
  ): Promise<number> {
    await this.#enter(cpu, 'recv', 'dataPath');
    const socket = this.#socketOf(fd);
    const transfer = this.#transfer(cpu, address, lengthBytes, flags);
    socket.established();
    return socket.use(cpu, () => socket.readers.run(cpu, () => receiveBytes(socket, transfer)));
  }

  /** Ends one or both directions. @throws NetError ENOTCONN */
  async shutdown(cpu: Cpu, fd: number, how: 'SHUT_RD' | 'SHUT_WR' | 'SHUT_RDWR'): Promise<void> {
    await this.#enter(cpu, 'shutdown', 'control');
    const connection = this.#socketOf(fd).established();
    if (connection.isOver) throw new NetError('ENOTCONN', 'the connection is over');
    if (how !== 'SHUT_WR') {
      connection.isReadShut = true;
      connection.readers.wake(cpu);
    }
    if (how !== 'SHUT_RD') {
      finish(cpu, connection);
      connection.writers.wake(cpu);
    }
    await this.#stack.device.flush(cpu);
  }

  /** Closes the descriptor; queued bytes are still sent. */
  async close(cpu: Cpu, fd: number): Promise<void> {
    await this.#enter(cpu, 'close', 'control');
    const socket = this.#socketOf(fd);
    this.#sockets.delete(fd);
    socket.close(cpu);
    await this.#stack.device.flush(cpu);
  }

  /** @throws NetError EINVAL for a size below the minimum */
  async setsockopt(cpu: Cpu, fd: number, option: SocketOption, value: number): Promise<void> {
    await this.#enter(cpu, 'setsockopt', 'control');
    const socket = this.#socketOf(fd);
    if (option === 'TCP_NODELAY') {
      socket.isDelayed = value === 0;
      if (socket.connection === undefined) return;
      socket.connection.isDelayed = socket.isDelayed;
      if (!socket.connection.isOver && !socket.isConnecting) output(cpu, socket.connection);
      await this.#stack.device.flush(cpu);
      return;
    }
    if (!Number.isSafeInteger(value) || value < 0)
      throw new NetError('EINVAL', `${option} is ${value}, expected a whole number of bytes, at least 0`);
    const bytes = Math.max(value, smallestBufferBytes, 2 * this.#stack.device.mtu);
    if (option === 'SO_RCVBUF') {
      socket.receiveLimitBytes = bytes;
      socket.connection?.setReceiveLimit(bytes);
      if (socket.listener !== undefined) socket.listener.receiveLimitBytes = bytes;
    } else {
      socket.sendLimitBytes = bytes;
      if (socket.connection !== undefined) socket.connection.sendLimitBytes = bytes;
      if (socket.listener !== undefined) socket.listener.sendLimitBytes = bytes;
    }
  }

  /** Waits until one of the sockets is ready, or for `timeoutPs`. @returns the readiness of each, in order */
  async poll(cpu: Cpu, requests: readonly PollRequest[], timeoutPs?: number): Promise<PollResult[][]> {
    await this.#enter(cpu, 'poll', 'dataPath');
    const { platform, counts } = this.#stack;
    const watch = platform.stopwatch();
    // The thread that wakes one of the sockets is charged for it; passing the wake-up on costs nothing.
    const woken = new WaitQueue(platform, counts, this.#stack.costs.wakeUp);
    const queues = requests.flatMap(({ fd }) => this.#queuesOf(fd));
    for (const queue of queues) queue.forwardTo(woken);
    try {
      for (;;) {
        const results = requests.map((request) => this.#ready(request));
        const leftPs = timeoutPs === undefined ? Number.POSITIVE_INFINITY : timeoutPs - watch.elapsedPs;
        if (leftPs <= 0 || results.some((result) => result.length > 0)) return results;
        await woken.wait(cpu, timeoutPs === undefined ? undefined : leftPs);
      }
    } finally {
      for (const queue of queues) queue.ignore(woken);
    }
  }

  /** The process has ended: closes everything. */
  async exit(cpu: Cpu): Promise<void> {
    for (const socket of this.#sockets.values()) socket.close(cpu);
    this.#sockets.clear();
    await this.#stack.device.flush(cpu);
  }

  async #enter(cpu: Cpu, name: string, path: 'control' | 'dataPath'): Promise<void> {
    const { platform, counts, costs } = this.#stack;
    platform.systemCallEntered(cpu, name, path);
    counts.systemCalls++;
    if (path === 'dataPath') counts.dataPathCalls++;
    cpu.charge('socket', costs.socketCall);
    this.#stack.device.used();
    await cpu.settle();
  }

  #socketOf(fd: number): Socket {
    const socket = this.#sockets.get(fd);
    if (socket === undefined) throw new NetError('EBADF', `${fd} is not an open socket`);
    return socket;
  }

  #checkRoom(): void {
    if (this.#sockets.size >= this.#stack.config.socketsMax)
      throw new NetError(
        'EMFILE',
        `the process has ${this.#sockets.size} sockets, expected at most ${this.#stack.config.socketsMax}`,
      );
  }

  #add(socket: Socket): number {
    this.#checkRoom();
    let fd = firstDescriptor;
    while (this.#sockets.has(fd)) fd++;
    this.#sockets.set(fd, socket);
    return fd;
  }

  #bind(port: number): number {
    const bound = this.#stack.bind(port);
    if (bound < 0)
      throw new NetError('EADDRINUSE', port === 0 ? 'no port is free' : `port ${port} is in use`);
    return bound;
  }

  #transfer(cpu: Cpu, address: number, lengthBytes: number, flags: TransferFlags): Transfer {
    if (!Number.isSafeInteger(lengthBytes) || lengthBytes < 0)
      throw new NetError('EINVAL', `lengthBytes is ${lengthBytes}, expected a whole number of at least 0`);
    if (!Number.isSafeInteger(address) || address < 0)
      throw new NetError('EFAULT', `address is ${address}, expected a whole number of at least 0`);
    return {
      cpu,
      memory: this.#memory,
      address,
      lengthBytes,
      isWaiting: flags.dontWait !== true,
      isWhole: flags.waitAll === true,
    };
  }

  #queuesOf(fd: number): WaitQueue[] {
    const socket = this.#sockets.get(fd);
    if (socket?.listener !== undefined) return [socket.listener.acceptable];
    if (socket?.connection === undefined) return [];
    return [socket.connection.readers, socket.connection.writers];
  }

  #ready({ fd, events }: PollRequest): PollResult[] {
    const socket = this.#sockets.get(fd);
    if (socket === undefined) return ['POLLNVAL'];
    if (socket.listener !== undefined) {
      return events.includes('POLLIN') && socket.listener.hasWaiting ? ['POLLIN'] : [];
    }
    const { connection } = socket;
    if (connection === undefined || socket.isConnecting) return ['POLLHUP'];
    const results: PollResult[] = [];
    const { received } = connection;
    const canRead =
      received.readableBytes > 0 || connection.hasFin || connection.isReadShut || connection.isOver;
    if (events.includes('POLLIN') && canRead) results.push('POLLIN');
    if (events.includes('POLLOUT') && connection.canQueue && connection.hasSendRoom) results.push('POLLOUT');
    if (connection.error !== undefined) results.push('POLLERR');
    if (connection.isOver) results.push('POLLHUP');
    return results;
  }
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 0 || port > portMax)
    throw new NetError('EINVAL', `port is ${port}, expected 0 to ${portMax}`);
}
