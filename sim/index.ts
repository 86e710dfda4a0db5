/** The kernel of time: instants, cycles and records, without their meaning. */

export {
  type Block,
  type BlockState,
  connectBlocks,
  listWires,
  type StateValue,
  type Wakeable,
  type Wires,
} from './block.ts';
export { BlockAccount, NOT_STALLED, stallReasons } from './block-account.ts';
export {
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  RECORD_HEADER_BYTES,
  RECORD_WORDS,
  recordHeaderFields,
} from './channel.ts';
export { Clock } from './clock.ts';
export { ClockDomain } from './clock-domain.ts';
export {
  delayPsMax,
  type ExactPs,
  epochLengthPs,
  epochStepPs,
  exactPs,
  exactSumOf,
  farPs,
  numberOfPs,
  type Stopwatch,
  startStopwatch,
  type TimeKeeper,
} from './epoch.ts';
export { type EventQueue, type EventRef, PHASE_HARDWARE, PHASE_SOFTWARE } from './event-queue.ts';
export { Fifo } from './fifo.ts';
export { Histogram, type HistogramData } from './histogram.ts';
export type { RecordReceiver } from './inbound-port.ts';
export { type LateSender, LogicalProcess } from './logical-process.ts';
export {
  OBSERVATION_VALUES,
  type ObservationColumns,
  ObservationLog,
  type ObservationTrack,
  type ProcessObservations,
} from './observation.ts';
export { Random } from './random.ts';
export type { RunAhead } from './run-ahead.ts';
export {
  DeadlockError,
  ProcessFailedError,
  type ProcessInstant,
  RunAbortedError,
  RunError,
  StepLimitError,
  WorkerLostError,
} from './run-errors.ts';
export { planSharedControl, SharedControl, type SharedControlPlan } from './shared-control.ts';
export { type Runner, type RunOutcome, SingleRunner } from './single-runner.ts';
export { type ProgramStep, SteppedRunner } from './stepped-runner.ts';
export { WorkerRunner } from './worker-runner.ts';
export { watchWorker } from './worker-watch.ts';
