export type { NodeConnections } from './analysis/index.ts';
export { BootedMachines, freshMachines, type MachineSource } from './booted-machines.ts';
export { Machine, type MachineOptions, type RunLimits } from './machine.ts';
export { configuredOf, effectiveOf, machineHashOf } from './machine-hash.ts';
export type { UnownedAccess } from './node/access-watch.ts';
export { checkValue, ExchangeEnd, type ValueTaken } from './node/exchange.ts';
export { type FabricSwitch, fabricSwitchOf } from './node/fabric-switch.ts';
export { HcaNode, hcaNeighboursOf } from './node/hca-node.ts';
export type { Held } from './node/held.ts';
export { HostNode } from './node/host-node.ts';
export type { MemoryTraffic } from './node/memory-traffic.ts';
export { NicNode } from './node/nic-node.ts';
export { addressOf, type NicSoftware } from './node/nic-software.ts';
export type { LinkPacket, LinkPackets } from './node/packet-log.ts';
export type { ProgramMemory } from './node/program-memory.ts';
export { ProgramRunner, type ProgressListener } from './node/program-runner.ts';
export { type ProgramAccess, type Race, type RaceSide, raceText } from './node/race-watch.ts';
export { endLabel, type HostSpent, type TransferMeter } from './node/transfer-meter.ts';
export type { Verbs } from './node/verbs.ts';
export { type WireCapture, wireCapturesOf } from './node/wire-log.ts';
export { type ErrorRecord, errorOf, errorRecordOf } from './partition/answer.ts';
export { programWaitsOf } from './partition/part-activity.ts';
export { type PartOrder, partApiOf } from './partition/part-api.ts';
export { type Partition, partitions } from './partition/placement.ts';
export { loadProgram } from './partition/program-module.ts';
export {
  bytesToDevice,
  bytesToHost,
  channelKey,
  checkLinkLayer,
  ethernetAt,
  type HcaNeighbours,
  type HcaPlan,
  hcaCableBytes,
  hcaName,
  hostName,
  type MachinePlan,
  nicName,
  planMachine,
  type Watch,
  wireAt,
} from './plan.ts';
export type {
  Exchange,
  HostLink,
  JsonLike,
  JsonValue,
  LogLine,
  ProgramContext,
  ProgramFunction,
  ProgramModule,
  ProgramOptions,
  ProgramState,
} from './program.ts';
export { nonZero } from './report/block-rows.ts';
export {
  deviceInterruptsOf,
  deviceOf,
  faultsOf,
  linkOf,
  nodeReportOf,
  operationsOf,
  switchReportOf,
  wireOf,
} from './report/build-report.ts';
export {
  blockFailures,
  hostFailures,
  linkFailures,
  nakFailures,
  nicHostFailures,
  operationFailures,
  wireFailures,
} from './report/checks.ts';
export { type ExactDigits, ExactFigures } from './report/exact-figures.ts';
export { behind, checkOf, sumOf, unequal, vectorFailures } from './report/failures.ts';
export { figuresSince, type ReportFigures } from './report/figures-since.ts';
export {
  type FrameLedger,
  frameCableFailures,
  type RocePacketLedger,
  transmittedOf,
} from './report/frame-ledger.ts';
export {
  byCommandName,
  byOperationName,
  type HcaLedger,
  hcaLedgerOf,
  notificationsOf,
} from './report/hca-ledger.ts';
export { type HostLedger, hostLedgerOf } from './report/host-ledger.ts';
export { type LinkEndLedger, linkEndLedgerOf } from './report/ledger-link.ts';
export { macFailures, nicEndOf } from './report/nic-checks.ts';
export { type NicLedger, nicLedgerOf } from './report/nic-ledger.ts';
export { ethernetOf } from './report/nic-report.ts';
export type {
  BlockRow,
  CheckReport,
  DeviceInterruptRow,
  FaultReport,
  LinkDirection,
  NodeReport,
  OperationReport,
  Report,
  SwitchReport,
  WireReport,
} from './report/schema.ts';
export {
  cableEndsOf,
  type SwitchLedger,
  switchFailures,
  switchLedgerOf,
} from './report/switch-ledger.ts';
export type { RunFacts } from './run-facts.ts';
export type { RunSignal } from './run-signal.ts';
