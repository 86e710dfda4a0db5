/** Interface of this room: see README.md. */
export { CommandTable } from './command-table.ts';
export { checkCapabilities, hasRoomForBlueFlame, interruptPin } from './device-capabilities.ts';
export { DeviceState } from './device-state.ts';
export { emptyEntries } from './queue-buffer.ts';
