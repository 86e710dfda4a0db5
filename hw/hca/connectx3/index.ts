/** Interface of this room: see README.md. */
export { connectX3 } from './connectx3.ts';
