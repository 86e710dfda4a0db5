/** Interface of this room: see README.md. */

export { CompletionWriter } from './completion-writer.ts';
export type { CompletionEvents } from './cq-arm.ts';
export type { PostedCompletion } from './posted-completion.ts';
