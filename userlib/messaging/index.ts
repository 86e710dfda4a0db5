export { MessageChannel, type MessageCounts, MessageRequest, messageBytesMax } from './message-channel.ts';
export { MessageError, type MessageErrorCode } from './message-error.ts';
export type { Waiting } from './message-link.ts';
export { type MessagingConfig, messagingParameters } from './parameters.ts';
export {
  type CachedRegion,
  RegistrationCache,
  type RegistrationCacheCounts,
  type RegistrationCacheLimits,
} from './registration-cache.ts';
export { copyCycles, copyUserMemory } from './user-copy.ts';
