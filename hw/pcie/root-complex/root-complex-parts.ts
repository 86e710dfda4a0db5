/** What the parts of a root complex have in common: each is made of these, and of what it alone needs. */
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
