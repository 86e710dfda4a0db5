/** Interface of this room: see README.md. */
export { type AsyncEventSink, AsyncEvents } from './async-events.ts';
export { EqPages } from './eq-pages.ts';
export { EqTable, type EventQueueProgress, type EventQueueSetting } from './eq-table.ts';
export { type EventContexts, type EventPoster, EventWriter, type PortInfoReport } from './event-writer.ts';
export { InterruptModeration } from './interrupt-moderation.ts';
