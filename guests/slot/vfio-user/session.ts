/**
 * One client, from its first byte to its last: reads messages, carries out each in order, replies.
 *
 *   accepted ──VERSION──► agreed ──(end of stream | malformed message | does not read)──► over
 *
 * The first message must be VERSION: a client that sends anything else is disconnected. A command that cannot be carried out
 * gets an error reply; one that breaks the framing (size, type, lost descriptors) ends the connection. `close` releases
 * everything of the client: maps, files, eventfds, the socket.
 */
import { constants } from 'node:os';
import { PCI_INTERRUPT_COUNT, PCI_REGION_COUNT, type VfioUserDevice } from '../device.ts';
import { DmaMap } from '../memory.ts';
import { Connection, END_OF_STREAM, NOTHING_YET } from '../native/connection.ts';
import { nativeLibrary } from '../native/library.ts';
import { hasHungUp } from '../native/poll.ts';
import { ClientInterrupts } from './client-interrupts.ts';
import type { ServerCounters } from './counters.ts';
import { DeviceRegions } from './device-regions.ts';
import { answerVersion } from './handshake.ts';
import { INCOMPLETE, MALFORMED, MessageStream } from './message-stream.ts';
import type { VfioUserConfig } from './parameters.ts';
import { Command, deviceInfo, dmaMap, dmaUnmap, HEADER_BYTES, header, regionAccess } from './protocol.ts';
import { PAYLOAD_OFFSET, Reply } from './reply.ts';

const { EINVAL, ENOTSUP } = constants.errno;
const { id: idField, command: commandField, noReply: noReplyField, isError: isErrorField } = header.fields;
/** Room for headers around the longest data, and for the longest VERSION. */
const overheadBytes = HEADER_BYTES + 32_768;

/** Buffers that a server reuses for the next client. */
export class SessionBuffers {
  readonly stream: MessageStream;
  readonly streamAddress: number;
  readonly reply: Reply;

  constructor(config: VfioUserConfig) {
    const messageBytesMax = overheadBytes + regionAccess.sizeBytes + config.maxDataTransferBytes;
    this.stream = new MessageStream(messageBytesMax, config.maxMessageDescriptors);
    this.streamAddress = nativeLibrary().addressOf(this.stream.bytes.buffer as ArrayBuffer);
    this.reply = new Reply(overheadBytes + regionAccess.sizeBytes + config.maxDataTransferBytes);
  }
}

export class Session {
  /** Why it is over, in words; undefined while it is not. */
  endReason: string | undefined;
  /** Whether the client disconnected by itself, without an incomplete message. */
  isCleanEnd = false;

  readonly #device: VfioUserDevice;
  readonly #config: VfioUserConfig;
  readonly #counters: ServerCounters;
  readonly #connection: Connection;
  readonly #stream: MessageStream;
  readonly #streamAddress: number;
  readonly #reply: Reply;
  readonly #memory: DmaMap;
  readonly #interrupts: ClientInterrupts;
  readonly #regions: DeviceRegions;
  readonly #acceptedMs = performance.now();
  /** When the last part of an incomplete message arrived; 0: no message is incomplete. */
  #partCameMs = 0;
  #hasAgreed = false;

  constructor(
    descriptor: number,
    device: VfioUserDevice,
    config: VfioUserConfig,
    buffers: SessionBuffers,
    counters: ServerCounters,
  ) {
    this.#device = device;
    this.#config = config;
    this.#counters = counters;
    this.#connection = new Connection(descriptor, config.maxMessageDescriptors);
    this.#stream = buffers.stream;
    this.#streamAddress = buffers.streamAddress;
    this.#reply = buffers.reply;
    this.#memory = new DmaMap(config);
    this.#interrupts = new ClientInterrupts(device);
    this.#regions = new DeviceRegions(device, this.#reply, config.maxDataTransferBytes);
  }

  /** Descriptor for poll. */
  get descriptor(): number {
    return this.#connection.descriptor;
  }

  /**
   * Descriptor for poll, and for {@link answerUnmask}; -1 for none.
   */
  get unmaskDescriptor(): number {
    return this.#interrupts.unmaskDescriptor;
  }

  /** See ClientInterrupts. */
  answerUnmask(): boolean {
    return this.#interrupts.answerUnmask();
  }

  /** Whether the client has disconnected or will send no more; its sent messages may still be unread. */
  get hasHungUp(): boolean {
    return hasHungUp(this.#connection.descriptor);
  }

  /** Milliseconds of wall clock until it must be pumped even if nothing has arrived. */
  get attentionMs(): number {
    const { handshakeWaitMs, messageWaitMs } = this.#config;
    const agreeEndMs = this.#hasAgreed ? Infinity : this.#acceptedMs + handshakeWaitMs;
    const partEndMs = this.#partCameMs === 0 ? Infinity : this.#partCameMs + messageWaitMs;
    const endMs = Math.min(agreeEndMs, partEndMs);
    return endMs === Infinity ? Infinity : Math.max(0, endMs - performance.now());
  }

  /** Reads once if no message is present, and processes at most `countMax` messages. Returns whether anything had arrived. */
  pump(countMax: number): boolean {
    let count = 0;
    let hasRead = false;
    while (this.endReason === undefined && count < countMax) {
      const sizeBytes = this.#stream.peek();
      if (sizeBytes === MALFORMED) this.#end('it sent a message with an impossible size or type');
      else if (sizeBytes !== INCOMPLETE) {
        this.#carryOut(sizeBytes);
        count++;
      } else {
        if (hasRead || !this.#receive()) break;
        hasRead = true;
      }
    }
    if (!this.#isInMessage) this.#partCameMs = 0;
    else if (hasRead || this.#partCameMs === 0) this.#partCameMs = performance.now();
    return count > 0 || hasRead;
  }

  /** Ends it from our side, or after `endReason` was set: releases everything. */
  close(): void {
    this.endReason ??= 'the server was closed';
    this.#interrupts.release();
    this.#memory.release();
    this.#stream.close();
    this.#connection.close();
    if (this.#hasAgreed) this.#device.clientDisconnected();
  }

  /** Part of a message has arrived, but not the rest. */
  get #isInMessage(): boolean {
    return this.#stream.end > this.#stream.begin && this.#stream.peek() === INCOMPLETE;
  }

  #end(reason: string): void {
    this.endReason ??= reason;
  }

  /** False if nothing was available. */
  #receive(): boolean {
    const stream = this.#stream;
    const connection = this.#connection;
    stream.prepare();
    const count = connection.receive(this.#streamAddress + stream.end, stream.room);
    if (count > 0) {
      if (!stream.append(count, connection.descriptors, connection.descriptorCount)) {
        this.#end(`it sent more than ${this.#config.maxMessageDescriptors} descriptors with one message`);
      } else if (connection.hasLostDescriptors) {
        this.#end('descriptors were lost: it sent too many with one message, or the server may open no more');
      }
      return true;
    }
    if (count === NOTHING_YET) {
      if (this.attentionMs === 0) {
        this.#end(
          this.#hasAgreed
            ? 'it stopped in the middle of a message'
            : 'it did not say which version it speaks',
        );
      }
      return false;
    }
    this.isCleanEnd = count === END_OF_STREAM && stream.end === stream.begin;
    this.#end(
      this.isCleanEnd ? 'it closed the connection' : 'the connection broke in the middle of a message',
    );
    return false;
  }

  #carryOut(sizeBytes: number): void {
    const stream = this.#stream;
    const { view, begin } = stream;
    const id = idField.get(view, begin);
    const command = commandField.get(view, begin);
    const wantsReply = noReplyField.get(view, begin) === 0;
    stream.take(sizeBytes);
    this.#counters.messageCount++;
    const isError = isErrorField.get(view, begin) !== 0;
    const result = isError
      ? -EINVAL
      : this.#dispatch(command, begin + HEADER_BYTES, sizeBytes - HEADER_BYTES);
    if (stream.descriptorCount > 0) stream.closeTaken();
    if (result < 0) this.#counters.errorReplyCount++;
    if (!wantsReply) return;
    const reply = this.#reply;
    const replyBytes = result < 0 ? reply.fail(id, command, -result) : reply.succeed(id, command, result);
    if (!this.#connection.sendAll(reply.address, replyBytes, this.#config.sendWaitMs)) {
      this.#end('it took no replies');
    }
  }

  /** Bytes of the reply's payload, or minus an errno. */
  #dispatch(command: number, offset: number, payloadBytes: number): number {
    const { bytes, view, descriptorCount } = this.#stream;
    if (!this.#hasAgreed) return this.#handshake(command, offset, payloadBytes);
    if (descriptorCount > 0 && command !== Command.DMA_MAP && command !== Command.DEVICE_SET_IRQS) {
      return -EINVAL;
    }
    switch (command) {
      case Command.REGION_READ:
        this.#counters.regionReadCount++;
        return this.#regions.read(view, offset, payloadBytes);
      case Command.REGION_WRITE:
        this.#counters.regionWriteCount++;
        return this.#regions.write(bytes, view, offset, payloadBytes);
      case Command.REGION_WRITE_MULTI:
        this.#counters.regionWriteCount++;
        return this.#regions.writeMulti(bytes, view, offset, payloadBytes);
      case Command.DEVICE_RESET:
        this.#device.reset();
        return 0;
    }
    return this.#dispatchRare(command, bytes.subarray(offset, offset + payloadBytes));
  }

  #dispatchRare(command: number, payload: Uint8Array): number {
    switch (command) {
      case Command.DMA_MAP:
        return this.#mapMemory(payload);
      case Command.DMA_UNMAP:
        return this.#unmapMemory(payload);
      case Command.DEVICE_GET_INFO:
        return this.#answerDeviceInfo(payload);
      case Command.DEVICE_GET_REGION_INFO:
        return this.#regions.answerInfo(payload);
      case Command.DEVICE_GET_REGION_IO_FDS:
        return this.#regions.answerIoDescriptors(payload);
      case Command.DEVICE_GET_IRQ_INFO:
        return this.#interrupts.answerInfo(payload, this.#reply);
      case Command.DEVICE_SET_IRQS:
        return this.#interrupts.set(payload, this.#stream);
      case Command.DIRTY_PAGES:
      case Command.DEVICE_FEATURE:
      case Command.MIG_DATA_READ:
      case Command.MIG_DATA_WRITE:
        return -ENOTSUP;
      default:
        return -EINVAL;
    }
  }

  #handshake(command: number, offset: number, payloadBytes: number): number {
    const payload = this.#stream.bytes.subarray(offset, offset + payloadBytes);
    const result = command === Command.VERSION ? answerVersion(payload, this.#reply, this.#config) : -EINVAL;
    if (result < 0) {
      this.#end('its first message was no proposal of a version that we speak');
      return result;
    }
    this.#hasAgreed = true;
    this.#counters.clientCount++;
    this.#device.clientConnected(this.#memory);
    return result;
  }

  #answerDeviceInfo(payload: Uint8Array): number {
    const { sizeBytes } = deviceInfo;
    if (payload.length < sizeBytes || deviceInfo.decode(payload).argumentBytes < sizeBytes) return -EINVAL;
    deviceInfo.encodeInto(
      {
        argumentBytes: sizeBytes,
        canReset: 1,
        isPci: 1,
        regionCount: PCI_REGION_COUNT,
        interruptCount: PCI_INTERRUPT_COUNT,
      },
      this.#reply.bytes,
      PAYLOAD_OFFSET,
    );
    return sizeBytes;
  }

  #mapMemory(payload: Uint8Array): number {
    const stream = this.#stream;
    if (payload.length < dmaMap.sizeBytes || stream.descriptorCount > 1) return -EINVAL;
    const request = dmaMap.decode(payload);
    if (request.argumentBytes < dmaMap.sizeBytes || request.otherFlags !== 0) return -EINVAL;
    const descriptor = stream.descriptorCount === 1 ? stream.descriptors[0]! : -1;
    stream.descriptorCount = 0;
    this.#counters.dmaMapCount++;
    return -this.#memory.map({
      address: Number(request.address),
      sizeBytes: Number(request.sizeBytes),
      isReadable: request.readable === 1,
      isWritable: request.writable === 1,
      descriptor,
      fileOffset: Number(request.fileOffset),
    });
  }

  #unmapMemory(payload: Uint8Array): number {
    if (payload.length < dmaUnmap.sizeBytes) return -EINVAL;
    const request = dmaUnmap.decode(payload);
    if (request.argumentBytes < dmaUnmap.sizeBytes || request.otherFlags !== 0) return -EINVAL;
    if (request.getDirtyBitmap !== 0) return -ENOTSUP;
    const isAll = request.all !== 0;
    if (isAll && (request.address !== 0n || request.sizeBytes !== 0n)) return -EINVAL;
    this.#counters.dmaUnmapCount++;
    if (isAll) this.#memory.unmapAll();
    else {
      const errno = this.#memory.unmap(Number(request.address), Number(request.sizeBytes));
      if (errno !== 0) return -errno;
    }
    this.#reply.bytes.set(payload.subarray(0, dmaUnmap.sizeBytes), PAYLOAD_OFFSET);
    return dmaUnmap.sizeBytes;
  }
}
