/** The kernel of time: everything here knows instants, cycles and records, and nothing of what they mean. */
export { BlockAccount } from './block-account.ts';
export {
  ChannelOverflowError,
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  RECORD_HEADER_BYTES,
  RECORD_WORDS,
} from './channel.ts';
export { Clock } from './clock.ts';
export { ClockDomain, type Stage } from './clock-domain.ts';
export {
  delayPsMax,
  type EdgeKeeper,
  type EpochClock,
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
export {
  type EventHandler,
  EventQueue,
  type EventRef,
  PHASE_HARDWARE,
  PHASE_SOFTWARE,
} from './event-queue.ts';
export { Fifo } from './fifo.ts';
export { Histogram, type HistogramData } from './histogram.ts';
export type { RecordHandler, RecordReceiver } from './inbound-port.ts';
export { type Imbalance, Ledger } from './ledger.ts';
export { LogicalProcess } from './logical-process.ts';
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
export { planSharedControl, SharedControl, type SharedControlPlan } from './shared-control.ts';
export { type Runner, type RunOutcome, SingleRunner } from './single-runner.ts';
export { SteppedRunner } from './stepped-runner.ts';
export { type TraceEntry, type TraceHook, TraceRing } from './trace.ts';
export { WorkerRunner, type WorkerRunnerOptions } from './worker-runner.ts';
export { type WatchedWorker, watchWorker } from './worker-watch.ts';
