/** Interface of this room: see README.md. */
export { type AsyncEventSink, AsyncEvents } from './async-events.ts';
export { EqTable } from './eq-table.ts';
export { EventWriter } from './event-writer.ts';
