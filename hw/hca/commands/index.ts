/** Interface of this room: see README.md. */
export { CommandDma } from './command-dma.ts';
export { type ControlConfig, controlParameters } from './command-parameters.ts';
export {
  type CommandFaults,
  CommandProcessor,
  type CommandSource,
  type Commands,
  GO_ON,
  NEVER_END,
  type StartedCommand,
} from './command-processor.ts';
export {
  CommandRejection,
  type CommandRequest,
  demand,
  fill,
  type OutImmediate,
  read,
  reject,
  type Steps,
  until,
  wait,
  write,
} from './command-steps.ts';
export { DrainWatch } from './drain-watch.ts';
