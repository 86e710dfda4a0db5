/** Resources shared by the parts of a root complex: each is built from these, and from its own. */
import type { ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import type { PcieLinkPort } from '../link/index.ts';
import type { DeviceFaultLog } from './device-fault-log.ts';
import type { RootComplexConfig } from './root-complex-parameters.ts';

export interface RootComplexParts {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly port: PcieLinkPort;
  readonly log: DeviceFaultLog;
  readonly config: RootComplexConfig;
}
