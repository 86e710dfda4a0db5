/** Stock Linux on PCs of this process: see README.md. */

export { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
export { LinuxHost, type LinuxLimits, type LinuxResult, type RunningCommand } from './linux-host.ts';
export { LinuxMachine, type LinuxMachineOptions } from './linux-machine.ts';
export {
  type LinuxCommandReport,
  type LinuxHostReport,
  type LinuxReport,
  type LinuxVersions,
  linuxFaultsOf,
  linuxReportOf,
} from './linux-report.ts';
export { parsedPcParameters, pcConfigOf } from './pc-choice.ts';
export { renderHosts, renderLinuxReport } from './render-linux-report.ts';
