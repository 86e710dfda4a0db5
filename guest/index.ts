export * from './device.ts';
export { nativeLibrary, nativeUnavailableReason } from './native/library.ts';
export { signalEventfd as raiseInterrupt, signalEventfd as wake } from './native/poll.ts';
export { Reactor } from './reactor.ts';
export { VfioUserServer } from './vfio-user/server.ts';
