/** Objects, ICM and frames that a host still holds when all programs have ended and its driver was removed. */
import type { Driver } from '../driver/index.ts';
import type { JsonValue, ProgramContext } from '../machine/index.ts';

/** Counts by name; every one of them ought to be 0. */
export async function leftovers({ verbs, host }: ProgramContext): Promise<JsonValue> {
  const driver = verbs.devices[0] as Driver | undefined;
  return {
    ...driver?.resourceCounts(),
    frames: host.frames.usedCount - host.mm.residentBytes / 4096 - (host.iommu?.tableFrameCount ?? 0),
    pins: host.mm.counts.pinnedPages - host.mm.counts.unpinnedPages,
  };
}
