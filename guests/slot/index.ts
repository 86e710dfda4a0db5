export { createMemfd, messageOf, VfioUserClient } from './client/client.ts';
export * from './device.ts';
export { FrameServer, type FrameSocketCounters } from './frame-socket/frame-server.ts';
export type { GuestMemory, MemoryRegion } from './memory.ts';
export { nativeLibrary, nativeUnavailableReason } from './native/library.ts';
export { MappedWindow } from './native/mapped-window.ts';
export { NativeCallError } from './native/native-call-error.ts';
export {
  createEventfd,
  drainEventfd,
  signalEventfd as raiseInterrupt,
  signalEventfd as wake,
} from './native/poll.ts';
export { Reactor } from './reactor.ts';
export {
  Command,
  dmaMap,
  dmaUnmap,
  header,
  multiWrite,
  multiWriteEntry,
  regionAccess,
  setInterrupts,
} from './vfio-user/protocol.ts';
export { VfioUserServer } from './vfio-user/vfio-user-server.ts';
