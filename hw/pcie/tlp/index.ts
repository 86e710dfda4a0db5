export { CompletionFields } from './completion-fields.ts';
export { MemoryReadFields, MemoryWriteFields } from './memory-request.ts';
export * from './tlp.ts';
export { TlpCount, TrafficCount } from './tlp-count.ts';
export { type TlpHeader, tlpHeaderOf } from './tlp-header.ts';
