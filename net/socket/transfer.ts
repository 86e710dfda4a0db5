/**
 * The data path of a socket: user bytes into packet buffers, and back. Every byte is really copied, and charged.
 *
 *     send: wait for room ─► fill the last buffer, or a new one ─► queue ─► output … until all is queued
 *     recv: wait for bytes ─► copy from the oldest buffers, free them ─► announce the window when it has grown enough
 *
 * A missing page of the user is faulted in while the thread waits; the stack continues meanwhile.
 */
import { usToPs } from '../../base/index.ts';
import type { Cpu, UserMemory } from '../platform.ts';
import {
  type Connection,
  isWindowWorthAnnouncing,
  output,
  type PacketBuffer,
  sequenceAdd,
} from '../stack/index.ts';
import { type NetErrno, NetError } from './net-error.ts';
import type { Socket } from './socket.ts';

/** Packet buffers that senders leave for received frames. */
const receiveReserve = 4;

export interface Transfer {
  readonly cpu: Cpu;
  readonly memory: UserMemory;
  readonly address: number;
  readonly lengthBytes: number;
  /** MSG_DONTWAIT, or a nonblocking socket. */
  readonly isWaiting: boolean;
  /** MSG_WAITALL. */
  readonly isWhole: boolean;
}

/** Queues bytes. @returns how many; fewer than requested after an error, or if the call must not wait */
export async function sendBytes(socket: Socket, transfer: Transfer): Promise<number> {
  const { cpu, lengthBytes } = transfer;
  let done = 0;
  try {
    while (done < lengthBytes) {
      const connection = await untilRoom(socket, transfer, done);
      done += await queueSome(connection, transfer, done);
      output(cpu, connection);
      await connection.environment.device.flush(cpu);
    }
  } catch (error) {
    if (!(error instanceof NetError) || done === 0) throw error;
  }
  return done;
}

/**
 * Error that ended the connection. A call that has moved bytes reports those, and leaves the error to the next call. If it
 * consumed the error, a reset connection would look to the next call like the end of the stream (Linux: sk_err).
 */
const errorFor = (socket: Socket, done: number): NetErrno | undefined =>
  done > 0 ? socket.connection?.error : socket.takeError();

/** Waits until the send queue accepts a buffer. */
async function untilRoom(socket: Socket, { cpu, isWaiting }: Transfer, done: number): Promise<Connection> {
  for (;;) {
    const connection = socket.established();
    if (!connection.canQueue) {
      const error = errorFor(socket, done);
      if (error !== undefined) throw new NetError(error, 'the connection has ended');
      throw new NetError('EPIPE', 'nothing can be sent on this connection any more');
    }
    if (connection.hasSendRoom) return connection;
    if (!isWaiting) throw new NetError('EAGAIN', 'the send buffer is full');
    await connection.writers.wait(cpu);
  }
}

/** Copies the next bytes into the last buffer if that has room and was never sent, else into a new one. */
async function queueSome(connection: Connection, transfer: Transfer, done: number): Promise<number> {
  const left = transfer.lengthBytes - done;
  const tail = connection.sendQueue.at(-1);
  const room = tail === undefined || tail.isSent ? 0 : connection.segmentBytes - tail.length;
  if (tail !== undefined && room > 0) {
    return fillTail(connection, tail, transfer, done, Math.min(left, room));
  }
  const buffer = await takeBuffer(connection, transfer.cpu);
  const count = Math.min(left, connection.segmentBytes);
  buffer.start = connection.version.headroomBytes;
  let isQueued = false;
  try {
    await copyIn(connection, buffer, transfer, done, count);
    if (connection.canQueue) {
      buffer.sequence = connection.queueEnd;
      connection.sendQueue.push(buffer);
      queued(connection, buffer, count);
      isQueued = true;
    }
  } finally {
    if (!isQueued) connection.environment.device.buffers.give(buffer);
  }
  return isQueued ? count : 0;
}

/** This number of bytes after those of the buffer belongs to the stream: neither data nor a FIN was queued after them. */
function queued(connection: Connection, buffer: PacketBuffer, count: number): void {
  buffer.length += count;
  connection.queueEnd = sequenceAdd(connection.queueEnd, count);
}

async function fillTail(
  connection: Connection,
  tail: PacketBuffer,
  transfer: Transfer,
  done: number,
  count: number,
): Promise<number> {
  // A buffer is not sent while it is being filled.
  connection.filling = tail;
  let isFilled = false;
  try {
    await copyIn(connection, tail, transfer, done, count);
    isFilled = connection.canQueue;
    if (isFilled) queued(connection, tail, count);
  } finally {
    connection.filling = undefined;
    // The connection ended meanwhile, and left the buffer to this call.
    if (!connection.sendQueue.includes(tail)) connection.environment.device.buffers.give(tail);
    else if (!isFilled) output(transfer.cpu, connection);
  }
  return isFilled ? count : 0;
}

async function copyIn(
  connection: Connection,
  buffer: PacketBuffer,
  { cpu, memory, address }: Transfer,
  done: number,
  count: number,
): Promise<void> {
  const { platform, counts } = connection.environment;
  const at = buffer.physical + buffer.length;
  cpu.charge('copy', platform.costs.copyFixed + Math.ceil(count / platform.costs.copyBytesPerCycle));
  const isRead = await memory.load(cpu, address + done, platform.memory.bytes.subarray(at, at + count));
  if (!isRead) throw new NetError('EFAULT', `no memory at 0x${(address + done).toString(16)}`);
  counts.copiesIn++;
  counts.copiedInBytes += count;
  await cpu.settle();
}

/** A packet buffer; if memory is exhausted, waits for some time before it fails. */
async function takeBuffer(connection: Connection, cpu: Cpu): Promise<PacketBuffer> {
  const { device, config, costs } = connection.environment;
  for (let tried = 0; ; tried++) {
    const buffer = device.buffers.take(receiveReserve);
    if (buffer !== undefined) {
      cpu.charge('protocol', costs.bufferAllocate);
      return buffer;
    }
    if (tried === config.memoryTries) throw new NetError('ENOBUFS', 'the kernel has no packet buffers left');
    connection.environment.counts.contextSwitches++;
    await cpu.sleep(usToPs(config.memoryWaitUs));
  }
}

/** Reads bytes. @returns how many; 0 at the end of the stream */
export async function receiveBytes(socket: Socket, transfer: Transfer): Promise<number> {
  let done = 0;
  try {
    while (done < transfer.lengthBytes) {
      const connection = await untilReadable(socket, transfer, done);
      if (connection === undefined) break;
      done += await readSome(connection, transfer, done);
      const isEnough = !transfer.isWhole && connection.received.readableBytes === 0;
      if (isEnough) break;
    }
  } catch (error) {
    if (!(error instanceof NetError) || done === 0) throw error;
  }
  return done;
}

/** Waits for bytes; undefined at the end of the stream. */
async function untilReadable(
  socket: Socket,
  { cpu, isWaiting }: Transfer,
  done: number,
): Promise<Connection | undefined> {
  for (;;) {
    const connection = socket.established();
    if (connection.received.readableBytes > 0) return connection;
    const error = errorFor(socket, done);
    if (error !== undefined) throw new NetError(error, 'the connection has ended');
    if (connection.hasFin || connection.isReadShut || connection.isOver) return undefined;
    if (!isWaiting) throw new NetError('EAGAIN', 'nothing has arrived');
    await connection.readers.wait(cpu);
  }
}

async function readSome(connection: Connection, transfer: Transfer, done: number): Promise<number> {
  const { cpu, memory, address, lengthBytes } = transfer;
  const { received, environment } = connection;
  const { platform, counts, costs } = environment;
  const head = received.head!;
  const count = Math.min(head.length, lengthBytes - done);
  const at = head.physical;
  cpu.charge('copy', platform.costs.copyFixed + Math.ceil(count / platform.costs.copyBytesPerCycle));
  const isWritten = await memory.store(cpu, address + done, platform.memory.bytes.subarray(at, at + count));
  if (!isWritten) throw new NetError('EFAULT', `no memory at 0x${(address + done).toString(16)}`);
  counts.copiesOut++;
  counts.copiedOutBytes += count;
  cpu.charge('protocol', received.consume(count) * costs.bufferFree);
  if (!connection.isOver && isWindowWorthAnnouncing(connection)) {
    connection.isAckDue = true;
    output(cpu, connection);
  }
  await environment.device.flush(cpu);
  return count;
}
