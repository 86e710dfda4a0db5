/** Calls of the machine to a part, in any thread. Arguments and answers are plain data and shared memory. */
import type { ProcessObservations, RunOutcome } from '../../sim/index.ts';
import type { Analysis, NodeConnections } from '../analysis/index.ts';
import type { PartEvidence } from '../evidence/index.ts';
import type { LinkPackets } from '../node/packet-log.ts';
import type { ProgramOrder } from '../node/program-runner.ts';
import type { WireCapture } from '../node/wire-log.ts';
import type { LogLine, ProgramState } from '../program.ts';
import type {
  MachinePart,
  PartCosts,
  PartEffort,
  PartHeld,
  PartLedgers,
  PartState,
  PartSteps,
} from './machine-part.ts';
import type { PartActivity } from './part-activity.ts';

export interface PartPort {
  loadModule(node: number, order: ProgramOrder, url: string, exportName: string): Promise<void>;
  runTo(limitPs: number): Promise<RunOutcome>;
  runUntilEnded(drainPs: number, limitPs: number): Promise<RunOutcome>;
  /**
   * Begins a new epoch: see LogicalProcess.rebase.
   * @returns the earliest instant in it at which anything is due
   */
  rebase(ps: number): Promise<number>;
  activity(): Promise<PartActivity>;
  steps(): Promise<PartSteps>;
  removeDriver(node: number): Promise<void>;
  programStates(): Promise<ProgramState[]>;
  logLines(): Promise<LogLine[]>;
  analyses(): Promise<Analysis[]>;
  connections(): Promise<NodeConnections[]>;
  closeAnalysers(): Promise<void>;
  ledgers(): Promise<PartLedgers>;
  costs(): Promise<PartCosts>;
  held(): Promise<PartHeld>;
  inspect(): Promise<PartState>;
  packets(): Promise<LinkPackets[]>;
  observations(): Promise<ProcessObservations[]>;
  captures(): Promise<WireCapture[]>;
  evidence(): Promise<PartEvidence>;
  progress(): Promise<number>;
  effort(): Promise<PartEffort>;
  memoryOf(node: number): Promise<SharedArrayBuffer>;
  physicalAddress(node: number, process: string, address: number): Promise<number>;
  readConfig32(node: number, offset: number): Promise<number>;
  readRegister32(node: number, bar: number, offset: number): Promise<number>;
}

/** The calls that cross a thread's boundary. */
export const partMethods = [
  'loadModule',
  'runTo',
  'runUntilEnded',
  'rebase',
  'activity',
  'steps',
  'removeDriver',
  'programStates',
  'logLines',
  'analyses',
  'connections',
  'closeAnalysers',
  'ledgers',
  'costs',
  'held',
  'inspect',
  'packets',
  'observations',
  'captures',
  'evidence',
  'progress',
  'effort',
  'memoryOf',
  'physicalAddress',
  'readConfig32',
  'readRegister32',
] as const satisfies readonly (keyof PartPort)[];

/** A part of this thread. */
export function localPort(part: MachinePart): PartPort {
  return {
    loadModule: (node, order, url, exportName) => part.loadModule(node, order, url, exportName),
    runTo: (limitPs) => part.runTo(limitPs),
    runUntilEnded: (drainPs, limitPs) => part.runUntilEnded(drainPs, limitPs),
    rebase: async (ps) => part.rebase(ps),
    activity: async () => part.activity(),
    steps: async () => part.steps(),
    removeDriver: async (node) => part.removeDriver(node),
    programStates: async () => part.programStates(),
    logLines: async () => part.logLines(),
    analyses: async () => part.analyses(),
    connections: async () => part.connections(),
    closeAnalysers: async () => part.closeAnalysers(),
    ledgers: async () => part.ledgers(),
    costs: async () => part.costs(),
    held: async () => part.held(),
    inspect: async () => part.inspect(),
    packets: async () => part.packets(),
    observations: async () => part.observations(),
    captures: async () => part.captures(),
    evidence: async () => part.evidence(),
    progress: async () => part.progress(),
    effort: async () => part.effort(),
    memoryOf: async (node) => part.memoryOf(node),
    physicalAddress: async (node, process, address) => part.physicalAddress(node, process, address),
    readConfig32: async (node, offset) => part.readConfig32(node, offset),
    readRegister32: async (node, bar, offset) => part.readRegister32(node, bar, offset),
  };
}
