/** The HCA: the device, the tables of its parameters, and the names that reports and tests of its parts need. */
export { capabilityParameters } from './capabilities.ts';
export { type CommandFaults, controlParameters, GO_ON, NEVER_END } from './commands/index.ts';
export { checkCapabilities, hasRoomForBlueFlame } from './connectx3/index.ts';
export { lidOf, macOf, portGuidOf } from './control-blocks.ts';
export type { CostLedger, CostRow } from './costs/index.ts';
export { Hca, type HcaCable, type HcaSetup } from './hca.ts';
export { checkCongestion, congestionParameters } from './ibta/congestion/index.ts';
export { checkIwarp, iwarpParameters } from './iwarp/iwarp-parameters.ts';
export type { LoopedFrames } from './iwarp/tcp/index.ts';
export {
  type ContextCache,
  pageRequestSides,
  portNameOf,
  portNames,
  type TranslationPort,
  type Translator,
} from './memory/index.ts';
export { type QueuePair, type SendRecord, UD_OPCODE_BASE } from './objects/index.ts';
export { hcaParameters } from './parameters.ts';
export {
  type FarTimes,
  type OperationStage,
  operationNames,
  operationStages,
  type RefusalKind,
  rateStages,
  refusalKindOf,
  streamStages,
} from './statistics/index.ts';
