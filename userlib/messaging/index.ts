export { type AllReduceAlgorithm, allReduceAlgorithms, type ReducingGroup } from './all-reduce.ts';
export { type Collective, Communicator, collectivePeers } from './communicator.ts';
export {
  MessageChannel,
  MessageRequest,
  type MessageStatistics,
  messageBytesMax,
} from './message-channel.ts';
export { type CompletionUser, MessageCompletions, type Waiting } from './message-completions.ts';
export { MessageError, type MessageErrorCode } from './message-error.ts';
export { messageHeaderBytes } from './message-header.ts';
export { type MessagingConfig, messagingParameters } from './parameters.ts';
export {
  type CachedRegion,
  RegistrationCache,
  type RegistrationCacheLimits,
  type RegistrationCacheStatistics,
} from './registration-cache.ts';
export { copyCycles, copyUserMemory } from './user-copy.ts';
