export * from './device.ts';
export type { GuestMemory, MemoryRegion } from './memory.ts';
export { NativeUnavailableError, nativeLibrary, nativeUnavailableReason } from './native/library.ts';
export { NativeCallError } from './native/native-call-error.ts';
export { signalEventfd as raiseInterrupt, signalEventfd as wake } from './native/poll.ts';
export { Reactor } from './reactor.ts';
export type { ServerCounters } from './vfio-user/counters.ts';
export { type VfioUserConfig, vfioUserParameters } from './vfio-user/parameters.ts';
export { VfioUserServer, type VfioUserServerOptions } from './vfio-user/server.ts';
