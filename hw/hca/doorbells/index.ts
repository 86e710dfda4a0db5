/** Interface of this room: see README.md. */
export { type DoorbellGeometry, Doorbells, type EqDoorbells } from './doorbells.ts';
export { WorkArrivals } from './work-arrivals.ts';
