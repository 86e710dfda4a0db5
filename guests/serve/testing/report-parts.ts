/** Present inputs of the report of a served guest next to a simulated host. */

import { outsideOfMicrotasks } from '../../../base/index.ts';
import type { ParameterValues } from '../../../machine/profile/index.ts';
import type { ServeReportParts } from '../serve-report.ts';
import { DrivenSlot } from './driven-slot.ts';
import { SlotBench } from './slot-bench.ts';

/** Copies, to be falsified. */
export function reportPartsOf({ emulation }: SlotBench): ServeReportParts {
  const { config, faults, cabling } = emulation.options;
  const parts: ServeReportParts = {
    ...{ config, faults, cabling, timeScale: 1 },
    elapsedPs: emulation.time.runner.instantPs,
    followedPs: emulation.time.followedPs,
    slots: emulation.ledgers(),
    peer: { ...emulation.peerLedgers()!, state: emulation.peer!.state(), log: emulation.peer!.log },
    defects: emulation.defects,
    analyses: [],
    run: { node: '', wallMs: 0, workMs: 0, pollMs: 0, waitMs: 0, slices: 0, cutSlices: 0 },
  };
  return structuredClone(parts);
}

/** Parts for a machine whose guest does nothing yet, next to a program that has ended. */
export async function reportPartsOfIdle(set: ParameterValues): Promise<ServeReportParts> {
  const bench = await outsideOfMicrotasks(() => new SlotBench({ peer: async () => 0, set }));
  const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
  for (let turns = 0; turns < 100 && !bench.emulation.peer!.hasEnded; turns++)
    await slot.turnOutside(bench.wallMs + 5);
  return reportPartsOf(bench);
}
