/** What other rooms use of this one: see README.md. */
export type { CompletionEvents } from './completion-notifier.ts';
export { CompletionWriter } from './completion-writer.ts';
