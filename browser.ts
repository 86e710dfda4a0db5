/**
 * hca-emulator in a page: the library without Node.js. The same machine, programs and reports as `hca-emulator`, in the partition
 * `single`; nothing is served, no file is read, and traces go to a sink that the caller gives.
 *
 *     import { Machine } from 'hca-emulator/browser';
 *
 * The page must be cross-origin isolated, for `SharedArrayBuffer` is a host's memory: {@link Machine.create} needs it. A worker is the place for it:
 * a simulation keeps its thread busy.
 */
// What the declarations above name: the figures of reports and ledgers, and the parts of a host that programs are given.

export type { Finding } from './analyser/lint/findings.ts';
export type { RuleName, Severity } from './analyser/lint/rules.ts';
export type { TraceCategory } from './analyser/trace-event.ts';
export type { TraceFormat } from './analyser/trace-text.ts';
export { ConfigurationError, InvariantError, SimulatorError } from './base/assert.ts';
export type { ObjectImage } from './base/object-image.ts';
export type { TextSink } from './base/runtime.ts';
export type { Cycles, Picoseconds, Unit } from './base/units.ts';
export type { OnDemandStatistics } from './driver/on-demand/pager.ts';
export type { Handle, MtuVerb, MwType, PortStateVerb, QpStateVerb, QpTypeVerb } from './driver/uapi.ts';
export type { CoreThread } from './host/core-thread.ts';
export type { CpuCause, CpuReport } from './host/cpu-account.ts';
export type { Host } from './host/host.ts';
export { ProcessKilledError, ProgramFailedError, ProgramStuckError } from './host/host-error.ts';
export type { InterruptStatistics } from './host/interrupt-controller.ts';
export type { MemoryStatistics } from './host/mm/counts.ts';
export type { Process } from './host/process.ts';
export type { FarTimes, OperationStage } from './hw/hca/index.ts';
export type { SocketCalls } from './net/socket/socket-calls.ts';
export type { BlockState, StateValue } from './sim/block.ts';
export type { ExactPs } from './sim/epoch.ts';
export type { HistogramData } from './sim/histogram.ts';
export {
  DeadlockError,
  ProcessFailedError,
  RunAbortedError,
  RunError,
  type RunOutcome,
  StepLimitError,
  WorkerLostError,
} from './sim/index.ts';
export type { ObservationColumns, ObservationTrack, ProcessObservations } from './sim/observation.ts';
export type { Random } from './sim/random.ts';
export type { ProcessInstant } from './sim/run-errors.ts';
export type { Analysis } from './system/machine/analysis/attach.ts';
export type {
  AnalysisOptions,
  CaptureEnd,
  CaptureOptions,
  TraceOptions,
} from './system/machine/analysis/options.ts';
export type { DeviceCost, OperationCost, OtherCost } from './system/machine/costs/index.ts';
export { CostsOverflowError } from './system/machine/costs/index.ts';
export type { FaultEntry, FaultKind, FaultPlan } from './system/machine/faults/index.ts';
export { Machine, type MachineOptions } from './system/machine/machine.ts';
export type { UnownedAccess } from './system/machine/node/access-watch.ts';
export type { Held } from './system/machine/node/held.ts';
export type { MemoryTraffic } from './system/machine/node/memory-traffic.ts';
export type { NicSoftware } from './system/machine/node/nic-software.ts';
export type { LinkPacket, LinkPackets } from './system/machine/node/packet-log.ts';
export type { ProgramMemory } from './system/machine/node/program-memory.ts';
export type { ProgressListener } from './system/machine/node/program-runner.ts';
export type { ProgramAccess, Race, RaceSide } from './system/machine/node/race-watch.ts';
export type { HostSpent, TransferMeter } from './system/machine/node/transfer-meter.ts';
export type { Verbs } from './system/machine/node/verbs.ts';
export { type Partition, partitions } from './system/machine/partition/placement.ts';
export type { Watch } from './system/machine/plan.ts';
export type { ConfigurationChoice, ParameterValues } from './system/machine/profile/configuration.ts';
export {
  configurationOf,
  type MachineConfig,
  type ParameterValue,
  type ProfileListing,
  profileListing,
} from './system/machine/profile/index.ts';
export type { ParameterRow } from './system/machine/profile/listing.ts';
export type { Profile } from './system/machine/profile/profiles.ts';
export type {
  Exchange,
  JsonValue,
  LogLine,
  ProgramContext,
  ProgramFunction,
  ProgramModule,
  ProgramOptions,
  ProgramState,
} from './system/machine/program.ts';
export type * from './system/machine/report/exact-figures.ts';
export type * from './system/machine/report/hca-ledger.ts';
export type * from './system/machine/report/host-ledger.ts';
export type * from './system/machine/report/ledger-link.ts';
export type * from './system/machine/report/nic-ledger.ts';
export type * from './system/machine/report/schema.ts';
export type { RunFacts } from './system/machine/run-facts.ts';
export type {
  DroppedRecords,
  Timeline,
  TimelineCategory,
  TimelineKindName,
  TimelineOptions,
  TimelineRecord,
  TimelineTrack,
} from './system/machine/timeline/index.ts';
export { openMessageChannel } from './system/workloads/message-pingpong.ts';
export type {
  PerfArgs,
  PerfConnection,
  PerfPattern,
  PerfRegion,
  PerfTestName,
  PerfVerb,
  SizeShare,
} from './system/workloads/perf-plan.ts';
export {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
  type RcPeer,
} from './system/workloads/rc-endpoint.ts';
export {
  checkedWorkload,
  parsedWorkload,
  perfArgsOf,
  type Workload,
  workloadText,
} from './system/workloads/workload.ts';
export type * from './system/workloads/workload-fields.ts';
export type { FieldNaming } from './system/workloads/workload-rules.ts';
export * from './userlib/index.ts';
export * from './userlib/messaging/index.ts';
