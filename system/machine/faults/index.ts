export { FaultLog } from './fault-log.ts';
export { faultText } from './fault-text.ts';
export { injectHcaFaults } from './hca-faults.ts';
export { type GatedSink, InterruptGate } from './interrupt-gate.ts';
export { type Fault, type FaultKind, faultKinds } from './kinds.ts';
export { commandsOf, type FaultListing, faultListing } from './listing.ts';
export { injectNicFaults } from './nic-faults.ts';
export { checkedFaults, type FaultEntry, type FaultPlan, faultsOf, parsedFault, readFaults } from './plan.ts';
export { injectRootComplexFaults } from './root-complex-faults.ts';
