/** Interface of this room: see README.md. */
export { labFolder } from './lab-folder.ts';
export { serveLab } from './lab-server.ts';
