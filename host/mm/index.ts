export {
  type Access,
  AddressSpace,
  type Advice,
  accessLater,
  type MapOptions,
  userBase,
} from './address-space.ts';
export { type MemoryCountName, MemoryCounts } from './counts.ts';
export { holdForDevice, releaseFromDevice } from './device-pages.ts';
export { MemoryFile, newFile } from './memory-file.ts';
export { type AccessMode, MemoryManager, userAccess, userAccessLater } from './memory-manager.ts';
export * from './mm-parameters.ts';
export type { InvalidateReason, InvalidationListener } from './notifier.ts';
export * from './page.ts';
export { PageFrames } from './page-frames.ts';
export type { PinAccess, PinnedPages } from './pins.ts';
export { BarePlatform, type MemoryCause, type MmPlatform } from './platform.ts';
