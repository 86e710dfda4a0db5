/** Interface of this room: see README.md. */
export { RoceLink } from './roce-link.ts';
