/** Stock Linux that has booted, in any runtime: see README.md. */

export {
  addressOf,
  BootedLinux,
  type BootedOrder,
  type BootedPcs,
  driversLine,
  type LinuxVersions,
} from './booted-linux.ts';
export { type BootedPc, bootedOfBytes, bytesOfBooted } from './booted-pc.ts';
export { i386Linux } from './i386-calls.ts';
export { busyPs, type CostComparison, contextText, type KernelCosts, kernelCostsOf } from './kernel-costs.ts';
export { LinuxHost, type LinuxLimits, type LinuxResult, type RunningCommand } from './linux-host.ts';
export { type LinuxOffer, linuxPaths } from './linux-offer.ts';
export {
  type LinuxCommandReport,
  type LinuxHostReport,
  type LinuxReport,
  linuxFaultsOf,
  linuxReportOf,
} from './linux-report.ts';
export { fractionalPcParameters, parsedPcParameters, pcConfigOf } from './pc-choice.ts';
