/**
 * A vfio-user client in the server's own thread: sends QEMU's messages, or arbitrary bytes of a test, and waits for replies
 * while it drives the server (`pump`, a reactor's poll).
 */
import { ftruncateSync } from 'node:fs';
import { type Initial, viewOf } from '../../../base/index.ts';
import { Connection, NOTHING_YET } from '../native/connection.ts';
import { nativeLibrary } from '../native/library.ts';
import { connectTo } from '../native/listener.ts';
import { NativeCallError } from '../native/native-call-error.ts';
import {
  ACTION_TRIGGER,
  Command,
  DATA_EVENTFD,
  DATA_NONE,
  dmaMap,
  dmaUnmap,
  HEADER_BYTES,
  header,
  regionAccess,
  setInterrupts,
  version,
} from '../vfio-user/protocol.ts';
import { Outbox } from './outbox.ts';
import { sendWith } from './socket.ts';

export interface Answer {
  readonly id: number;
  readonly command: number;
  /** 0: success. */
  readonly errno: number;
  readonly payload: Uint8Array;
}

export interface SendOptions {
  readonly descriptors?: readonly number[];
  readonly noReply?: boolean;
}

/** Capabilities that QEMU 11 proposes (hw/vfio-user/proxy.c, caps_json). */
export const qemuCapabilities = {
  capabilities: {
    migration: { pgsize: 4096, max_bitmap_size: 268_435_456 },
    max_msg_fds: 16,
    max_data_xfer_size: 1_048_576,
    pgsizes: 4096,
    max_dma_maps: 65_535,
    write_multiple: true,
  },
};

const pumpCountMax = 10_000;

export class VfioUserClient {
  readonly #pump: () => void;
  readonly #connection: Connection;
  readonly #inbox = new Uint8Array(new ArrayBuffer(2 ** 21));
  readonly #inboxView = viewOf(this.#inbox);
  readonly #inboxAddress = nativeLibrary().addressOf(this.#inbox.buffer);
  #inboxBytes = 0;
  #nextId = 1;
  readonly #outbox = new Outbox();
  #hasUnanswered = false;

  /** Connects; `pump` lets the server work without waiting. */
  constructor(path: string, pump: () => void) {
    const descriptor = connectTo(path);
    if (descriptor < 0) throw new NativeCallError('connect', -descriptor);
    this.#pump = pump;
    this.#connection = new Connection(descriptor, 16);
  }

  get descriptor(): number {
    return this.#connection.descriptor;
  }

  /** Sends bytes in one send, with descriptors, after queued messages; throws NativeCallError if the server has disconnected. */
  send(bytes: Uint8Array, descriptors: readonly number[] = []): void {
    this.flush();
    this.#hasUnanswered = true;
    this.#sendAll(bytes, descriptors);
  }

  /** Sends the messages queued by {@link postLater} and {@link readLater}. */
  flush(): void {
    if (!this.#outbox.isEmpty) this.#sendAll(this.#outbox.take(), []);
  }

  #sendAll(bytes: Uint8Array, descriptors: readonly number[]): void {
    let rest = bytes;
    let attached = descriptors;
    for (let tries = 0; rest.length > 0; tries++) {
      const sent = sendWith(this.descriptor, rest, attached);
      if (sent > 0) {
        rest = rest.subarray(sent);
        attached = [];
      } else {
        if (tries > pumpCountMax) throw new Error('the server takes nothing');
        this.#pump();
      }
    }
  }

  /** Sends one command; returns its message id. */
  command(
    command: number,
    payload: Uint8Array,
    { descriptors = [], noReply = false }: SendOptions = {},
  ): number {
    const id = this.#newId();
    this.flush();
    this.#sendAll(messageOf({ id, command, noReply: noReply ? 1 : 0 }, payload), descriptors);
    return id;
  }

  /** Sends one command and waits for its reply. */
  request(command: number, payload: Uint8Array, options: SendOptions = {}): Answer {
    return this.#answerTo(this.command(command, payload, options), command);
  }

  #answerTo(id: number, command: number): Answer {
    this.#pump();
    const answer = this.answer();
    if (answer === undefined) throw new Error('the server closed the connection');
    if (answer.id !== id || answer.command !== command)
      throw new Error(`reply to ${answer.command}, not ${command}`);
    return answer;
  }

  /** The next reply; undefined if the server has closed the connection. */
  answer(): Answer | undefined {
    for (let tries = 0; tries < pumpCountMax; tries++) {
      const answer = this.#takeAnswer();
      if (answer !== undefined) return answer;
      if (this.#receive() > 0) continue;
      if (this.#isClosed) return undefined;
      this.#pump();
    }
    throw new Error('no reply');
  }

  /** Whether the server has closed the connection, or does so while it works, without another reply. */
  isDropped(): boolean {
    for (let tries = 0; tries < pumpCountMax; tries++) {
      if (this.#takeAnswer() !== undefined) return false;
      if (this.#receive() > 0) continue;
      if (this.#isClosed) return true;
      this.#pump();
    }
    return false;
  }

  /** Lets the server work, and returns whether it has replied. */
  isSilent(): boolean {
    for (let tries = 0; tries < 10; tries++) this.#pump();
    this.#receive();
    return this.#inboxBytes === 0;
  }

  /** Reads all present replies to any messages: for callers that have let the server process everything. */
  forget(): void {
    do this.#inboxBytes = 0;
    while (this.#receive() > 0);
    this.#inboxBytes = 0;
    this.#hasUnanswered = false;
  }

  handshake(data: unknown = qemuCapabilities): Answer {
    return this.request(Command.VERSION, versionPayload(0, 0, `${JSON.stringify(data)}\0`));
  }

  map(values: Initial<typeof dmaMap>, descriptor = -1): number {
    const payload = dmaMap.encode({ argumentBytes: dmaMap.sizeBytes, ...values });
    const descriptors = descriptor < 0 ? [] : [descriptor];
    return this.request(Command.DMA_MAP, payload, { descriptors }).errno;
  }

  unmap(values: Initial<typeof dmaUnmap>): Answer {
    const payload = dmaUnmap.encode({ argumentBytes: dmaUnmap.sizeBytes, ...values });
    return this.request(Command.DMA_UNMAP, payload);
  }

  /** Sets the eventfds of some vectors, or removes them if none are given. */
  setEventfds(
    index: number,
    start: number,
    count: number,
    descriptors: readonly number[],
    action: number = ACTION_TRIGGER,
  ): number {
    const payload = setInterrupts.encode({
      argumentBytes: setInterrupts.sizeBytes,
      dataType: DATA_EVENTFD,
      action,
      index,
      start,
      count,
    });
    return this.request(Command.DEVICE_SET_IRQS, payload, { descriptors }).errno;
  }

  /** SET_IRQS without data: `action` on a range of vectors. */
  actOnInterrupts(action: number, index: number, start: number, count: number): number {
    const payload = setInterrupts.encode({
      argumentBytes: setInterrupts.sizeBytes,
      dataType: DATA_NONE,
      action,
      index,
      start,
      count,
    });
    return this.request(Command.DEVICE_SET_IRQS, payload).errno;
  }

  /** The bytes read, or the errno. */
  read(region: number, offset: number, count: number): Uint8Array | number {
    const id = this.#newId();
    this.flush();
    this.#outbox.read(id, region, offset, count);
    this.flush();
    const answer = this.#answerTo(id, Command.REGION_READ);
    return answer.errno === 0 ? answer.payload.slice(regionAccess.sizeBytes) : answer.errno;
  }

  write(region: number, offset: number, bytes: Uint8Array): number {
    return this.request(Command.REGION_WRITE, writePayload(region, offset, bytes)).errno;
  }

  /** Like QEMU's messages for a guest's stores: requests no reply. */
  post(region: number, offset: number, bytes: Uint8Array): void {
    this.postLater(region, offset, bytes);
    this.flush();
  }

  /** Messages were sent or queued whose replies {@link forget} has not read. */
  get hasUnanswered(): boolean {
    return this.#hasUnanswered;
  }

  /** Like {@link post}, sent with the next message. */
  postLater(region: number, offset: number, bytes: Uint8Array): void {
    this.#hasUnanswered = true;
    if (this.#outbox.isFullFor(bytes.length)) this.flush();
    if (this.#outbox.isFullFor(bytes.length)) {
      this.command(Command.REGION_WRITE, writePayload(region, offset, bytes), { noReply: true });
      return;
    }
    this.#outbox.write(this.#newId(), region, offset, bytes);
  }

  /** A read sent with the next message; the message ID of its reply. */
  readLater(region: number, offset: number, count: number): number {
    this.#hasUnanswered = true;
    if (this.#outbox.isFullFor(0)) this.flush();
    const id = this.#newId();
    this.#outbox.read(id, region, offset, count);
    return id;
  }

  close(): void {
    this.#connection.close();
  }

  #isClosed = false;

  #newId(): number {
    return this.#nextId++ & 0xffff;
  }

  #receive(): number {
    const room = this.#inbox.length - this.#inboxBytes;
    const count = this.#connection.receive(this.#inboxAddress + this.#inboxBytes, room);
    if (count > 0) this.#inboxBytes += count;
    else if (count !== NOTHING_YET) this.#isClosed = true;
    return count;
  }

  #takeAnswer(): Answer | undefined {
    if (this.#inboxBytes < HEADER_BYTES) return undefined;
    const view = this.#inboxView;
    const [sizeBytes, errno] = [header.fields.sizeBytes.get(view, 0), header.fields.errno.get(view, 0)];
    const [type, isError] = [header.fields.type.get(view, 0), header.fields.isError.get(view, 0)];
    if (type !== 1 || (isError === 0) !== (errno === 0)) throw new Error('not a proper reply');
    if (this.#inboxBytes < sizeBytes) return undefined;
    const [id, command] = [header.fields.id.get(view, 0), header.fields.command.get(view, 0)];
    const payload = this.#inbox.slice(HEADER_BYTES, sizeBytes);
    this.#inbox.copyWithin(0, sizeBytes, this.#inboxBytes);
    this.#inboxBytes -= sizeBytes;
    return { id, command, errno, payload };
  }
}

/** A message with its header; `sizeBytes` is right unless given. */
export function messageOf(
  values: Initial<typeof header>,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const sizeBytes = HEADER_BYTES + payload.length;
  return Buffer.concat([header.encode({ sizeBytes, ...values }), payload]);
}

export function versionPayload(major: number, minor: number, data: string): Uint8Array {
  return Buffer.concat([version.encode({ major, minor }), Buffer.from(data)]);
}

export function writePayload(region: number, offset: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([regionAccess.encode({ offset: BigInt(offset), region, count: bytes.length }), bytes]);
}

/** A memfd of a size; with `canSeal` QEMU's kind, which can be sealed. The caller closes it. */
export function createMemfd(sizeBytes: number, { canSeal = true } = {}): number {
  const MFD_CLOEXEC = 1;
  const MFD_ALLOW_SEALING = 2;
  const flags = canSeal ? MFD_CLOEXEC | MFD_ALLOW_SEALING : MFD_CLOEXEC;
  const descriptor = nativeLibrary().memfdCreate('guest-ram', flags);
  ftruncateSync(descriptor, sizeBytes);
  return descriptor;
}
