/** Memory management without cores, for specs: a small memory, scattered frames, costs that are not charged. */
import { defaultsOf } from '../../base/parameter.ts';
import { mib } from '../../base/units.ts';
import { PhysicalMemory } from '../physical-memory.ts';
import { MemoryManager } from './memory-manager.ts';
import { type MmConfig, mmParameters } from './mm-parameters.ts';
import { PageFrames } from './page-frames.ts';
import { BarePlatform } from './platform.ts';

/** A generator of [0, 1), from a seed. */
function unitOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

export interface TestMemory {
  readonly memory: PhysicalMemory;
  readonly frames: PageFrames;
  readonly platform: BarePlatform;
  readonly mm: MemoryManager;
}

/** 64 MiB, of which the first is reserved; `freeKib` leaves only so much to hand out. */
export function newTestMemory(
  parts: { readonly [Part in keyof MmConfig]?: Partial<MmConfig[Part]> } = {},
  freeKib?: number,
): TestMemory {
  const memory = new PhysicalMemory(mib(64));
  const reserved = freeKib === undefined ? mib(1) : mib(64) - freeKib * 1024;
  const frames = new PageFrames(memory, reserved, unitOf(1));
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
