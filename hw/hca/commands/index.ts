/** Interface of this room: see README.md. */
export { CommandDma } from './command-dma.ts';
export { type ControlConfig, controlParameters } from './command-parameters.ts';
export { type CommandFaults, CommandProcessor, GO_ON, NEVER_END } from './command-processor.ts';
export type { CommandRequest, OutImmediate } from './command-steps.ts';
export type { DataPathControl } from './data-path-control.ts';
export {
  type CapabilityConfig,
  capabilityParameters,
  checkCapabilities,
  hasRoomForBlueFlame,
  interruptPin,
} from './device-capabilities.ts';
export { type ContextTables, DeviceState } from './device-state.ts';
export { DrainWatch } from './drain-watch.ts';
export { CommandTable } from './table.ts';
