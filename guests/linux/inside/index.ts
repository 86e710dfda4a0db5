/** Stock Linux on PCs of this process: see README.md. */
export type { GuestProfile, ProfiledFunction } from './guest-profile.ts';
export { type InsideChoice, type InsideFiles, insideFiles } from './inside-files.ts';
export { LinuxHost, type LinuxResult, type RunningCommand } from './linux-host.ts';
export { LinuxMachine, type LinuxMachineOptions } from './linux-machine.ts';
export { foldedProfile, profileText } from './profile-text.ts';
