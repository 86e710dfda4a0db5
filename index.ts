/**
 * hca-emulator as a library: a machine of hosts and RDMA adapters in simulated time, programs for it, and the verbs
 * that programs speak.
 *
 *     import { Machine, getDeviceList, openDevice } from 'hca-emulator';
 *
 *     await using machine = await Machine.create();
 *     await machine.load({ node: 0, run: async ({ verbs }) => { await openDevice(getDeviceList(verbs)[0]!); } });
 *     await machine.run();
 *     console.log((await machine.report()).checks.balanced);
 */
export { ConfigurationError, InvariantError, SimulatorError } from './base/assert.ts';
export { ProgramFailedError } from './host/index.ts';
export {
  DeadlockError,
  ProcessFailedError,
  RunAbortedError,
  RunError,
  type RunOutcome,
  WorkerLostError,
} from './sim/index.ts';
export type { FaultEntry, FaultKind, FaultPlan } from './system/faults/index.ts';
export { Machine, type MachineOptions } from './system/machine.ts';
export { type Partition, partitions } from './system/partition/placement.ts';
export {
  configurationOf,
  type MachineConfig,
  type ParameterValue,
  type ProfileListing,
  profileListing,
} from './system/profile/index.ts';
export type {
  Exchange,
  JsonValue,
  LogLine,
  ProgramContext,
  ProgramFunction,
  ProgramModule,
  ProgramOptions,
  ProgramState,
} from './system/program.ts';
export {
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
  type RcPeer,
} from './system/programs/rc-endpoint.ts';
export { renderReport } from './system/report/render.ts';
export type { Report } from './system/report/schema.ts';
export type { RunFacts } from './system/run-facts.ts';
export {
  renderServeReport,
  type ServedMachine,
  type ServeOptions,
  type ServeReport,
  serve,
} from './system/serve/index.ts';
export * from './userlib/index.ts';
