/** What other rooms use of this one: see README.md. */
export { type DoorbellGeometry, Doorbells, type EqDoorbells } from './doorbells.ts';
export { WorkArrivals } from './work-arrivals.ts';
