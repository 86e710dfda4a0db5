/** The client's end of a socket: a send with descriptors. */

import { constants } from 'node:os';
import { viewOf } from '../../../base/index.ts';
import { nativeLibrary } from '../native/library.ts';
import { NativeCallError } from '../native/native-call-error.ts';
import {
  controlBytesOf,
  controlHeader,
  iovec,
  MSG_DONTWAIT,
  MSG_NOSIGNAL,
  messageHeader,
  SCM_RIGHTS,
  SOL_SOCKET,
} from '../native/structures.ts';

const vectorOffset = messageHeader.sizeBytes;
const controlOffset = vectorOffset + iovec.sizeBytes;

/** Memory that the kernel reads: a buffer referenced only by its address could be collected before the call. */
const dataBytesMax = 2 ** 20;
const descriptorsMax = 253;
const structures = new Uint8Array(new ArrayBuffer(controlOffset + controlBytesOf(descriptorsMax)));
const view = viewOf(structures);
const data = new Uint8Array(new ArrayBuffer(dataBytesMax));

/** One sendmsg, with descriptors: bytes sent, 0 if the socket is full. Throws if the peer has disconnected. */
export function sendWith(socket: number, bytes: Uint8Array, descriptors: readonly number[] = []): number {
  const native = nativeLibrary();
  const lengthBytes = Math.min(bytes.length, dataBytesMax);
  data.set(bytes.subarray(0, lengthBytes));
  const controlBytes = descriptors.length === 0 ? 0 : controlBytesOf(descriptors.length);
  const address = native.addressOf(structures.buffer);
  iovec.fields.base.setNumber(view, vectorOffset, native.addressOf(data.buffer));
  iovec.fields.lengthBytes.setNumber(view, vectorOffset, lengthBytes);
  messageHeader.fields.vectors.setNumber(view, 0, address + vectorOffset);
  messageHeader.fields.vectorCount.setNumber(view, 0, 1);
  messageHeader.fields.control.setNumber(view, 0, controlBytes === 0 ? 0 : address + controlOffset);
  messageHeader.fields.controlBytes.setNumber(view, 0, controlBytes);
  if (controlBytes > 0) putRights(descriptors);
  const sent = native.sendMessage(socket, address, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return sent;
  const errno = native.errno();
  if (errno === constants.errno.EAGAIN) return 0;
  throw new NativeCallError('sendmsg', errno);
}

function putRights(descriptors: readonly number[]): void {
  const lengthBytes = BigInt(controlHeader.sizeBytes + descriptors.length * 4);
  controlHeader.encodeInto({ lengthBytes, level: SOL_SOCKET, type: SCM_RIGHTS }, structures, controlOffset);
  new Int32Array(structures.buffer, controlOffset + controlHeader.sizeBytes).set(descriptors);
}
