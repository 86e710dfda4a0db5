/** Interface of this room: see README.md. */
export { Inbound, Outbound } from './both-ways.ts';
export { ReceiveTurns } from './receive-turns.ts';
export { RoceLink } from './roce-link.ts';
