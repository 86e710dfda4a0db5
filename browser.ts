/// <reference lib="esnext.disposable" preserve="true" />
/// <reference lib="esnext.float16" preserve="true" />
/**
 * hca-emulator in a page: the library without Node.js. The same machine, programs and reports as `hca-emulator`, in the partition
 * `single`; nothing is served, no file is read, and traces go to a sink that the caller gives.
 *
 *     import { Machine } from 'hca-emulator/browser';
 *
 * The page must be cross-origin isolated, for `SharedArrayBuffer` is a host's memory: {@link Machine.create} needs it. A worker is the place for it:
 * a simulation keeps its thread busy.
 */
// Types that the declarations above name: the figures of reports and ledgers, and the parts of a host that programs are given.

export type {
  ConnectionEnd,
  Finding,
  RuleName,
  Severity,
  TraceCategory,
  TraceFormat,
} from './analyser/index.ts';
export {
  ConfigurationError,
  type Cycles,
  InvariantError,
  type ObjectImage,
  type Picoseconds,
  SimulatorError,
  type TextSink,
  type Unit,
} from './base/index.ts';
export type { Handle, MtuVerb, MwType, PortStateVerb, QpStateVerb, QpTypeVerb } from './driver/index.ts';
export type { NetworkCounts } from './driver/network/index.ts';
export type { OnDemandStatistics } from './driver/on-demand/index.ts';
export {
  type ArrivalKind,
  acceptGuest,
  barrier,
  type CommunicatorOptions,
  checkedWorkload,
  connectGuest,
  connectRc,
  createBuffer,
  createRcQps,
  type FieldNaming,
  GuestStream,
  GuestStreamError,
  type GuestStreamUser,
  type KvPlan,
  type LoadPlan,
  openCommunicator,
  openEndpoint,
  openMessageChannel,
  type PeerAddress,
  type PortAddress,
  parsedWorkload,
  perfArgsOf,
  type RcBuffer,
  type RcEndpoint,
  type RcPeer,
  type RouteChoice,
  type Workload,
  workloadText,
} from './experiments/workloads/index.ts';
export type * from './experiments/workloads/perf-plan.ts';
export type * from './experiments/workloads/workload-fields.ts';
export {
  type CoreThread,
  type CpuCause,
  type CpuReport,
  type Host,
  type InterruptStatistics,
  type Process,
  ProcessKilledError,
  ProgramFailedError,
  ProgramStuckError,
} from './host/index.ts';
export type { MemoryStatistics } from './host/mm/index.ts';
export type { FarTimes, LoopedFrames, OperationStage } from './hw/hca/index.ts';
export type {
  Analysis,
  AnalysisOptions,
  CaptureEnd,
  CaptureOptions,
  EvidenceOptions,
  NodeConnections,
  TraceOptions,
} from './machine/analysis/index.ts';
export type { DeviceCost, OperationCost, OtherCost } from './machine/costs/index.ts';
export { CostsOverflowError } from './machine/costs/index.ts';
export type * from './machine/evidence/evidence.ts';
export type { PlaceOf } from './machine/evidence/index.ts';
export type { FaultEntry, FaultKind, FaultPlan } from './machine/faults/index.ts';
export {
  type Exchange,
  type FrameLedger,
  type Held,
  type HostLink,
  type HostSpent,
  type JsonLike,
  type JsonValue,
  type LinkPacket,
  type LinkPackets,
  type LogLine,
  Machine,
  type MachineOptions,
  type MemoryTraffic,
  type NicSoftware,
  type Partition,
  type ProgramAccess,
  type ProgramContext,
  type ProgramFunction,
  type ProgramMemory,
  type ProgramModule,
  type ProgramOptions,
  type ProgramState,
  type ProgressListener,
  partitions,
  type Race,
  type RaceSide,
  type RocePacketLedger,
  type RunFacts,
  type RunLimits,
  type RunSignal,
  type TransferMeter,
  type UnownedAccess,
  type Verbs,
  type Watch,
} from './machine/index.ts';
export {
  type ConfigurationChoice,
  configurationOf,
  type MachineConfig,
  type ParameterRow,
  type ParameterValue,
  type ParameterValues,
  type Profile,
  type ProfileListing,
  profileListing,
} from './machine/profile/index.ts';
export type * from './machine/report/ethernet-switch-ledger.ts';
export type * from './machine/report/exact-figures.ts';
export type * from './machine/report/hca-ledger.ts';
export type * from './machine/report/host-ledger.ts';
export type * from './machine/report/iwarp-ledger.ts';
export type * from './machine/report/ledger-link.ts';
export type * from './machine/report/nic-ledger.ts';
export type * from './machine/report/packet-ledger.ts';
export type * from './machine/report/schema.ts';
export type * from './machine/report/switch-ledger.ts';
export type {
  DroppedRecords,
  Timeline,
  TimelineCategory,
  TimelineKindName,
  TimelineOptions,
  TimelineRecord,
  TimelineTrack,
} from './machine/timeline/index.ts';
export type * from './machine/topology/check-topology.ts';
export type * from './machine/topology/topology.ts';
export type { SocketCalls } from './net/socket/index.ts';
export {
  type BlockState,
  DeadlockError,
  type ExactPs,
  type HistogramData,
  type ObservationColumns,
  type ObservationTrack,
  ProcessFailedError,
  type ProcessInstant,
  type ProcessObservations,
  type Random,
  RunAbortedError,
  RunError,
  type RunOutcome,
  type StateValue,
  StepLimitError,
  WorkerLostError,
} from './sim/index.ts';
export * from './userlib/index.ts';
export * from './userlib/messaging/index.ts';
export type { LaneCount, LaneSpeed } from './wire/index.ts';
