/** Interface of this room: see README.md. */
export { connectX3 } from './connectx3.ts';
export { type DoorbellGeometry, Doorbells, type EqDoorbells } from './doorbells.ts';
