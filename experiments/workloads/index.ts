export {
  type CompareNetwork,
  compareNetworks,
  isOnNetwork,
  machineOfRow,
  networkOf,
  networkParameters,
  networkTitleOf,
  rowTitleOf,
} from './compare-networks.ts';
export {
  type CompareArgs,
  type ComparePath,
  comparePaths,
  messageCountOf,
  pathLimitBytes,
  pathTitles,
  type SideResult,
  type SideTransfer,
} from './compare-plan.ts';
export { type CompareBytes, comparedSide, fillRandomly } from './compare-transfer.ts';
export { CompletionPoller, checkPosted, WorkFailedError } from './completion-poller.ts';
export type { DeviceQuery } from './device-query.ts';
export {
  checkedFabricWorkload,
  type FabricWorkload,
  fabricArgsOf,
  fabricFields,
  fabricText,
  isFabricPattern,
} from './fabric-fields.ts';
export {
  type FabricArgs,
  type FabricConnection,
  type FabricPattern,
  type FabricSide,
  type FabricVerb,
  type Flow,
  type FlowArgs,
  type FlowResult,
  fabricConnections,
  fabricDefaults,
  fabricPatterns,
  fabricVerbs,
  flowsOf,
  type ReductionSide,
  type RoundsSide,
  serversOf,
  workersOf,
} from './fabric-plan.ts';
export { fabricHost } from './fabric-traffic.ts';
export { RdmaEventError } from './guest-connection.ts';
export { type CounterpartOutcome, type CounterpartTask, guestCounterpart } from './guest-counterpart.ts';
export {
  GuestDataError,
  type GuestPingpongArgs,
  type GuestPingpongResult,
  guestPingpong,
} from './guest-pingpong.ts';
export { type GuestRpingArgs, type GuestRpingResult, guestRping } from './guest-rping.ts';
export type { SocketTask } from './guest-sockets.ts';
export {
  acceptGuest,
  connectGuest,
  GuestStream,
  GuestStreamError,
  type GuestStreamUser,
} from './guest-stream.ts';
export { inlineMaxOf } from './inline-limits.ts';
export type { KvPlan, KvSide } from './kv-plan.ts';
export { type MessagePingpongPlan, type MessagePingpongRow, openMessageChannel } from './message-pingpong.ts';
export type { MoveArgs, MoveLeg, MoveReceiverResult, MoveSenderResult } from './move-plan.ts';
export type { ArrivalKind, LoadPlan } from './offered-load.ts';
export { type CommunicatorOptions, openCommunicator } from './open-communicator.ts';
export { bandwidthClient, bandwidthServer } from './perf-bandwidth.ts';
export { perfBufferBytes } from './perf-buffer.ts';
export { distributionOf, latencyClient, latencyServer, percentileOf } from './perf-latency.ts';
export {
  isLatencyTest,
  isReliable,
  lengthsOf,
  type PerfArgs,
  type PerfConnection,
  type PerfPattern,
  type PerfRegion,
  type PerfTestName,
  type PerfVerb,
  perfTestNames,
  type SizeShare,
} from './perf-plan.ts';
export type {
  BandwidthRates,
  BandwidthResult,
  HostWork,
  LatencyResult,
  LoadedRates,
  PerfResult,
  PerfSide,
} from './perf-result.ts';
export { announcedEnd, announcedStart } from './perf-start.ts';
export {
  announcedOf,
  handleTo,
  type PeerAddress,
  type PortAddress,
  pathTo,
  peerFrom,
  type RouteChoice,
} from './port-address.ts';
export {
  barrier,
  connectQps,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  pathMtuOf,
  type RcBuffer,
  type RcEndpoint,
  type RcPeer,
  rcDefaults,
  rcSteps,
} from './rc-endpoint.ts';
export { allAccess, type RcAddress, type RcAttributes, toInit, toRtr, toRts } from './rc-states.ts';
export { readyWorkloadNames } from './ready-workloads.ts';
export { lengthText, meanBytesOf, mib, millionsText, usec } from './result-table.ts';
export { type Placement, placements, serversAt } from './server-placement.ts';
export { acceptFrom, connectTo, listenAt, type SocketStream, socketsOf } from './socket-stream.ts';
export type { Advice, Posts, Traffic } from './test-kind.ts';
export { isPerftest, kindOf, testKinds, workloadFieldNames, workloadFields } from './test-kinds.ts';
export { connectUc, connectUd, initUd, qkey } from './unreliable-states.ts';
export {
  checkedTest,
  checkedWorkload,
  parsedWorkload,
  perfArgsOf,
  startOf,
  type Workload,
  workloadText,
} from './workload.ts';
export {
  acceptedBy,
  checkedField,
  type FieldValue,
  parsedField,
  type WorkloadField,
  type WorkloadFieldName,
  type WorkloadValues,
} from './workload-fields.ts';
export type { FieldNaming } from './workload-rules.ts';
export { workloadSchema } from './workload-schema.ts';
export { connectInitiator, connectTarget } from './xrc-states.ts';
