/**
 * Stock Linux on PCs of this process (README.md), as a library:
 *
 *     import { defaultCache, LinuxMachine } from 'hca-emulator/linux';
 *
 *     const machine = await LinuxMachine.start({ kernel: 'debian', cache: defaultCache() });
 *     await machine.load();
 *     const { output, beganPs, endedPs } = await machine.run(0, 'ibv_devinfo', { timeoutSeconds: 10 });
 */

import '../../../runtime/node.ts';
import { type CacheOptions, defaultCacheFolder } from '../packages/cache.ts';
import { silentProgress } from '../progress.ts';

export { ConfigurationError } from '../../../base/index.ts';
export type { AccessFault, AccessFaultKind, PcConfig, PcTimeAccount } from '../../pc/index.ts';
export {
  type CostComparison,
  fractionalPcParameters,
  type KernelCosts,
  type LinuxCommandReport,
  LinuxHost,
  type LinuxHostReport,
  type LinuxLimits,
  type LinuxReport,
  type LinuxResult,
  type LinuxVersions,
  linuxFaultsOf,
  linuxReportOf,
  parsedPcParameters,
  pcConfigOf,
  type RunningCommand,
} from '../booted/index.ts';
export { GuestError } from '../guest-error.ts';
export type { CacheOptions } from '../packages/cache.ts';
export type { GuestProfile, ProfiledFunction } from './guest-profile.ts';
export { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
export { type InsideStage, insideScenarioOf, needOfQemu, startInside } from './inside-session.ts';
export { kernelCostsText } from './kernel-costs-text.ts';
export { LinuxMachine, type LinuxMachineOptions, linuxHostsMax } from './linux-machine.ts';
export type { LinuxSnapshot } from './linux-snapshot.ts';
export { foldedProfile, profileText } from './profile-text.ts';
export { renderHosts, renderLinuxReport } from './render-linux-report.ts';

/** The cache of the command line, which fetches what is missing without a word. */
export const defaultCache = (): CacheOptions => ({
  folder: defaultCacheFolder(),
  mirror: undefined,
  progress: silentProgress,
});

/** @internal */
export { type KeptLinux, keptLinux } from './linux-machine.ts';
/** @internal */
export { readSnapshot } from './snapshot-cache.ts';
