/** The kernel of time: instants, cycles and records, and nothing of what they mean. */
export {
  type Block,
  type BlockState,
  connectBlocks,
  listWires,
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
} from './epoch.ts';
export { PHASE_HARDWARE } from './event-queue.ts';
export { Fifo } from './fifo.ts';
export { Histogram, type HistogramData } from './histogram.ts';
export { LogicalProcess } from './logical-process.ts';
export {
  OBSERVATION_VALUES,
  ObservationLog,
  type ObservationTrack,
  type ProcessObservations,
} from './observation.ts';
export { Random } from './random.ts';
export {
  DeadlockError,
  ProcessFailedError,
  type ProcessInstant,
  RunAbortedError,
  RunError,
  StepLimitError,
  WorkerLostError,
} from './run-errors.ts';
export { SharedControl } from './shared-control.ts';
export { type Runner, type RunOutcome, SingleRunner } from './single-runner.ts';
export { SteppedRunner } from './stepped-runner.ts';
export { WorkerRunner } from './worker-runner.ts';
export { watchWorker } from './worker-watch.ts';
