/** What other rooms use of this one: see README.md. */
export { type AsyncEventSink, AsyncEvents } from './async-events.ts';
export { EqTable } from './eq-table.ts';
export { EventWriter } from './event-writer.ts';
