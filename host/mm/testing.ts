/** Memory management without cores, for specs: a small memory, scattered frames, costs that are not charged. */
import { defaultsOf } from '../../base/parameter.ts';
import { mib } from '../../base/units.ts';
import { PhysicalMemory } from '../physical-memory.ts';
import { BarePlatform } from './bare-platform.ts';
import { MemoryFile } from './memory-file.ts';
import { MemoryManager } from './memory-manager.ts';
import { type MmConfig, mmParameters } from './mm-parameters.ts';
import { type FramePlaces, PageFrames } from './page-frames.ts';

/** Limit of the numbers that a seed generates. */
class SeededPlaces implements FramePlaces {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  unit(): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647;
    return this.#state / 2_147_483_647;
  }
}

/** A regular file with these bytes on the device. */
export const newFile = (name: string, content: Uint8Array): MemoryFile =>
  new MemoryFile(name, content.length, content.slice());

export interface TestMemory {
  readonly memory: PhysicalMemory;
  readonly frames: PageFrames;
  readonly platform: BarePlatform;
  readonly mm: MemoryManager;
}

/** 64 MiB, of which the first is reserved; `freeKib` limits the rest that can be handed out. */
export function newTestMemory(
  parts: { readonly [Part in keyof MmConfig]?: Partial<MmConfig[Part]> } = {},
  freeKib?: number,
): TestMemory {
  const memory = new PhysicalMemory(mib(64));
  const reserved = freeKib === undefined ? mib(1) : mib(64) - freeKib * 1024;
  const frames = new PageFrames(memory, reserved, new SeededPlaces(1));
  const platform = new BarePlatform();
  const config: MmConfig = {
    paging: { ...defaultsOf(mmParameters.paging), ...parts.paging },
    swap: { ...defaultsOf(mmParameters.swap), sizeMib: 0, ...parts.swap },
    fileDevice: { ...defaultsOf(mmParameters.fileDevice), ...parts.fileDevice },
    tlb: { ...defaultsOf(mmParameters.tlb), ...parts.tlb },
  };
  return {
    memory,
    frames,
    platform,
    mm: new MemoryManager({ memory, frames, config, platform, coreCount: 2 }),
  };
}
