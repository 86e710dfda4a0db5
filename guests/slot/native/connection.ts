/**
 * One connected UNIX stream socket: reads into one large buffer, together with descriptors, and sends completely.
 *
 * A stream read ends after the first send that carried descriptors (Linux net/unix/af_unix.c, unix_stream_read_generic: it
 * stops after the buffer whose descriptors it has handed out), and a send's descriptors arrive with its first byte. So the
 * descriptors of one read belong to the last send in it; the reader of the stream determines the message
 * (vfio-user/message-stream.ts).
 *
 * Nothing is allocated per call. No call waits, except `sendAll` on a peer that does not read: at most its limit, by
 * the wall clock.
 */
import { constants } from 'node:os';
import { nativeLibrary } from './library.ts';
import { closeDescriptor, PollSet } from './poll.ts';
import {
  controlBytesOf,
  controlHeader,
  iovec,
  MSG_CMSG_CLOEXEC,
  MSG_CTRUNC,
  MSG_DONTWAIT,
  MSG_NOSIGNAL,
  messageHeader,
  POLLOUT,
  SCM_RIGHTS,
  SOL_SOCKET,
} from './structures.ts';

const { EAGAIN, EINTR } = constants.errno;

/** Results of `receive` in addition to the number of bytes. */
export const END_OF_STREAM = 0;
export const NOTHING_YET = -1;
export const CONNECTION_BROKEN = -2;

const vectorOffset = messageHeader.sizeBytes;
const controlOffset = vectorOffset + iovec.sizeBytes;

export class Connection {
  /** Descriptors received by the last `receive`; its caller owns them. */
  readonly descriptors: Int32Array;
  descriptorCount = 0;
  /** The last `receive` lost descriptors: more arrived than fit, or this process cannot open more. */
  hasLostDescriptors = false;

  readonly #native = nativeLibrary();
  readonly #controlBytes: number;
  readonly #view: DataView;
  readonly #address: number;
  readonly #writable = new PollSet(1);
  #descriptor: number;

  /** @param descriptorCountMax descriptors accepted in one read; the kernel closes the rest */
  constructor(descriptor: number, descriptorCountMax: number) {
    this.#descriptor = descriptor;
    this.descriptors = new Int32Array(descriptorCountMax + 1);
    this.#controlBytes = controlBytesOf(descriptorCountMax);
    const buffer = new ArrayBuffer(controlOffset + this.#controlBytes);
    this.#view = new DataView(buffer);
    this.#address = this.#native.addressOf(buffer);
    messageHeader.fields.vectors.setNumber(this.#view, 0, this.#address + vectorOffset);
    messageHeader.fields.vectorCount.setNumber(this.#view, 0, 1);
    messageHeader.fields.control.setNumber(this.#view, 0, this.#address + controlOffset);
  }

  /** The socket, for poll; -1 when closed. */
  get descriptor(): number {
    return this.#descriptor;
  }

  /** Reads available bytes, up to `lengthBytes` (above zero), to an address; returns their number or a result from above. */
  receive(address: number, lengthBytes: number): number {
    const { fields } = messageHeader;
    iovec.fields.base.setNumber(this.#view, vectorOffset, address);
    iovec.fields.lengthBytes.setNumber(this.#view, vectorOffset, lengthBytes);
    fields.controlBytes.setNumber(this.#view, 0, this.#controlBytes);
    fields.flags.set(this.#view, 0, 0);
    this.descriptorCount = 0;
    this.hasLostDescriptors = false;
    const count = this.#native.receiveMessage(
      this.#descriptor,
      this.#address,
      MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
    );
    if (count < 0) {
      const errno = this.#native.errno();
      return errno === EAGAIN || errno === EINTR ? NOTHING_YET : CONNECTION_BROKEN;
    }
    if (fields.controlBytes.getLowWord(this.#view, 0) > 0) this.#takeDescriptors();
    this.hasLostDescriptors = (fields.flags.get(this.#view, 0) & MSG_CTRUNC) !== 0;
    return count;
  }

  /** Sends as much as the socket accepts at once; returns the number of bytes, NOTHING_YET or CONNECTION_BROKEN. */
  send(address: number, lengthBytes: number): number {
    const count = this.#native.send(this.#descriptor, address, lengthBytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) return count;
    const errno = this.#native.errno();
    return errno === EAGAIN || errno === EINTR ? NOTHING_YET : CONNECTION_BROKEN;
  }

  /** Sends all of it. Returns false if the peer has disconnected, or accepts nothing for `waitLimitMs`: the caller must then close the connection. */
  sendAll(address: number, lengthBytes: number, waitLimitMs: number): boolean {
    let sentBytes = 0;
    let startMs = -1;
    while (sentBytes < lengthBytes) {
      const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
      const count = this.#native.send(this.#descriptor, address + sentBytes, lengthBytes - sentBytes, flags);
      if (count >= 0) {
        sentBytes += count;
        continue;
      }
      const errno = this.#native.errno();
      if (errno === EINTR) continue;
      if (errno !== EAGAIN) return false;
      const nowMs = performance.now();
      if (startMs < 0) startMs = nowMs;
      const leftMs = startMs + waitLimitMs - nowMs;
      if (leftMs <= 0) return false;
      this.#writable.clear();
      this.#writable.add(this.#descriptor, POLLOUT);
      this.#writable.wait(leftMs);
    }
    return true;
  }

  /** Closes the socket; further calls are not allowed. */
  close(): void {
    if (this.#descriptor < 0) return;
    closeDescriptor(this.#descriptor);
    this.#descriptor = -1;
  }

  #takeDescriptors(): void {
    const { lengthBytes, level, type } = controlHeader.fields;
    const endOffset = controlOffset + messageHeader.fields.controlBytes.getLowWord(this.#view, 0);
    let offset = controlOffset;
    while (offset + controlHeader.sizeBytes <= endOffset) {
      const partBytes = lengthBytes.getLowWord(this.#view, offset);
      if (partBytes < controlHeader.sizeBytes || offset + partBytes > endOffset) return;
      if (level.get(this.#view, offset) === SOL_SOCKET && type.get(this.#view, offset) === SCM_RIGHTS) {
        for (let at = controlHeader.sizeBytes; at + 4 <= partBytes; at += 4) {
          this.descriptors[this.descriptorCount++] = this.#view.getInt32(offset + at, true);
        }
      }
      offset += Math.ceil(partBytes / 8) * 8;
    }
  }
}
