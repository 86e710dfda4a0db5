/** The blocks of the IOMMU, and their wires: iommu.ts connects them between a root port and memory. */
import { levelCount } from '../../abi/index.ts';
import { nsToPs } from '../../base/index.ts';
import type { LogicalProcess, Wires } from '../../sim/index.ts';
import type { HostMemory } from '../pcie/index.ts';
import { FaultLog, type FaultLogPorts } from './fault-log.ts';
import { Iotlb } from './iotlb.ts';
import { PageWalker } from './page-walker.ts';
import { PageWatches } from './page-watches.ts';
import type { IommuConfig } from './parameters.ts';
import { Translation } from './translation.ts';
import { WalkSlots } from './walk-slots.ts';

export interface IommuCore {
  readonly lp: Pick<LogicalProcess, 'instantPs'>;
  readonly memory: HostMemory;
  readonly config: IommuConfig;
}

export function makeBlocks(core: IommuCore) {
  return {
    translation: new Translation(),
    iotlb: new Iotlb(core.config.iotlbEntries, core.config.iotlbWays),
    walker: new PageWalker(core),
    walks: new WalkSlots(core.config.walksInFlight, levelCount * nsToPs(core.config.walkLevelNs)),
    faultLog: new FaultLog(core),
    watches: new PageWatches(core),
  };
}

export type IommuBlocks = ReturnType<typeof makeBlocks>;

/** The wires of the blocks. */
export function iommuWires(b: IommuBlocks & FaultLogPorts): Wires<IommuBlocks> {
  return {
    translation: { iotlb: b.iotlb, walker: b.walker, faultLog: b.faultLog },
    walker: { iotlb: b.iotlb },
    faultLog: { processor: b.processor },
    watches: { walker: b.walker },
  };
}
