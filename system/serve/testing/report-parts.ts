/** What the report of a served guest beside a simulated host is made from, as of now. */
import type { ServeReportParts } from '../serve-report.ts';
import type { SlotBench } from './slot-bench.ts';

/** Copies, to be falsified. */
export function reportPartsOf({ emulation }: SlotBench): ServeReportParts {
  const { config, faults, cabling, timeScale } = emulation.options;
  const parts: ServeReportParts = {
    ...{ config, faults, cabling, timeScale },
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
