/**
 * Checks a device's accesses to a host's memory: the host must have granted the memory and not yet revoked it.
 *
 *     root complex ─► IOMMU ─► watch: frame in use? of a process: pinned, or a queue's? ─► memory
 *
 * A frame without references may be neither read nor written. A device may access a frame of a process while it is
 * pinned (a registered region, ib_umem_get) or stable (queue memory). Regions on demand are not pinned, so the watch
 * checks only free frames if the driver has such regions. Memory that the driver itself allocated is kernel memory
 * until the driver frees it.
 */
import { pageBytes } from '../../base/index.ts';
import type { PageFrames } from '../../host/index.ts';
import type { HostMemory, MemoryWatcher } from '../../hw/pcie/index.ts';
import type { ExactPs } from '../../sim/index.ts';

/** An access without permission. */
export interface UnownedAccess {
  readonly atPs: ExactPs;
  readonly access: 'read' | 'write';
  readonly address: number;
  readonly lengthBytes: number;
  /** `free`: a frame without references. `unpinned`: a frame of a process that has not granted it to the device. */
  readonly frame: 'free' | 'unpinned';
}

/** Ownership of frames; known once the host is built. */
export interface FrameOwnership {
  readonly frames: PageFrames;
  /** Whether a frame holds a page of a process that may be moved or evicted unless it is pinned. */
  isMovable(frame: number): boolean;
  /** Whether on-demand regions make unpinned frames reachable. */
  hasOnDemandRegions(): boolean;
}

const keptMax = 16;

export class AccessWatch implements HostMemory {
  /** The first accesses. */
  readonly unowned: UnownedAccess[] = [];
  unownedCount = 0;
  ownership: FrameOwnership | undefined;
  readonly #memory: HostMemory;
  readonly #nowPs: () => ExactPs;

  constructor(memory: HostMemory, nowPs: () => ExactPs) {
    this.#memory = memory;
    this.#nowPs = nowPs;
  }

  get sizeBytes(): number {
    return this.#memory.sizeBytes;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    this.#check('read', address, lengthBytes);
    return this.#memory.readInto(address, lengthBytes, target, targetOffset);
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    this.#check('write', address, lengthBytes);
    return this.#memory.write(address, lengthBytes, source, sourceOffset);
  }

  /** Must not be accessed by the device. */
  peek(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    return this.#memory.readInto(address, lengthBytes, target, targetOffset);
  }

  watch(address: number, watcher: MemoryWatcher): void {
    this.#memory.watch?.(address, watcher);
  }

  unwatch(watcher: MemoryWatcher): void {
    this.#memory.unwatch?.(watcher);
  }

  #check(access: 'read' | 'write', address: number, lengthBytes: number): void {
    const { ownership } = this;
    if (ownership === undefined || lengthBytes === 0) return;
    const last = Math.floor((address + lengthBytes - 1) / pageBytes);
    for (let frame = Math.floor(address / pageBytes); frame <= last; frame++) {
      const kind = kindOf(ownership, frame);
      if (kind === undefined) continue;
      this.unownedCount++;
      if (this.unowned.length < keptMax)
        this.unowned.push({ atPs: this.#nowPs(), access, address, lengthBytes, frame: kind });
    }
  }
}

function kindOf(ownership: FrameOwnership, frame: number): UnownedAccess['frame'] | undefined {
  const { frames } = ownership;
  if (frame >= frames.frameCount) return undefined;
  if (frames.referencesOf(frame) === 0) return 'free';
  const isGiven = frames.pinsOf(frame) > 0 || !ownership.isMovable(frame) || ownership.hasOnDemandRegions();
  return isGiven ? undefined : 'unpinned';
}
