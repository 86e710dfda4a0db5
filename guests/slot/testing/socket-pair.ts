/** Connected sockets for specs. */
import { nativeLibrary } from '../native/library.ts';
import { NativeCallError } from '../native/native-call-error.ts';
import { AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM } from '../native/structures.ts';

/** Two connected UNIX stream sockets; the caller closes them. */
export function socketPair(): [number, number] {
  const native = nativeLibrary();
  const pair = new Int32Array(new ArrayBuffer(8));
  if (native.socketPair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, native.addressOf(pair.buffer)) < 0) {
    throw new NativeCallError('socketpair', native.errno());
  }
  return [pair[0]!, pair[1]!];
}
