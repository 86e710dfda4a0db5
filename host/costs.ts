/** The parts of the cost profile that the driver and the verbs library need, in their own terms. */
import { defaultsOf } from '../base/index.ts';
import { type CostConfig, type HostConfig, hostParameters } from './host-parameters.ts';

/** Cycle costs of the driver's actions; fits driver/platform.ts. */
export function driverCostsOf(cost: CostConfig) {
  return {
    commandPost: cost.commandPost,
    commandComplete: cost.commandComplete,
    registerRegionFixed: cost.registerRegionFixed,
    registerRegionPerPage: cost.registerRegionPerPage,
    deregisterRegionFixed: cost.deregisterRegionFixed,
    deregisterRegionPerPage: cost.deregisterRegionPerPage,
    createObject: cost.createObject,
    interruptHandler: cost.interruptHandler,
    eventDispatch: cost.eventDispatch,
  } as const;
}

/** Cycle costs of the data path; fits userlib/platform.ts. */
export function verbsCostsOf(cost: CostConfig) {
  return {
    postSend: cost.postSend,
    postSendPerSegment: cost.postSendPerSegment,
    postSendPerInlineByte64: cost.postSendPerInlineByte64,
    postRecv: cost.postRecv,
    pollEmpty: cost.pollEmpty,
    pollCompletion: cost.pollCompletion,
    readDmaLine: cost.readDmaLine,
    mmioStore: cost.mmioStore,
    copyFixed: cost.copyFixed,
    copyBytesPerCycle: cost.copyBytesPerCycle,
  } as const;
}

/** Cycles of copying `lengthBytes` within memory. */
export function copyCyclesOf(cost: CostConfig, lengthBytes: number): number {
  return cost.copyFixed + Math.ceil(lengthBytes / cost.copyBytesPerCycle);
}

/** The default profile, with whole parts replaced. */
export function hostConfigOf(parts: Partial<HostConfig> = {}): HostConfig {
  return {
    memory: defaultsOf(hostParameters.memory),
    core: defaultsOf(hostParameters.core),
    interrupt: defaultsOf(hostParameters.interrupt),
    cost: defaultsOf(hostParameters.cost),
    paging: defaultsOf(hostParameters.paging),
    swap: defaultsOf(hostParameters.swap),
    fileDevice: defaultsOf(hostParameters.fileDevice),
    tlb: defaultsOf(hostParameters.tlb),
    ...parts,
  };
}
