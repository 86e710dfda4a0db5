/**
 * The out-of-memory killer: the process with the most memory in frames and in swap ends (oom_badness without an adjustment; of
 * equals the oldest). Its memory is reclaimed at once, as by the OOM reaper: anonymous private pages without other references.
 * Pinned pages stay until the driver has released them in the process's exit.
 */
import type { MemoryManager } from './memory-manager.ts';

/** @returns whether a process was left to kill */
export function killForMemory(mm: MemoryManager): boolean {
  let victim: ReturnType<typeof mm.spaces.get>;
  for (const space of mm.spaces.values()) {
    if (space.isKilled || space.badness === 0) continue;
    if (victim === undefined || space.badness > victim.badness) victim = space;
  }
  if (victim === undefined) return false;
  victim.isKilled = true;
  mm.counts.oomKills++;
  const taken = victim.reap();
  mm.platform.charge('reclaim', taken * mm.config.paging.oomReapPageCycles);
  mm.platform.kill(victim);
  return true;
}
