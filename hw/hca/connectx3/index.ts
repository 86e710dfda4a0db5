/** Interface of this room: see README.md. */
export { checkCapabilities, hasRoomForBlueFlame } from './commands/index.ts';
export { connectX3Of } from './connectx3.ts';
