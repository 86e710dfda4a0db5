/** Stock Linux on PCs of this process: see README.md. */
export { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
export { LinuxHost, type LinuxResult, type RunningCommand } from './linux-host.ts';
export { LinuxMachine, type LinuxMachineOptions } from './linux-machine.ts';
